/**
 * @file gpt_neox.h
 * @brief The complete GPT-NeoX decoder (Black et al. 2022; Pythia), written once over struct
 * engine.
 *
 * A layer adds attention(norm1(x)) and mlp(norm2(x)) to the residual stream x, in parallel or one
 * after the other. Rotary embedding of a part of each head is a rotation of whole heads with
 * frequencies of zero (gpt_neox_weights.h), so that every engine's operators serve.
 */
#ifndef WARPBOOK_COMMON_MODELS_GPT_NEOX_H_
#define WARPBOOK_COMMON_MODELS_GPT_NEOX_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/gpt_neox/gpt_neox_weights.h"
#include "common/models/engine.h"
#include "common/models/gpt_neox_decoder.h"
#include "common/models/llama2_decoder.h"

struct gpt_neox; /**< opaque: resident weights, activations, KV cache */

/**
 * @brief Makes weights, activations and a KV cache of config->T positions resident.
 *
 * They take the weights, 2 * L * T * C floats and the activations of @p batch tokens.
 *
 * @param config  copied
 * @param weights host; must outlive the model (a CPU engine reads them in place)
 * @param engine  must outlive the model
 * @param batch   most tokens of one gpt_neox_forward() call, 1 .. config->T
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for sizes that do not fit together; STATUS_UNSUPPORTED
 *         when the engine has no rope_table; STATUS_OVERFLOW; or the engine's status
 */
MUST_CHECK enum status gpt_neox_create(struct gpt_neox **model,
                                       const struct gpt_neox_config *config,
                                       const struct gpt_neox_weights *weights,
                                       const struct engine *engine, size_t batch,
                                       struct error *error);

/**
 * @brief The same for weights as a file stores them, on an engine with gpt_neox_decoder_create().
 *
 * @param weights host; must outlive the model
 * @param dtype   of matrices and KV cache on the engine
 * @return also STATUS_UNSUPPORTED when the engine has no such decoder, or none that takes this
 * model
 */
MUST_CHECK enum status gpt_neox_create_stored(struct gpt_neox **model,
                                              const struct gpt_neox_config *config,
                                              const struct gpt_neox_stored_weights *weights,
                                              enum nn_dtype dtype, const struct engine *engine,
                                              size_t batch, struct error *error);

/** Frees; NULL is allowed. */
void gpt_neox_free(struct gpt_neox *model);

/**
 * @brief Runs @p count tokens at positions position .. position + count - 1.
 *
 * Keys and values of earlier positions are taken from the cache, as earlier calls left them;
 * position 0 starts a new text.
 *
 * @param tokens host, (count), each in [0, V), else STATUS_INVALID_ARGUMENT
 * @param count  1 .. batch
 * @param logits host, (V): those of the last token; NULL when not wanted
 * @return STATUS_OK, STATUS_TOO_LONG when position + count > T, or the engine's status
 */
MUST_CHECK enum status gpt_neox_forward(struct gpt_neox *model, const int32_t *tokens, size_t count,
                                        size_t position, float *logits);

/** @return whether the engine samples tokens itself, with gpt_neox_begin() and gpt_neox_next(). */
bool gpt_neox_draws(const struct gpt_neox *model);

/** As llama2_begin() and llama2_next(). */
MUST_CHECK enum status gpt_neox_begin(struct gpt_neox *model,
                                      const struct llama2_sampling *sampling);
MUST_CHECK enum status gpt_neox_next(struct gpt_neox *model, size_t position, int32_t *token);

/** @return the configuration given to gpt_neox_create(). */
const struct gpt_neox_config *gpt_neox_config(const struct gpt_neox *model);

#endif

/**
 * @file llama2.h
 * @brief The complete Llama2 decoder (Touvron et al. 2023), written once over struct engine.
 */
#ifndef WARPBOOK_COMMON_MODELS_LLAMA2_H_
#define WARPBOOK_COMMON_MODELS_LLAMA2_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_weights.h"
#include "common/models/engine.h"
#include "common/models/llama2_decoder.h"

struct llama2; /**< opaque: resident weights, activations, KV cache */

/**
 * @brief Makes weights, activations and a KV cache of config->T positions resident.
 *
 * They take the weights, 2 * L * T * KVH * HS floats and the activations of @p batch tokens. An
 * engine that runs the whole decoder keeps all of this itself; the model then allocates nothing.
 *
 * @param config  copied
 * @param weights host; must outlive the model (a CPU engine reads them in place)
 * @param engine  must outlive the model
 * @param batch   most tokens of one llama2_forward() call, 1 .. config->T
 */
MUST_CHECK enum status llama2_create(struct llama2 **model, const struct llama2_config *config,
                                     const struct llama2_weights *weights,
                                     const struct engine *engine, size_t batch,
                                     struct error *error);

/**
 * @brief The same for weights as a file stores them, on an engine with decoder_create().
 *
 * @param weights host; must outlive the model
 * @param dtype   of matrices and KV cache on the engine
 * @return also STATUS_UNSUPPORTED when the engine has no decoder, or none that supports this model
 */
MUST_CHECK enum status llama2_create_stored(struct llama2 **model,
                                            const struct llama2_config *config,
                                            const struct llama2_stored_weights *weights,
                                            enum nn_dtype dtype, const struct engine *engine,
                                            size_t batch, struct error *error);

void llama2_free(struct llama2 *model);

/**
 * @brief Runs @p count tokens at positions position .. position + count - 1.
 *
 * Keys and values of earlier positions are taken from the cache, as earlier
 * calls left them; position 0 starts a new text.
 *
 * @param tokens host, (count), each in [0, V), else STATUS_INVALID_ARGUMENT
 * @param count  1 .. batch
 * @param logits host, (V): those of the last token; NULL when not wanted
 * @return STATUS_OK, STATUS_TOO_LONG when position + count > T, or the engine's status. A model
 * with sinks (config->recent) takes any position; its tokens come in order
 */
MUST_CHECK enum status llama2_forward(struct llama2 *model, const int32_t *tokens, size_t count,
                                      size_t position, float *logits);

/** @return whether the engine samples tokens itself, with llama2_begin() and llama2_next(). */
bool llama2_draws(const struct llama2 *model);

/** Sets how llama2_next() samples. @return the engine's status; STATUS_UNSUPPORTED: no sampling */
MUST_CHECK enum status llama2_begin(struct llama2 *model, const struct llama2_sampling *sampling);

/**
 * @brief Samples the token that follows the one at position - 1 and feeds it at @p position.
 * @param position at least 1
 * @return STATUS_OK, STATUS_TOO_LONG when position is not below T, STATUS_UNSUPPORTED when the
 *         engine does not sample, STATUS_BAD_FORMAT when the logits are not finite, or the engine's
 *         status
 */
MUST_CHECK enum status llama2_next(struct llama2 *model, size_t position, int32_t *token);

/** @return the configuration given to llama2_create(). */
const struct llama2_config *llama2_config(const struct llama2 *model);

#endif

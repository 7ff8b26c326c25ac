/**
 * @file language_model.h
 * @brief A decoder that predicts the next token, whatever its architecture: what a program needs of
 *        a Llama2 or a GPT-NeoX.
 */
#ifndef WARPBOOK_COMMON_MODELS_LANGUAGE_MODEL_H_
#define WARPBOOK_COMMON_MODELS_LANGUAGE_MODEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/gpt_neox.h"
#include "common/models/llama2.h"

/** One of both is set; zeros: no model. */
struct language_model {
    struct llama2 *llama2;
    struct gpt_neox *gpt_neox;
};

/** Frees the model; none is allowed. */
void language_model_free(struct language_model *model);

/** As llama2_forward() and gpt_neox_forward(). */
MUST_CHECK enum status language_model_forward(const struct language_model *model,
                                              const int32_t *tokens, size_t count, size_t position,
                                              float *logits);

/** @return the rows of the embedding, which are the number of logits. */
size_t language_model_vocabulary(const struct language_model *model);

/** @return the longest context that the model was made for. */
size_t language_model_context(const struct language_model *model);

/** @return whether the engine samples tokens itself; as llama2_draws(). */
bool language_model_draws(const struct language_model *model);

/** As llama2_begin() and llama2_next(). */
MUST_CHECK enum status language_model_begin(const struct language_model *model,
                                            const struct llama2_sampling *sampling);
MUST_CHECK enum status language_model_next(const struct language_model *model, size_t position,
                                           int32_t *token);

#endif

/**
 * @file stored_model.h
 * @brief The Llama2 of a bench of whole decoders: weights as files store them, from a checkpoint or
 *        random, and in fp32 for engines of operators.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_STORED_MODEL_H_
#define WARPBOOK_COMMON_BENCH_MODELS_STORED_MODEL_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/models/engine.h"
#include "common/models/llama2.h"
#include "common/models/llama2_random.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stored_model {
    char name[96];  /**< "1.1B shape, random weights", "stories260K.bin" */
    char label[64]; /**< of the records: "1.1B", "stories260K.bin" */
    const struct llama2_config *config;
    const struct llama2_stored_weights *weights;
    bool shared;                         /**< the classifier is the embedding */
    struct llama2_random_stored random;  /**< one of these two is open */
    struct llama2_checkpoint checkpoint; /**< or a view of the other */
    struct llama2_fp32 fp32;             /**< made when first needed */
    bool has_fp32;
};

/** Opens a checkpoint: a file of llama2.c or a Hugging Face folder. */
MUST_CHECK enum status stored_model_open(struct stored_model *model, const char *path,
                                         struct error *error);

/**
 * @brief Makes random weights, stored in @p dtype.
 * @param label of the sizes, "110M"
 */
MUST_CHECK enum status stored_model_random(struct stored_model *model,
                                           const struct llama2_config *config, const char *label,
                                           enum nn_dtype dtype, bool shared, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void stored_model_close(struct stored_model *model);

/**
 * @brief Creates the model on an engine, for up to @p batch tokens a call: from stored weights, if
 *        the engine has a decoder of its own, else from fp32 ones.
 * @param dtype of the computation
 * @return STATUS_UNSUPPORTED when the engine computes in fp32 alone, and @p dtype is another
 */
MUST_CHECK enum status stored_model_create_llama2(struct stored_model *model,
                                                  const struct engine *engine, enum nn_dtype dtype,
                                                  size_t batch, struct llama2 **llama2,
                                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif

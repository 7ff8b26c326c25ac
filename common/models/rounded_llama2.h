/**
 * @file rounded_llama2.h
 * @brief A random Llama2 whose matrices are rounded to a type, so that the fp32 reference computes
 *        with the same numbers as a decoder that stores them in that type.
 */
#ifndef WARPBOOK_COMMON_MODELS_ROUNDED_LLAMA2_H_
#define WARPBOOK_COMMON_MODELS_ROUNDED_LLAMA2_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/models/llama2_random.h"

struct rounded_llama2 {
    struct llama2_random random;         /**< fp32 weights, rounded */
    float *classifier;                   /**< (V, C); NULL: the classifier is the embedding */
    struct llama2_stored_weights stored; /**< views of the same weights, fp32 */
};

/**
 * @brief Makes the weights; the same arguments give the same weights in every process.
 * @param dtype          matrices are rounded to it, norms are not
 * @param own_classifier whether the classifier has weights of its own; else it is the embedding
 * @return STATUS_OK or the status of llama2_random_create(); call rounded_llama2_free() either way
 */
MUST_CHECK enum status rounded_llama2_create(struct rounded_llama2 *model,
                                             const struct llama2_config *config,
                                             enum nn_dtype dtype, bool own_classifier,
                                             uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void rounded_llama2_free(struct rounded_llama2 *model);

#endif

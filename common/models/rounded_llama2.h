/**
 * @file rounded_llama2.h
 * @brief A random Llama2 whose matrices hold values of a type: as a decoder is given it, and plain,
 *        so that the reference computes with what the device has.
 */
#ifndef WARPBOOK_COMMON_MODELS_ROUNDED_LLAMA2_H_
#define WARPBOOK_COMMON_MODELS_ROUNDED_LLAMA2_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/models/llama2_random.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rounded_llama2 {
    struct llama2_random random;         /**< plain weights, rounded */
    float *classifier;                   /**< (V, C), or NULL: it is the embedding */
    struct llama2_stored_weights stored; /**< views of the plain ones, fp32 */
};

/**
 * @brief Makes the weights; the same arguments give the same ones in every process.
 * @param dtype          what matrices are rounded to; norms are not
 * @param own_classifier whether it is not the embedding
 * @return STATUS_OK, or what llama2_random_create() says. Either way rounded_llama2_free() follows
 */
MUST_CHECK enum status rounded_llama2_create(struct rounded_llama2 *model,
                                             const struct llama2_config *config,
                                             enum nn_dtype dtype, bool own_classifier,
                                             uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void rounded_llama2_free(struct rounded_llama2 *model);

#ifdef __cplusplus
}
#endif

#endif

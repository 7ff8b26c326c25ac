/**
 * @file random_weights.h
 * @brief Random weights made on the GPU, each by its place in the whole matrix: ranks' parts and a
 *        whole model have the same numbers.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_RANDOM_WEIGHTS_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_RANDOM_WEIGHTS_H_

#include <stdint.h>

#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Uniform in -scale .. scale. @param to device, (part->rows, part->columns) of a matrix (., K) */
MUST_CHECK enum status random_weights(void *to, enum nn_dtype dtype, const struct many_part *part,
                                      size_t K, uint64_t seed, float scale, device_stream stream,
                                      struct error *error);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file reduce.h
 * @brief Sums and the like of vectors that several ranks have, in the order of the ranks.
 *
 * result = ((x0 op x1) op x2) op ... : rank 0 first, each step rounded to the type (16-bit floats
 * are added as fp32). So the result is the same for all ranks, and in every run. AVG multiplies
 * each float by 1 / ranks before the sum, and divides a sum of integers; PRE_MUL_SUM multiplies
 * each by the scalar before. Integers wrap around. MIN and MAX of a NaN and a number are the
 * number.
 */
#ifndef WARPBOOK_COMMON_SIMT_NCCL_REDUCE_H_
#define WARPBOOK_COMMON_SIMT_NCCL_REDUCE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/simt/nccl/collective.h"

/**
 * @param inputs  (ranks) of `count` elements each
 * @param outputs (output_count) of `count` elements each; an output may be an input, but may not
 *                overlap one otherwise
 * @param scalar  one element, of PRE_MUL_SUM
 */
void collective_reduce(enum collective_type type, enum collective_operation operation,
                       const unsigned char *const *inputs, size_t ranks,
                       unsigned char *const *outputs, size_t output_count, size_t count,
                       const uint64_t *scalars);

#endif

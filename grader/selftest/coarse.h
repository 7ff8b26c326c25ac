/**
 * @file coarse.h
 * @brief Products and roundings that are coarser than fp32 sums, rounded once.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_COARSE_H_
#define WARPBOOK_GRADER_SELFTEST_COARSE_H_

#include <stddef.h>

#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum coarse {
    COARSE_FP16, /**< sums are rounded to fp16 behind each 16 products */
    COARSE_BF16  /**< ... to bf16 */
};

/** out (M, N) = in (M, K) * weight (N, K)^T, all bf16. */
void coarse_product(enum coarse coarse, void *out, const void *in, const void *weight, size_t M,
                    size_t N, size_t K, device_stream stream);

/** bf16 of fp32: to the next one towards zero, not to the nearest. */
void coarse_store(void *out, const float *x, size_t count, device_stream stream);

/** out = bf16 of out + x, both bf16: what was rounded is rounded again. */
void coarse_add(void *out, const void *x, size_t count, device_stream stream);

#ifdef __cplusplus
}
#endif

#endif

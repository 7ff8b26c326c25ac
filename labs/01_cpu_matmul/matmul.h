/**
 * @file matmul.h
 * @brief Contract of lab 01: the linear layer of both models, on the CPU.
 */
#ifndef WARPBOOK_LABS_01_CPU_MATMUL_MATMUL_H_
#define WARPBOOK_LABS_01_CPU_MATMUL_MATMUL_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief out = in * weight^T.
 *
 * All pointers are host memory, fp32, row-major, contiguous, at least 4-byte
 * aligned and do not overlap. Sums are fp32; their order is free. Every size may be 0:
 * with K = 0 the result is zeros. M = 1 (decoding one token) is as common as M
 * in the hundreds (a batch of sentences).
 *
 * @param out     (M, N)
 * @param in      (M, K)
 * @param weight  (N, K): row n holds the K weights of output feature n
 * @param threads most threads to use, at least 1
 * @return STATUS_OK, or STATUS_OUT_OF_MEMORY if scratch memory cannot be allocated
 */
MUST_CHECK enum status cpu_matmul(float *out, const float *in, const float *weight, size_t M,
                                  size_t N, size_t K, int threads);

typedef enum status cpu_matmul_function(float *out, const float *in, const float *weight, size_t M,
                                        size_t N, size_t K, int threads);

/** One version of cpu_matmul(), for the bench's table. */
struct cpu_matmul_step {
    const char *name; /**< "v3_cache_blocked" */
    cpu_matmul_function *run;
};

/**
 * @brief The versions worth comparing, in the order they were written.
 * @param count receives how many; the last one is what cpu_matmul() calls
 */
const struct cpu_matmul_step *cpu_matmul_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif

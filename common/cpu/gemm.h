/**
 * @file gemm.h
 * @brief The products of training in fp32: C = A B, each operand as it is or transposed.
 *
 * Lab 01 is about such a product and explains the blocks; this one is given, for the matrices of a
 * backward pass, and because a training run must repeat bit by bit whatever the learner wrote. A
 * sum is formed in the same order on any number of threads.
 */
#ifndef WARPBOOK_COMMON_CPU_GEMM_H_
#define WARPBOOK_COMMON_CPU_GEMM_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/cpu/pack.h"
#include "common/cpu/scratch.h"

struct gemm {
    size_t M, N, K;
    struct strided a;  /**< (M, K) */
    struct strided b;  /**< (K, N) */
    float *c;          /**< (M, N), contiguous */
    const float *bias; /**< (N), added to each row, or NULL */
    bool add;          /**< to the values in c; not with bias */
};

/** @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY, when the scratch must grow */
MUST_CHECK enum status cpu_gemm(int threads, struct cpu_scratch *scratch, const struct gemm *g);

#endif

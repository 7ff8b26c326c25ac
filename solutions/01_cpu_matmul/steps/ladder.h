/**
 * @file ladder.h
 * @brief The steps of solution 01, each with the signature of cpu_matmul(), and shared helpers.
 */
#ifndef WARPBOOK_SOLUTIONS_01_CPU_MATMUL_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_01_CPU_MATMUL_STEPS_LADDER_H_

#include "labs/01_cpu_matmul/matmul.h"

/** v1: labs/01_cpu_matmul/given/starter.c. */
cpu_matmul_function starter_cpu_matmul;

cpu_matmul_function matmul_v2_loop_order;
cpu_matmul_function matmul_v3_cache_blocked;
cpu_matmul_function matmul_v4_register_blocked;
cpu_matmul_function matmul_v5_threads;

/** Floats of scratch of one matmul_v4_part(), a multiple of 16. */
extern const size_t matmul_v4_scratch;

/**
 * @brief v4 on a part of a larger product: out[m, n] for m < M, n < N.
 * @param out     (M, N), rows @p stride elements apart
 * @param in      (M, K)
 * @param weight  (N, K)
 * @param scratch 64-byte aligned, matmul_v4_scratch floats; not used for few rows
 */
void matmul_v4_part(float *out, size_t stride, const float *in, const float *weight, size_t M,
                    size_t N, size_t K, float *scratch);

/** @return whether M is so small that v4 packs nothing and needs no scratch. */
static inline int matmul_few_rows(size_t M) {
    return M < 16;
}

/** As matmul_v4_part() for few rows: dot products, straight from the caller's memory. */
void matmul_few_rows_part(float *out, size_t stride, const float *in, const float *weight, size_t M,
                          size_t N, size_t K);

/** Columns of a panel of packed weights: the width of v4's tile. */
enum { MATMUL_PANEL = 32 };

/**
 * @brief panel (depth, MATMUL_PANEL) = weight (columns, depth)^T, padded with columns of zeros.
 * @param panel   64-byte aligned
 * @param weight  rows K apart
 * @param columns may be more than a panel holds
 */
void matmul_pack_panel(float *panel, const float *weight, size_t K, size_t columns, size_t depth);

/** @return the smaller one. */
static inline size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

#endif

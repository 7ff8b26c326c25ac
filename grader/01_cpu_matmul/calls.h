/**
 * @file calls.h
 * @brief The calls that the grader of lab 01 makes in its workers.
 */
#ifndef WARPBOOK_GRADER_01_CPU_MATMUL_CALLS_H_
#define WARPBOOK_GRADER_01_CPU_MATMUL_CALLS_H_

#include <stddef.h>

/** "matmul" */
struct matmul_call {
    float *out;               /**< arena, (M, N) */
    const float *in, *weight; /**< arena, (M, K) and (N, K) */
    size_t M, N, K;
    int threads;
};

#endif

/**
 * @file calls.h
 * @brief The calls that the grader of lab 02 makes in its workers.
 */
#ifndef WARPBOOK_GRADER_02_GPU_MATMUL_CALLS_H_
#define WARPBOOK_GRADER_02_GPU_MATMUL_CALLS_H_

#include "labs/02_gpu_matmul/gpu_matmul.h"

/** "launch": the kernel, with device pointers. */
struct launch_call {
    float *out;               /**< device, (M, N) */
    const float *in, *weight; /**< device, (M, K) and (N, K) */
    size_t M, N, K;
    device_stream stream;
};

/** "call", with host pointers; "create" and "destroy" use matmul only. */
struct matmul_call {
    struct gpu_matmul *matmul; /**< result of "create" */
    float *out;                /**< arena, (M, N) */
    const float *in, *weight;  /**< arena, (M, K) and (N, K) */
    size_t M, N, K;
};

#endif

/**
 * @file baseline.h
 * @brief What lab 02's starter does: the baseline of its speedup.
 */
#ifndef WARPBOOK_GRADER_02_GPU_MATMUL_BASELINE_H_
#define WARPBOOK_GRADER_02_GPU_MATMUL_BASELINE_H_

#include "labs/02_gpu_matmul/gpu_matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As gpu_matmul_launch(), for M * N > 0: one thread an output. */
gpu_matmul_kernel gpu_matmul_baseline;

#ifdef __cplusplus
}
#endif

#endif

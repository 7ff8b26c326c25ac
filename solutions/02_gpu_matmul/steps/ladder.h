/**
 * @file ladder.h
 * @brief The steps of solution 02, each with the signature of gpu_matmul_launch().
 */
#ifndef WARPBOOK_SOLUTIONS_02_GPU_MATMUL_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_02_GPU_MATMUL_STEPS_LADDER_H_

#include "labs/02_gpu_matmul/gpu_matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

gpu_matmul_kernel gpu_matmul_v1_thread_an_output;
gpu_matmul_kernel gpu_matmul_v2_block_an_output;
gpu_matmul_kernel gpu_matmul_v3_warp_an_output;
gpu_matmul_kernel gpu_matmul_v4_tile_a_warp;

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file few_rows.h
 * @brief v10's kernel for few rows on Hopper.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_H_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_H_

#include "labs/12_tensor_cores/tensor_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The most rows of `in` that it takes. */
#define GEMM16_FEW_ROWS 256

/** @return whether there is code for this GPU, and it takes the problem. */
bool gemm16_few_rows_can(const struct gemm16_problem *problem);

/**
 * @param rows of `in` a tile: 8, 16, 32, 64 or 128
 * @param blocks of a cluster, which split K: 1 to 8
 */
MUST_CHECK enum status gemm16_few_rows(const struct gemm16_problem *problem, unsigned rows,
                                       unsigned blocks, device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

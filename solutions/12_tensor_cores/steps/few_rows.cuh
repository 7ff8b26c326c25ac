/**
 * @file few_rows.cuh
 * @brief What launches of Hopper's kernels for few rows share.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_CUH_

#include "common/device/tensor_map.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"

/* A factor, `rows` rows of K, in boxes of `box_rows` rows and 64 elements of K: 128 bytes. */
static inline enum status describe_rows(CUtensorMap *map, const struct gemm16_problem *p,
                                        const void *data, size_t rows, unsigned box_rows,
                                        struct error *error) {
    const struct tensor_map_matrix matrix = {p->dtype, data, rows, p->K, box_rows, 64, 128};
    return tensor_map_create(map, &matrix, error);
}

/* Whether the epilogue is a bias at most, and all are 16 bits, in whole pieces. */
static inline bool is_bare(const struct gemm16_epilogue &f) {
    return f.vector && !f.out_is_float && !f.bias_is_float && f.activation < 0 &&
           f.residual == NULL && !f.gate;
}

#endif

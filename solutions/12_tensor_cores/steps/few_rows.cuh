/**
 * @file few_rows.cuh
 * @brief What launches of Hopper's kernels for few rows share.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_CUH_

#include "common/device/tensor_map.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

/* The TMA's descriptions of both factors. */
struct few_rows_maps {
    CUtensorMap in, weight;
};

/* A factor, `rows` rows of K, in boxes of `box_rows` rows and 64 elements of K: 128 bytes. */
static inline enum status describe_rows(CUtensorMap *map, const struct gemm16_problem *p,
                                        const void *data, size_t rows, unsigned box_rows,
                                        struct error *error) {
    const struct tensor_map_matrix matrix = {p->dtype, data, rows, p->K, box_rows, 64, 128};
    return tensor_map_create(map, &matrix, error);
}

/* Describes both factors for tiles of `columns` rows of weight and at most `most_rows` of `in`. All
   tiles have `rows`, as few as can be: the TMA brings rows that do not exist more slowly than
   numbers. @param grid receives the tiles: x of columns, y of rows */
static inline enum status describe_tiles(struct few_rows_maps *maps, const struct gemm16_problem *p,
                                         unsigned most_rows, unsigned columns, dim3 *grid,
                                         int *rows, struct error *error) {
    unsigned M = (unsigned)p->M, high = (M + most_rows - 1) / most_rows;
    unsigned each = (M + high - 1) / high;
    *grid = dim3((unsigned)((p->N + columns - 1) / columns), high);
    *rows = (int)each;
    TRY(describe_rows(&maps->in, p, p->in, p->M, each, error));
    return describe_rows(&maps->weight, p, p->weight, p->N, columns, error);
}

/* Launches KERNEL, a block for each tile of T. */
template <typename T, auto KERNEL>
static inline enum status launch_tiles(const struct gemm16_problem *p, const char *name,
                                       device_stream stream, struct error *error) {
    struct few_rows_maps maps = {};
    dim3 grid;
    int rows;
    TRY(describe_tiles(&maps, p, T::ROWS, T::COLUMNS, &grid, &rows, error));
    TRY(allow_shared<KERNEL>(T::BYTES, error));
    KERNEL<<<grid, T::THREADS, T::BYTES, stream>>>(maps, (int)((p->K + 63) / 64), rows,
                                                   gemm16_epilogue_of(p));
    return device_launched(name, error);
}

/* Whether the epilogue is a bias at most, and all are 16 bits, in whole pieces. */
static inline bool is_bare(const struct gemm16_epilogue &f) {
    return f.vector && !f.out_is_float && !f.bias_is_float && f.activation < 0 &&
           f.residual == NULL && !f.gate;
}

#endif

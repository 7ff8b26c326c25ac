/**
 * @file tensor_map.cuh
 * @brief Host: the description of a matrix whose boxes' rows are swizzled over their whole length.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_TENSOR_MAP_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_TENSOR_MAP_CUH_

#include "common/device/tensor_map.h"

/* A matrix (rows, columns) in boxes of `box_columns`: 128, 64, or 32 bytes. */
static inline enum status describe(CUtensorMap *map, enum nn_dtype dtype, const void *matrix,
                                   size_t rows, size_t columns, unsigned box_rows,
                                   unsigned box_columns, struct error *error) {
    const struct tensor_map_matrix m = {dtype,
                                        matrix,
                                        rows,
                                        columns,
                                        box_rows,
                                        box_columns,
                                        box_columns * (dtype == NN_F32 ? 4 : 2)};
    return tensor_map_create(map, &m, error);
}

#endif

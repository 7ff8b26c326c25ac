/**
 * @file tensor_map.h
 * @brief The description of a matrix that the TMA wants, a CUtensorMap.
 */
#ifndef WARPBOOK_COMMON_DEVICE_TENSOR_MAP_H_
#define WARPBOOK_COMMON_DEVICE_TENSOR_MAP_H_

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return whether the driver can describe matrices for the TMA. */
bool tensor_map_available(void);

/** A matrix in device memory, row-major, and the boxes that it is moved in. */
struct tensor_map_matrix {
    enum nn_dtype dtype;  /**< NN_F16, NN_BF16 or NN_F32 */
    const void *data;     /**< device, 16-byte aligned */
    size_t rows, columns; /**< from 1 to 2^32; rows are whole 16-byte pieces: columns % 8 == 0,
                               % 4 == 0 of fp32 */
    unsigned box_rows, box_columns; /**< at most 256 each; with a swizzle a box row is at most that
                                         many bytes */
    unsigned swizzle;    /**< 128, 64, 32 bytes or 0: what a box looks like in shared memory */
    unsigned box_groups; /**< 0: the map has two dimensions. Else three: columns of a group, rows,
                              groups of `box_columns` columns, and a box has that many groups, one
                              behind the other. (1: the last group may be part of one. Then
                              dimension 0 is the matrix's column, and that of groups is 0.) */
};

/**
 * @brief Describes the matrix, on the host. Pass the map to a kernel by value, as a `const
 *        __grid_constant__ CUtensorMap` parameter, and its address to tma_load_2d() or
 *        tma_load_3d().
 * @return STATUS_OK; STATUS_UNSUPPORTED where the driver has no TMA; STATUS_INVALID_ARGUMENT, with
 *         the sizes, for a matrix or a box that it does not take
 */
MUST_CHECK enum status tensor_map_create(CUtensorMap *map, const struct tensor_map_matrix *matrix,
                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif

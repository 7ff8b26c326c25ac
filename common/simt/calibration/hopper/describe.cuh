/**
 * @file describe.cuh
 * @brief Tensor maps of bf16 matrices, made on the host.
 */
#ifndef WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_DESCRIBE_CUH_
#define WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_DESCRIBE_CUH_

#include <cuda.h>
#include <cuda_runtime.h>
#include <stddef.h>

typedef CUresult encode_tiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* The driver's cuTensorMapEncodeTiled; NULL: there is none. */
static inline encode_tiled *find_encode_tiled(void) {
    void *function = NULL;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                        cudaEnableDefault, &found);
    (void)cudaGetLastError();
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? (encode_tiled *)function
                                                                       : NULL;
}

/* Boxes of a matrix (rows, columns), row-major. */
struct boxes {
    size_t rows, columns;
    unsigned box_rows, box_columns;
    CUtensorMapSwizzle swizzle;
};

/* @return false: refused */
static inline bool describe_boxes(CUtensorMap *map, const void *matrix, const struct boxes &boxes) {
    static encode_tiled *const encode = find_encode_tiled();
    const cuuint64_t sizes[2] = {boxes.columns, boxes.rows}, strides[1] = {boxes.columns * 2};
    const cuuint32_t box[2] = {boxes.box_columns, boxes.box_rows}, steps[2] = {1, 1};
    return encode != NULL && encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)matrix, sizes,
                                    strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                    boxes.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

#endif

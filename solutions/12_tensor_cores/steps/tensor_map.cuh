/**
 * @file tensor_map.cuh
 * @brief Host: the TMA's description of a matrix of 16-bit elements (cuTensorMapEncodeTiled).
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_TENSOR_MAP_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_TENSOR_MAP_CUH_

#include <cuda.h>
#include <cuda_runtime.h>
#include <stddef.h>

#include "labs/12_tensor_cores/tensor_cores.h"

/* The driver's, found at run time. */
typedef CUresult encode_function(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                 void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                 const cuuint32_t *box, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

/* NULL where the driver has none. */
static inline encode_function *find_encode(void) {
    void *function = NULL;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                        cudaEnableDefault, &found);
    (void)cudaGetLastError();
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? (encode_function *)function
                                                                       : NULL;
}

/* Describes a matrix (rows, columns) that is moved in boxes of `box_columns`, 64 or 32, whose rows
   are swizzled over their whole length, 128 or 64 bytes. */
static inline enum status describe(CUtensorMap *map, enum nn_dtype dtype, const void *matrix,
                                   size_t rows, size_t columns, unsigned box_rows,
                                   unsigned box_columns, struct error *error) {
    static encode_function *const encode = find_encode();
    if (encode == NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "gemm16: this driver has no cuTensorMapEncodeTiled; install a newer one");
    }
    const cuuint64_t sizes[2] = {columns, rows}, strides[1] = {columns * 2};
    const cuuint32_t box[2] = {box_columns, box_rows}, steps[2] = {1, 1};
    CUresult code = encode(
        map, dtype == NN_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        2, (void *)matrix, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return code == CUDA_SUCCESS
               ? STATUS_OK
               : error_set(
                     error, STATUS_DEVICE,
                     "gemm16: cuTensorMapEncodeTiled refuses a matrix of %zu x %zu (CUresult %d)",
                     rows, columns, (int)code);
}

#endif

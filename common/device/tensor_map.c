#include "common/device/tensor_map.h"

#include <cuda_runtime_api.h>

typedef CUresult encode_function(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                 void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                 const cuuint32_t *box, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

static encode_function *find_encode(void) {
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                        cudaEnableDefault, &found);
    (void)cudaGetLastError();
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? (encode_function *)function
                                                                       : NULL;
}

bool tensor_map_available(void) {
    return find_encode() != NULL;
}

static CUtensorMapSwizzle swizzle_of(unsigned bytes) {
    switch (bytes) {
    case 128:
        return CU_TENSOR_MAP_SWIZZLE_128B;
    case 64:
        return CU_TENSOR_MAP_SWIZZLE_64B;
    case 32:
        return CU_TENSOR_MAP_SWIZZLE_32B;
    default:
        return CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

static CUtensorMapDataType type_of(enum nn_dtype dtype) {
    switch (dtype) {
    case NN_F32:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case NN_F16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    default:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    }
}

enum status tensor_map_create(CUtensorMap *map, const struct tensor_map_matrix *m,
                              struct error *error) {
    encode_function *encode = find_encode();
    if (encode == NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "this driver has no cuTensorMapEncodeTiled: the TMA needs CUDA 12");
    }
    size_t size = m->dtype == NN_F32 ? 4 : 2;
    bool grouped = m->box_groups > 1;
    size_t width = grouped ? m->box_columns : m->columns;
    const cuuint64_t sizes[3] = {width, m->rows, grouped ? m->columns / width : 1};
    const cuuint64_t strides[2] = {m->columns * size, m->box_columns * size};
    const cuuint32_t box[3] = {m->box_columns, m->box_rows, m->box_groups}, steps[3] = {1, 1, 1};
    CUresult code = CUDA_ERROR_INVALID_VALUE;
    if (m->columns % width == 0) {
        code = encode(map, type_of(m->dtype), m->box_groups == 0 ? 2 : 3, (void *)m->data, sizes,
                      strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(m->swizzle),
                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    }
    if (code != CUDA_SUCCESS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the TMA does not take a matrix of %zu x %zu in boxes of %u x %u, %u of "
                         "them, with a swizzle of %u bytes (CUresult %d)",
                         m->rows, m->columns, m->box_rows, m->box_columns,
                         m->box_groups == 0 ? 1 : m->box_groups, m->swizzle, (int)code);
    }
    return STATUS_OK;
}

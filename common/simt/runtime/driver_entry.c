/**
 * @file driver_entry.c
 * @brief Driver functions that a program finds through the runtime: cuTensorMapEncodeTiled.
 *
 * A tensor map is made by the program's side alone: it holds an address and sizes, nothing of the
 * device's.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/runtime/state.h"
#include "common/simt/tensor_map/tensor_map.h"

#undef cudaGetDriverEntryPoint
#undef cudaGetDriverEntryPointByVersion

enum { ALIGNMENT = 16, MOST_BOX = 256, MOST_STEP = 8 };
#define MOST_STRIDE ((uint64_t)1 << 40)
#define MOST_SIZE ((uint64_t)1 << 32)

/* Bytes of an element; 0: a type that simt does not copy. */
static uint8_t bytes_of(CUtensorMapDataType type) {
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
        return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
        return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
        return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
        return 8;
    default:
        return 0;
    }
}

static bool is_float(CUtensorMapDataType type) {
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

/* Dimension d of the tensor and its box. */
static bool set_dimension(struct tensor_map *map, uint32_t d, uint64_t size, uint32_t box,
                          uint32_t step) {
    if (size < 1 || size > MOST_SIZE || box < 1 || box > MOST_BOX || step < 1 || step > MOST_STEP) {
        return false;
    }
    map->last[d] = (uint32_t)(size - 1);
    map->box[d] = (uint16_t)box;
    map->steps[d] = d == 0 ? 1 : (uint8_t)step; /* the first is ignored */
    return true;
}

static bool set_stride(struct tensor_map *map, uint32_t d, uint64_t stride) {
    map->strides[d] = stride;
    return stride % ALIGNMENT == 0 && stride < MOST_STRIDE;
}

static bool check_box(const struct tensor_map *map) {
    uint32_t bytes = (uint32_t)map->box[0] * map->element_bytes;
    return bytes % ALIGNMENT == 0 &&
           (map->swizzle == TENSOR_SWIZZLE_NONE || bytes <= (uint32_t)ALIGNMENT << map->swizzle);
}

static CUresult encode_tiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank,
                             void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                             const cuuint32_t *box, const cuuint32_t *steps,
                             CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                             CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    struct tensor_map map = {.magic = TENSOR_MAP_MAGIC,
                             .type = (uint8_t)type,
                             .element_bytes = bytes_of(type),
                             .rank = (uint8_t)rank,
                             .swizzle = (uint8_t)swizzle,
                             .address = (uint64_t)(uintptr_t)address,
                             .fill_nan = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE};
    (void)promotion; /* a hint */
    if (out == NULL || sizes == NULL || box == NULL || steps == NULL || rank < 1 ||
        rank > TENSOR_DIMENSIONS || (rank > 1 && strides == NULL) || (uintptr_t)out % 64 != 0 ||
        map.address % ALIGNMENT != 0 || (map.fill_nan != 0 && !is_float(type))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (map.element_bytes == 0 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        swizzle > CU_TENSOR_MAP_SWIZZLE_128B) {
        fprintf(stderr, "simt: cuTensorMapEncodeTiled: simt has no interleaved tensors, no packed "
                        "types of 4 and 6 bits and no swizzles of larger atoms\n");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    bool fine = true;
    for (uint32_t d = 0; d < rank && fine; d++) {
        fine = set_dimension(&map, d, sizes[d], box[d], steps[d]) &&
               (d == 0 || set_stride(&map, d - 1, strides[d - 1]));
    }
    if (!fine || !check_box(&map)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(out, &map, sizeof map);
    return CUDA_SUCCESS;
}

static cudaError_t find(const char *symbol, void **function,
                        enum cudaDriverEntryPointQueryResult *result) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (symbol == NULL || function == NULL) {
        return cudaErrorInvalidValue;
    }
    bool found = strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
    CUresult (*encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                       const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                       CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                       CUtensorMapFloatOOBfill) = found ? encode_tiled : NULL;
    memcpy(function, &encode, sizeof encode);
    if (result != NULL) {
        *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    }
    if (!found && !atomic_flag_test_and_set(&said)) {
        fprintf(stderr, "simt: %s: simt has no function of the driver but cuTensorMapEncodeTiled\n",
                symbol);
    }
    return found || result != NULL ? cudaSuccess : cudaErrorSymbolNotFound;
}

EXPORTED cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
    (void)flags;
    return find(symbol, function, result);
}

EXPORTED cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *result) {
    (void)version;
    (void)flags;
    return find(symbol, function, result);
}

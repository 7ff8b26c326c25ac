/*
 * libcuda.so.1 for programs that were linked with NVIDIA's driver (-lcuda) for the sake of tensor
 * maps: the few functions that such programs call, by those of the runtime library. simt has no
 * other driver functions, so a program that needs them does not start: the loader names the first
 * one.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED CUresult cuInit(unsigned flags) {
    return flags != 0                      ? CUDA_ERROR_INVALID_VALUE
           : cudaFree(NULL) == cudaSuccess ? CUDA_SUCCESS
                                           : CUDA_ERROR_NOT_INITIALIZED;
}

EXPORTED CUresult cuDriverGetVersion(int *version) {
    return cudaDriverGetVersion(version) == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What the runtime finds by name; NULL: nothing. */
static void *entry_point(const char *name) {
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
    (void)cudaGetLastError();
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : NULL;
}

EXPORTED CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type,
                                         cuuint32_t rank, void *address, const cuuint64_t *sizes,
                                         const cuuint64_t *strides, const cuuint32_t *box,
                                         const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                         CUtensorMapSwizzle swizzle,
                                         CUtensorMapL2promotion promotion,
                                         CUtensorMapFloatOOBfill fill) {
    CUresult (*encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                       const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                       CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                       CUtensorMapFloatOOBfill);
    *(void **)&encode = entry_point("cuTensorMapEncodeTiled");
    return encode == NULL ? CUDA_ERROR_NOT_SUPPORTED
                          : encode(map, type, rank, address, sizes, strides, box, steps, interleave,
                                   swizzle, promotion, fill);
}

/* Names of the errors that the functions above return. */
static const char *name_of(CUresult error) {
    switch (error) {
    case CUDA_SUCCESS:
        return "CUDA_SUCCESS";
    case CUDA_ERROR_INVALID_VALUE:
        return "CUDA_ERROR_INVALID_VALUE";
    case CUDA_ERROR_NOT_INITIALIZED:
        return "CUDA_ERROR_NOT_INITIALIZED";
    case CUDA_ERROR_NOT_SUPPORTED:
        return "CUDA_ERROR_NOT_SUPPORTED";
    default:
        return NULL;
    }
}

EXPORTED CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = name_of(error);
    return *name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuGetErrorString(CUresult error, const char **text) {
    return cuGetErrorName(error, text);
}

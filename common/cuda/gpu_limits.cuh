/**
 * @file gpu_limits.cuh
 * @brief Host code: the properties of the GPU in use that the choice between kernels depends on.
 */
#ifndef WARPBOOK_COMMON_CUDA_GPU_LIMITS_CUH_
#define WARPBOOK_COMMON_CUDA_GPU_LIMITS_CUH_

#include <cuda_runtime.h>
#include <stddef.h>

struct gpu_limits {
    int multiprocessors, major; /* major: of the compute capability */
    size_t shared_bytes;        /* of a block */
};

/* 0 where the runtime fails: the launch reports it. */
static inline int gpu_attribute(cudaDeviceAttr attribute) {
    int device = 0, value = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) {
        return 0;
    }
    return value;
}

static inline struct gpu_limits gpu_limits() {
    struct gpu_limits gpu;
    gpu.multiprocessors = gpu_attribute(cudaDevAttrMultiProcessorCount);
    gpu.major = gpu_attribute(cudaDevAttrComputeCapabilityMajor);
    gpu.shared_bytes = (size_t)gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return gpu;
}

#endif

/**
 * @file gpu_limits.cuh
 * @brief Host code: the properties of the GPU in use that the choice between kernels depends on.
 */
#ifndef WARPBOOK_COMMON_CUDA_GPU_LIMITS_CUH_
#define WARPBOOK_COMMON_CUDA_GPU_LIMITS_CUH_

#include <cuda_runtime.h>
#include <stddef.h>

struct gpu_limits {
    int multiprocessors;
    int major;           /* of the compute capability that the code which runs was compiled for */
    size_t shared_bytes; /* of a block */
};

/* Compiled as all kernels of a file are, and asked for what they were compiled for. */
static __global__ void gpu_code_probe() {
}

/*
 * The compute capability whose code runs here: 75 where a GPU of 8.9 was given nothing but PTX for
 * 7.5. Which paths a kernel has was decided by __CUDA_ARCH__ when it was compiled, so that a host
 * which goes by the GPU's own number launches kernels that are empty. 0 where the runtime fails.
 */
static inline int gpu_code() {
    struct cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, (const void *)gpu_code_probe) != cudaSuccess) {
        return 0; /* the launch reports it */
    }
    return attributes.ptxVersion;
}

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
    gpu.major = gpu_code() / 10;
    gpu.shared_bytes = (size_t)gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return gpu;
}

#endif

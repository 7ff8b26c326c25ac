/**
 * @file chained.cuh
 * @brief Kernels that are set up while the one before them still runs.
 *
 * Between two kernels of a stream the GPU is idle for a microsecond or so: the
 * first drains, then the next is set up. Where kernels take two or three
 * microseconds each, as they do when a model decodes one token, that is much of
 * the time. From compute capability 9.0 on, a kernel may be set up early and
 * wait, in the kernel, for the one before (programmatic dependent launch).
 *
 * Both halves belong together: a kernel launched by launch_chained() must call
 * chained_begin() first thing, in every thread, before it touches memory.
 * Kernels launched otherwise may come before and after it in the stream.
 */
#ifndef WARPBOOK_COMMON_DEVICE_CHAINED_CUH_
#define WARPBOOK_COMMON_DEVICE_CHAINED_CUH_

#include <cuda_runtime.h>
#include <stddef.h>

#include "common/device/device.h"

/*
 * Lets the kernel after this one be set up, then waits until all that was
 * launched before is done and its results are seen. The wait comes in every
 * kernel, also in one that reads nothing: the kernel after it relies on it.
 */
static __device__ __forceinline__ void chained_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Whether the kernel's code waits: machine code made from PTX older than 9.0 does not. */
static inline bool chained_code_waits(const void *kernel) {
    struct cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
        return false; /* the launch reports it */
    }
    return attributes.ptxVersion >= 90;
}

/* KERNEL<<<blocks, threads, shared_bytes, stream>>>(arguments...), early where possible. */
template <auto KERNEL, typename... ARGUMENTS>
static inline void launch_chained(dim3 blocks, dim3 threads, size_t shared_bytes,
                                  device_stream stream, ARGUMENTS... arguments) {
    static const bool waits = chained_code_waits((const void *)KERNEL);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = waits ? 1 : 0;
    (void)cudaLaunchKernelEx(&config, KERNEL, arguments...); /* device_launched() reports */
}

#endif

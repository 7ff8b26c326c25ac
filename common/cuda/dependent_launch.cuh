/**
 * @file dependent_launch.cuh
 * @brief Programmatic dependent launch (griddepcontrol): a kernel is set up while the one
 *        before it still runs.
 *
 * Between two kernels of a stream the GPU is idle for a microsecond or so: the
 * first drains, then the next is set up. Where kernels take two or three
 * microseconds each, as they do when a model decodes one token, that is much of
 * the time. From compute capability 9.0 on, a kernel may be set up early and
 * wait, in the kernel, for the one before (programmatic dependent launch).
 *
 * Host and device code belong together: a kernel launched by launch_dependent() must call
 * dependent_launch_begin() first thing, in every thread, before it touches memory.
 * Kernels launched otherwise may come before and after it in the stream. Code for
 * older GPUs launches as usual, and the device functions do nothing.
 */
#ifndef WARPBOOK_COMMON_CUDA_DEPENDENT_LAUNCH_CUH_
#define WARPBOOK_COMMON_CUDA_DEPENDENT_LAUNCH_CUH_

#include <cuda_runtime.h>
#include <stddef.h>

#include "common/device/device.h"

/* Lets the next kernel of the stream be set up, once all blocks of this one have come here or
   exited (griddepcontrol.launch_dependents). It does not make this kernel's results visible to it.
 */
static __device__ __forceinline__ void launch_dependent_grids() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Waits until all kernels before this one are complete and their results visible
   (griddepcontrol.wait). */
static __device__ __forceinline__ void wait_on_dependent_grids() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Both, at the start of a kernel. The wait comes in every kernel, also in one that reads nothing:
   the kernel after it relies on it. */
static __device__ __forceinline__ void dependent_launch_begin() {
    launch_dependent_grids();
    wait_on_dependent_grids();
}

/* Whether the kernel's code waits: machine code made from PTX older than 9.0 does not. */
static inline bool dependent_code_waits(const void *kernel) {
    struct cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
        return false; /* the launch reports it */
    }
    return attributes.ptxVersion >= 90;
}

/* KERNEL<<<blocks, threads, shared_bytes, stream>>>(arguments...), early where possible. */
template <auto KERNEL, typename... ARGUMENTS>
static inline void launch_dependent(dim3 blocks, dim3 threads, size_t shared_bytes,
                                    device_stream stream, ARGUMENTS... arguments) {
    static const bool waits = dependent_code_waits((const void *)KERNEL);
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

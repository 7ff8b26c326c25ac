/**
 * @file allocate.c
 * @brief Device, pinned and managed memory.
 */
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/base/checked.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/mirror.h"
#include "common/simt/runtime/memory/pool.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

enum { ALIGNMENT = 256, PITCH = 512 };

static cudaError_t allocate(struct runtime *runtime, void **memory, size_t bytes,
                            const char *what) {
    if (memory == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(capture_allows_call(runtime, false));
    if (bytes == 0) {
        *memory = NULL;
        return cudaSuccess;
    }
    uint64_t address = 0;
    enum status status = simt_memory_alloc(runtime->memory, bytes, ALIGNMENT, what, &address);
    if (status != STATUS_OK) {
        return runtime_error_of(status);
    }
    *memory = (void *)(uintptr_t)address;
    runtime->report.allocations++;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    DEVICE_CALL(runtime, allocate(runtime, memory, bytes, "cudaMalloc"));
}

static cudaError_t allocate_async(struct runtime *runtime, void **memory, size_t bytes,
                                  cudaMemPool_t pool, cudaStream_t handle) {
    const char *name = NULL;
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture != NULL) {
        return memory_node_capture(runtime, stream, memory, bytes);
    }
    CUDA_TRY(pool_take(runtime, pool, bytes, &name));
    return allocate(runtime, memory, bytes, name);
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream) {
    DEVICE_CALL(runtime, allocate_async(runtime, memory, bytes, NULL, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    DEVICE_CALL(runtime, pool == NULL ? cudaErrorInvalidValue
                                      : allocate_async(runtime, memory, bytes, pool, stream));
}

static cudaError_t release_device(struct runtime *runtime, void *memory) {
    struct simt_allocation allocation = {0};
    uint64_t address = (uint64_t)(uintptr_t)memory;
    bool found = simt_memory_find(runtime->memory, address, &allocation);
    if (found && !allocation.freed && allocation.what != NULL &&
        strncmp(allocation.what, "cuda", 4) != 0) {
        runtime_explain(runtime, "cudaFree: %p belongs to %s", memory, allocation.what);
        return cudaErrorInvalidValue;
    }
    if (found &&
        allocation.program != (runtime->selected != NULL ? runtime->selected->number : 0)) {
        runtime_explain(runtime,
                        "cudaFree: %p belongs to another program: cudaIpcCloseMemHandle() "
                        "gives it up",
                        memory);
        return cudaErrorInvalidValue;
    }
    enum status status = simt_memory_release(runtime->memory, address);
    if (status == STATUS_OK) {
        runtime->report.releases++;
        return cudaSuccess;
    }
    if (found && allocation.freed) {
        runtime_explain(runtime, "cudaFree: %p was freed before: %s of %zu bytes", memory,
                        allocation.what, allocation.bytes);
    } else if (found) {
        runtime_explain(runtime, "cudaFree: %p lies %zu bytes into %zu bytes of %s; free its start",
                        memory, (size_t)(address - allocation.address), allocation.bytes,
                        allocation.what);
    } else {
        runtime_explain(runtime, "cudaFree: %p did not come from cudaMalloc", memory);
    }
    return cudaErrorInvalidValue;
}

static cudaError_t release(struct runtime *runtime, void *memory) {
    cudaError_t error = capture_allows_call(runtime, false);
    if (error != cudaSuccess || memory == NULL) {
        return error;
    }
    /* cudaFree() waits for the device; memory that is freed in stream order may be another's next.
     */
    order_waited_for_device(runtime);
    struct host_block *block = host_block_find(runtime, memory);
    if (block == NULL) {
        return release_device(runtime, memory);
    }
    if (block->kind != HOST_MANAGED || block->memory != memory || block->variable) {
        runtime_explain(runtime, "cudaFree: %p belongs to %s%s", memory, block->what,
                        block->kind == HOST_PINNED ? "; use cudaFreeHost" : "");
        return cudaErrorInvalidValue;
    }
    host_block_release(runtime, block);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory) {
    WAITING_CALL(runtime, flights_wait_for_device(runtime), release(runtime, memory));
}

static cudaError_t release_async(struct runtime *runtime, void *memory, cudaStream_t handle) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture != NULL) {
        return memory_node_capture_release(runtime, stream, memory);
    }
    return release(runtime, memory);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
    WAITING_CALL(runtime, flights_wait_for(runtime, stream_find(runtime, stream)),
                 release_async(runtime, memory, stream));
}

/** @return false when the padded rows do not fit a size_t. */
static bool pitched_size(size_t width, size_t height, size_t depth, size_t *pitch, size_t *bytes) {
    size_t padded;
    if (!checked_add(width, PITCH - 1, &padded)) {
        return false;
    }
    *pitch = padded / PITCH * PITCH;
    return checked_multiply(*pitch, height, bytes) && checked_multiply(*bytes, depth, bytes);
}

static cudaError_t allocate_pitched(struct runtime *runtime, struct cudaPitchedPtr *pitched,
                                    size_t width, size_t height, size_t depth, const char *what) {
    size_t pitch, bytes;
    if (!pitched_size(width, height, depth, &pitch, &bytes)) {
        return cudaErrorMemoryAllocation;
    }
    *pitched = (struct cudaPitchedPtr){.pitch = pitch, .xsize = width, .ysize = height};
    return allocate(runtime, &pitched->ptr, bytes, what);
}

static cudaError_t allocate_rows(struct runtime *runtime, void **memory, size_t *pitch,
                                 size_t width, size_t height) {
    struct cudaPitchedPtr pitched = {0};
    if (memory == NULL || pitch == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = allocate_pitched(runtime, &pitched, width, height, 1, "cudaMallocPitch");
    if (error == cudaSuccess) {
        *memory = pitched.ptr;
        *pitch = pitched.pitch;
    }
    return error;
}

cudaError_t cudaMallocPitch(void **memory, size_t *pitch, size_t width, size_t height) {
    DEVICE_CALL(runtime, allocate_rows(runtime, memory, pitch, width, height));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent) {
    DEVICE_CALL(runtime, pitched == NULL
                             ? cudaErrorInvalidValue
                             : allocate_pitched(runtime, pitched, extent.width, extent.height,
                                                extent.depth, "cudaMalloc3D"));
}

static cudaError_t allocate_host(struct runtime *runtime, void **memory, size_t bytes,
                                 unsigned flags, const char *what) {
    const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (memory == NULL || (flags & ~known) != 0) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(capture_allows_call(runtime, false));
    if (bytes == 0) {
        *memory = NULL;
        return cudaSuccess;
    }
    /* Every pinned allocation is mapped, as with unified addressing. */
    return host_block_allocate(runtime, HOST_PINNED, bytes, flags | cudaHostAllocMapped, what,
                               memory);
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) {
    DEVICE_CALL(runtime, allocate_host(runtime, memory, bytes, 0, "cudaMallocHost"));
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
    DEVICE_CALL(runtime, allocate_host(runtime, memory, bytes, flags, "cudaHostAlloc"));
}

static cudaError_t release_host(struct runtime *runtime, void *memory) {
    cudaError_t error = capture_allows_call(runtime, false);
    if (error != cudaSuccess || memory == NULL) {
        return error;
    }
    struct host_block *block = host_block_find(runtime, memory);
    if (block == NULL || block->kind != HOST_PINNED || block->memory != memory) {
        runtime_explain(runtime,
                        "cudaFreeHost: %p did not come from cudaMallocHost or "
                        "cudaHostAlloc, or was freed before",
                        memory);
        return cudaErrorInvalidValue;
    }
    host_block_release(runtime, block);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory) {
    SYNCHRONOUS_CALL(runtime, release_host(runtime, memory));
}

static cudaError_t register_host(struct runtime *runtime, void *memory, size_t bytes,
                                 unsigned flags) {
    const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
                           cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
    if (memory == NULL || bytes == 0 || (flags & ~known) != 0 ||
        simt_memory_is_device(runtime->memory, memory)) {
        return cudaErrorInvalidValue;
    }
    return host_block_register(runtime, memory, bytes, flags | cudaHostRegisterMapped);
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags) {
    DEVICE_CALL(runtime, register_host(runtime, memory, bytes, flags));
}

static cudaError_t unregister_host(struct runtime *runtime, void *memory) {
    struct host_block *block = host_block_find(runtime, memory);
    if (block == NULL || block->kind != HOST_REGISTERED || block->memory != memory) {
        return memory == NULL ? cudaErrorInvalidValue : cudaErrorHostMemoryNotRegistered;
    }
    host_block_release(runtime, block);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory) {
    SYNCHRONOUS_CALL(runtime, unregister_host(runtime, memory));
}

/** Kernels use host memory at its own address. */
static cudaError_t device_pointer(struct runtime *runtime, void **device, void *host,
                                  unsigned flags) {
    if (device == NULL || flags != 0 || host_block_find(runtime, host) == NULL) {
        return cudaErrorInvalidValue;
    }
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    DEVICE_CALL(runtime, device_pointer(runtime, device, host, flags));
}

static cudaError_t host_flags(struct runtime *runtime, unsigned *flags, void *host) {
    const struct host_block *block = host_block_find(runtime, host);
    if (flags == NULL || block == NULL || block->kind == HOST_MANAGED) {
        return cudaErrorInvalidValue;
    }
    *flags = block->flags;
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
    DEVICE_CALL(runtime, host_flags(runtime, flags, host));
}

static cudaError_t allocate_managed(struct runtime *runtime, void **memory, size_t bytes,
                                    unsigned flags) {
    if (memory == NULL || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(capture_allows_call(runtime, false));
    if (bytes == 0) {
        *memory = NULL;
        return cudaSuccess;
    }
    return host_block_allocate(runtime, HOST_MANAGED, bytes, 0, "cudaMallocManaged", memory);
}

cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned flags) {
    DEVICE_CALL(runtime, allocate_managed(runtime, memory, bytes, flags));
}

/** Advice about managed memory changes nothing here. */
cudaError_t cudaMemAdvise(const void *memory, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
    (void)bytes, (void)advice, (void)location;
    DEVICE_CALL(runtime,
                host_block_find(runtime, memory) != NULL ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPrefetchAsync(const void *memory, size_t bytes, struct cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
    (void)flags, (void)stream;
    DEVICE_CALL(runtime, mirror_prefetch(runtime, memory, bytes,
                                         location.type == cudaMemLocationTypeDevice));
}

static cudaError_t memory_info(const struct runtime *runtime, size_t *free_bytes,
                               size_t *total_bytes) {
    size_t used = 0;
    size_t total = 0;
    simt_memory_usage(runtime->memory, &used, &total);
    if (free_bytes != NULL) {
        *free_bytes = total - used;
    }
    if (total_bytes != NULL) {
        *total_bytes = total;
    }
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    DEVICE_CALL(runtime, memory_info(runtime, free_bytes, total_bytes));
}

static cudaError_t pointer_attributes(struct runtime *runtime,
                                      struct cudaPointerAttributes *attributes,
                                      const void *pointer) {
    if (attributes == NULL) {
        return cudaErrorInvalidValue;
    }
    const struct host_block *block = host_block_find(runtime, pointer);
    struct simt_allocation allocation = {0};
    void *plain = (void *)(uintptr_t)pointer;
    memset(attributes, 0, sizeof *attributes);
    if (block != NULL) {
        attributes->type = block->kind == HOST_MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
        attributes->devicePointer = plain;
        attributes->hostPointer = plain;
    } else if (simt_memory_find(runtime->memory, (uint64_t)(uintptr_t)pointer, &allocation) &&
               !allocation.freed) {
        attributes->type = allocation.host ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
        attributes->device = allocation.device;
        attributes->devicePointer = plain;
        attributes->hostPointer = allocation.host ? plain : NULL;
    } else {
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = cudaInvalidDeviceId;
        attributes->hostPointer = plain;
    }
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *pointer) {
    DEVICE_CALL(runtime, pointer_attributes(runtime, attributes, pointer));
}

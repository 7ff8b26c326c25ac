#include "grader/isolation/allocations.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stddef.h>

/* Of the whole process, as its memory is. */
static struct {
    _Atomic uint64_t allocations, releases;
    _Atomic uint64_t graph_bytes; /* most that nodes of graphs have had */
} counted;

static cudaError_t allocated(cudaError_t code, size_t bytes) {
    atomic_fetch_add(&counted.allocations, code == cudaSuccess && bytes > 0);
    return code;
}

static cudaError_t released(cudaError_t code, const void *memory) {
    atomic_fetch_add(&counted.releases, code == cudaSuccess && memory != NULL);
    return code;
}

/* A function that allocates: its name, parameters and arguments, and how many bytes it asks for. */
#define ALLOCATES(name, parameters, arguments, bytes)     \
    cudaError_t __real_##name parameters;                 \
    cudaError_t __wrap_##name parameters;                 \
    cudaError_t __wrap_##name parameters {                \
        return allocated(__real_##name arguments, bytes); \
    }

#define RELEASES(name, parameters, arguments, memory)     \
    cudaError_t __real_##name parameters;                 \
    cudaError_t __wrap_##name parameters;                 \
    cudaError_t __wrap_##name parameters {                \
        return released(__real_##name arguments, memory); \
    }

ALLOCATES(cudaMalloc, (void **to, size_t bytes), (to, bytes), bytes)
ALLOCATES(cudaMallocManaged, (void **to, size_t bytes, unsigned flags), (to, bytes, flags), bytes)
ALLOCATES(cudaMallocAsync, (void **to, size_t bytes, cudaStream_t stream), (to, bytes, stream),
          bytes)
ALLOCATES(cudaMallocFromPoolAsync,
          (void **to, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
          (to, bytes, pool, stream), bytes)
ALLOCATES(cudaMallocPitch, (void **to, size_t *pitch, size_t width, size_t height),
          (to, pitch, width, height), width *height)
ALLOCATES(cudaMalloc3D, (struct cudaPitchedPtr * to, struct cudaExtent extent), (to, extent),
          extent.width *extent.height *extent.depth)
RELEASES(cudaFree, (void *memory), (memory), memory)
RELEASES(cudaFreeAsync, (void *memory, cudaStream_t stream), (memory, stream), memory)

/* 0 where the runtime does not say. */
static uint64_t graph_bytes(void) {
    uint64_t bytes = 0;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetGraphMemAttribute(device, cudaGraphMemAttrReservedMemHigh, &bytes) !=
            cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return bytes;
}

struct allocations allocations_so_far(void) {
    uint64_t bytes = graph_bytes();
    if (bytes > atomic_exchange(&counted.graph_bytes, bytes)) {
        atomic_fetch_add(&counted.allocations, 1);
    }
    return (struct allocations){atomic_load(&counted.allocations), atomic_load(&counted.releases)};
}

/**
 * @file memory.c
 * @brief Buffers and copies.
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "common/device/device.h"
#include "common/device/fail.h"
#include "common/device/traffic.h"

enum status device_alloc(void **memory, size_t bytes, struct error *error) {
    *memory = NULL;
    if (bytes == 0) {
        return STATUS_OK;
    }
    double begun = traffic_begin();
    cudaError_t code = cudaMalloc(memory, bytes);
    if (code == cudaSuccess) {
        traffic_allocated(begun);
        return STATUS_OK;
    }
    *memory = NULL;
    size_t left = 0, total = 0;
    (void)cudaGetLastError();
    if (code != cudaErrorMemoryAllocation || cudaMemGetInfo(&left, &total) != cudaSuccess) {
        return device_fail(error, code, "allocating %zu bytes on the GPU", bytes);
    }
    return error_set(error, STATUS_OUT_OF_MEMORY,
                     "out of GPU memory: %zu bytes asked for, %zu of %zu bytes are free; use a "
                     "smaller size, or end other programs on the GPU",
                     bytes, left, total);
}

void device_free(void *memory) {
    if (memory == NULL) {
        return;
    }
    double begun = traffic_begin();
    if (cudaFree(memory) != cudaSuccess) {
        (void)cudaGetLastError();
    }
    traffic_released(begun);
}

enum status device_alloc_host(void **memory, size_t bytes, struct error *error) {
    *memory = NULL;
    if (bytes == 0) {
        return STATUS_OK;
    }
    cudaError_t code = cudaMallocHost(memory, bytes);
    if (code == cudaSuccess) {
        return STATUS_OK;
    }
    *memory = NULL;
    return device_fail(error, code, "allocating %zu bytes of page-locked host memory", bytes);
}

void device_free_host(void *memory) {
    if (memory != NULL && cudaFreeHost(memory) != cudaSuccess) {
        (void)cudaGetLastError();
    }
}

/* Copies and waits: with page-locked memory the copy alone would return before it is done. */
static cudaError_t copy_and_wait(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                 device_stream stream) {
    cudaError_t code = cudaMemcpyAsync(to, from, bytes, kind, stream);
    return code == cudaSuccess ? cudaStreamSynchronize(stream) : code;
}

enum status device_write(void *to, const void *from, size_t bytes, device_stream stream,
                         struct error *error) {
    if (bytes == 0) {
        return STATUS_OK;
    }
    double begun = traffic_begin();
    cudaError_t code = copy_and_wait(to, from, bytes, cudaMemcpyHostToDevice, stream);
    if (code != cudaSuccess) {
        return device_fail(error, code, "copying %zu bytes to the GPU, to %p", bytes, to);
    }
    traffic_copied(true, bytes, begun);
    return STATUS_OK;
}

enum status device_read(void *to, const void *from, size_t bytes, device_stream stream,
                        struct error *error) {
    if (bytes == 0) {
        return STATUS_OK;
    }
    double begun = traffic_begin();
    cudaError_t code = copy_and_wait(to, from, bytes, cudaMemcpyDeviceToHost, stream);
    if (code != cudaSuccess) {
        return device_fail(error, code, "copying %zu bytes from the GPU, from %p", bytes, from);
    }
    traffic_copied(false, bytes, begun);
    return STATUS_OK;
}

enum status device_copy(void *to, const void *from, size_t bytes, device_stream stream,
                        struct error *error) {
    if (bytes == 0) {
        return STATUS_OK;
    }
    cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    return code == cudaSuccess ? STATUS_OK
                               : device_fail(error, code, "copying %zu bytes on the GPU", bytes);
}

enum status device_set(void *memory, int value, size_t bytes, device_stream stream,
                       struct error *error) {
    if (bytes == 0) {
        return STATUS_OK;
    }
    cudaError_t code = cudaMemsetAsync(memory, value, bytes, stream);
    return code == cudaSuccess ? STATUS_OK
                               : device_fail(error, code, "setting %zu bytes on the GPU", bytes);
}

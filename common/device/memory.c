/**
 * @file memory.c
 * @brief Buffers and copies, and counts of them.
 */
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/device/device.h"
#include "common/device/fail.h"

/* ---- Counts of copies and allocations; while tracing, their time ---- */

/*
 * Counts of the whole process, because the whole process shares the bus: the only
 * exception to "no mutable globals" in this layer.
 */
static struct {
    _Atomic uint64_t copies_to_device, bytes_to_device, copies_to_host, bytes_to_host;
    _Atomic uint64_t allocations, releases;
    _Atomic uint64_t copy_nanoseconds, alloc_nanoseconds;
    atomic_bool tracing;
} traffic;

struct device_traffic device_traffic(void) {
    return (struct device_traffic){
        .copies_to_device = atomic_load(&traffic.copies_to_device),
        .bytes_to_device = atomic_load(&traffic.bytes_to_device),
        .copies_to_host = atomic_load(&traffic.copies_to_host),
        .bytes_to_host = atomic_load(&traffic.bytes_to_host),
        .allocations = atomic_load(&traffic.allocations),
        .releases = atomic_load(&traffic.releases),
        .copy_seconds = 1e-9 * (double)atomic_load(&traffic.copy_nanoseconds),
        .alloc_seconds = 1e-9 * (double)atomic_load(&traffic.alloc_nanoseconds),
    };
}

void device_trace(bool on) {
    atomic_store(&traffic.tracing, on);
}

/* @return device_now() while tracing, else 0; for the functions below. */
static double traffic_begin(void) {
    return atomic_load(&traffic.tracing) ? device_now() : 0.0;
}

static void add_time(_Atomic uint64_t *nanoseconds, double begun) {
    if (atomic_load(&traffic.tracing)) {
        atomic_fetch_add(nanoseconds, (uint64_t)(1e9 * (device_now() - begun) + 0.5));
    }
}

/* Counts one copy, after it was done. */
static void traffic_copied(bool to_device, size_t bytes, double begun) {
    add_time(&traffic.copy_nanoseconds, begun);
    if (to_device) {
        atomic_fetch_add(&traffic.copies_to_device, 1);
        atomic_fetch_add(&traffic.bytes_to_device, bytes);
    } else {
        atomic_fetch_add(&traffic.copies_to_host, 1);
        atomic_fetch_add(&traffic.bytes_to_host, bytes);
    }
}

/* Counts one allocation. */
static void traffic_allocated(double begun) {
    add_time(&traffic.alloc_nanoseconds, begun);
    atomic_fetch_add(&traffic.allocations, 1);
}

/* Counts one release; its time is part of the time of allocations. */
static void traffic_released(double begun) {
    add_time(&traffic.alloc_nanoseconds, begun);
    atomic_fetch_add(&traffic.releases, 1);
}

/* ---- Buffers and copies ---- */

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
    if (cudaFree(memory) == cudaSuccess) {
        traffic_released(begun);
    } else {
        (void)cudaGetLastError();
    }
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

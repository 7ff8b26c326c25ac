#include "common/device/traffic.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <time.h>

#include "common/device/device.h"
#include "common/simt/simt.h"

/*
 * Counts of the whole process, because the whole process shares the bus: the only
 * exception to "no mutable globals" in this layer.
 */
static struct {
    _Atomic uint64_t copies_to_device, bytes_to_device, copies_to_host, bytes_to_host, allocations;
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
        .copy_seconds = 1e-9 * (double)atomic_load(&traffic.copy_nanoseconds),
        .alloc_seconds = 1e-9 * (double)atomic_load(&traffic.alloc_nanoseconds),
    };
}

void device_trace(bool on) {
    atomic_store(&traffic.tracing, on);
}

double device_now(void) {
    struct simt_api simt;
    struct timespec now;
    /* The runtime keeps a failure and reports it to the next caller that waits for the work. */
    (void)cudaDeviceSynchronize();
    if (simt_find(&simt)) {
        struct simt_totals totals;
        simt.read_totals(&totals);
        return 1e-9 * totals.nanoseconds;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double traffic_begin(void) {
    return atomic_load(&traffic.tracing) ? device_now() : 0.0;
}

static void add_time(_Atomic uint64_t *nanoseconds, double begun) {
    if (atomic_load(&traffic.tracing)) {
        atomic_fetch_add(nanoseconds, (uint64_t)(1e9 * (device_now() - begun) + 0.5));
    }
}

void traffic_copied(bool to_device, size_t bytes, double begun) {
    add_time(&traffic.copy_nanoseconds, begun);
    if (to_device) {
        atomic_fetch_add(&traffic.copies_to_device, 1);
        atomic_fetch_add(&traffic.bytes_to_device, bytes);
    } else {
        atomic_fetch_add(&traffic.copies_to_host, 1);
        atomic_fetch_add(&traffic.bytes_to_host, bytes);
    }
}

void traffic_allocated(double begun) {
    add_time(&traffic.alloc_nanoseconds, begun);
    atomic_fetch_add(&traffic.allocations, 1);
}

void traffic_released(double begun) {
    add_time(&traffic.alloc_nanoseconds, begun);
}

/**
 * @file stream.c
 * @brief Streams, launches and events.
 */
#include <cuda_runtime_api.h>
#include <time.h>

#include "common/device/device.h"
#include "common/device/fail.h"
#include "common/simt/simt.h"

enum status device_stream_create(device_stream *stream, struct error *error) {
    *stream = NULL;
    cudaError_t code = cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "making a stream");
}

void device_stream_destroy(device_stream stream) {
    if (stream != NULL && cudaStreamDestroy(stream) != cudaSuccess) {
        (void)cudaGetLastError();
    }
}

enum status device_synchronize(device_stream stream, struct error *error) {
    cudaError_t code = cudaStreamSynchronize(stream);
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "waiting for the GPU");
}

enum status device_launched(const char *what, struct error *error) {
    cudaError_t code = cudaGetLastError();
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "launching %s", what);
}

enum status device_event_create(device_event *event, struct error *error) {
    *event = NULL;
    cudaError_t code = cudaEventCreate(event);
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "making an event");
}

void device_event_destroy(device_event event) {
    if (event != NULL && cudaEventDestroy(event) != cudaSuccess) {
        (void)cudaGetLastError();
    }
}

enum status device_event_record(device_event event, device_stream stream, struct error *error) {
    cudaError_t code = cudaEventRecord(event, stream);
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "recording an event");
}

enum status device_event_elapsed(device_event start, device_event stop, double *ms,
                                 struct error *error) {
    float elapsed = 0.0f;
    *ms = 0.0;
    cudaError_t code = cudaEventSynchronize(stop);
    if (code == cudaSuccess) {
        /* Has to wait only if the caller swapped the events. */
        code = cudaEventSynchronize(start);
    }
    if (code == cudaSuccess) {
        code = cudaEventElapsedTime(&elapsed, start, stop);
    }
    if (code == cudaErrorInvalidResourceHandle) {
        return device_fail(error, code, "the time between two events that were not both recorded");
    }
    if (code != cudaSuccess) {
        return device_fail(error, code, "the time between two events");
    }
    if (elapsed < 0.0f) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the time between two events is %g ms: the second was recorded first",
                         (double)elapsed);
    }
    *ms = (double)elapsed;
    return STATUS_OK;
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

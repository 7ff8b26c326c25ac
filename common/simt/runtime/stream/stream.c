#include "common/simt/runtime/stream/stream.h"

#include <stdlib.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/dependent.h"

enum { HIGHEST_PRIORITY = -5, LOWEST_PRIORITY = 0 };

struct CUstream_st *stream_new(struct runtime *runtime, unsigned flags, int priority) {
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (stream != NULL) {
        stream->device = runtime->device;
        stream->flags = flags;
        stream->priority = priority;
        stream->id = runtime->next_id++;
        stream->number = runtime->order.streams++;
    }
    return stream;
}

struct CUstream_st *stream_find(struct runtime *runtime, cudaStream_t handle) {
    if (handle == NULL || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
        return runtime->default_stream;
    }
    struct CUstream_st *stream = runtime->streams;
    while (stream != NULL && stream != handle) {
        stream = stream->next;
    }
    return stream;
}

struct CUstream_st *stream_default(const struct runtime *runtime, int device) {
    return device == runtime->device ? runtime->default_stream
                                     : runtime->others[device].default_stream;
}

/* A copy from the device to pageable memory returns when it is done, also in its Async forms. */
static bool host_waits_for(struct runtime *runtime, const struct work *work) {
    return work->kind == WORK_COPY &&
           simt_memory_is_device(runtime->memory, work->copy.from.pointer) &&
           !simt_memory_is_device(runtime->memory, work->copy.to.pointer) &&
           host_block_find(runtime, work->copy.to.pointer) == NULL;
}

/* Kernels are launched on the device of their stream alone; other work may come from anywhere. */
static bool may_submit(const struct runtime *runtime, const struct CUstream_st *stream,
                       const struct work *work) {
    if (work->kind != WORK_KERNEL || stream->device == runtime->device) {
        return true;
    }
    runtime_explain(
        runtime, "%s is launched on device %d, in a stream of device %d: cudaSetDevice(%d) first",
        work->kernel.kernel->readable, runtime->device, stream->device, stream->device);
    return false;
}

/* Copies from and to pageable memory have left it, or come to it, when their call returns. */
static bool uses_pageable(struct runtime *runtime, const struct work *work) {
    const void *sides[] = {work->copy.from.pointer, work->copy.to.pointer};
    for (int n = 0; work->kind == WORK_COPY && n < 2; n++) {
        if (!simt_memory_is_device(runtime->memory, sides[n]) &&
            host_block_find(runtime, sides[n]) == NULL) {
            return true;
        }
    }
    return false;
}

static cudaError_t submit_flight(struct runtime *runtime, struct CUstream_st *stream,
                                 const struct work *work) {
    if (uses_pageable(runtime, work)) {
        CUDA_TRY(flights_wait_for(runtime, stream));
    }
    return flight_add(runtime, stream, work);
}

/* The order of a copy between the memories of two devices, in a default stream. */
static void order_devices(struct runtime *runtime, struct CUstream_st *stream,
                          const struct work *work, bool before) {
    if (work->kind != WORK_COPY || stream != runtime->default_stream) {
        return;
    }
    uint64_t sides[] = {(uint64_t)(uintptr_t)work->copy.to.pointer,
                        (uint64_t)(uintptr_t)work->copy.from.pointer};
    int to = simt_memory_device_of(runtime->memory, sides[0]);
    int from = simt_memory_device_of(runtime->memory, sides[1]);
    if (to >= 0 && from >= 0 && to != from) {
        order_copy_of(runtime, stream, to, before);
        order_copy_of(runtime, stream, from, before);
    }
}

static cudaError_t submit(struct runtime *runtime, struct CUstream_st *stream,
                          const struct work *work) {
    cudaError_t error = capture_allows_use(runtime, stream);
    if (error == cudaSuccess) {
        error = stream->capture != NULL ? work_check_recorded(runtime, work)
                                        : work_check(runtime, work);
    }
    if (error != cudaSuccess) {
        return error;
    }
    if (stream->capture != NULL) {
        return capture_add(stream, work);
    }
    if (work->kind != WORK_KERNEL) {
        dependent_forget(stream);
    }
    if (flight_is_needed(runtime, stream, work)) {
        return submit_flight(runtime, stream, work);
    }
    order_devices(runtime, stream, work, true);
    order_begin(runtime, stream);
    error = work_run(runtime, work, false);
    flights_stir(runtime);
    order_devices(runtime, stream, work, false);
    order_end(runtime, stream,
              work->kind == WORK_KERNEL ? work->kernel.kernel->readable : work->call);
    if (host_waits_for(runtime, work)) {
        order_waited_for_stream(runtime, stream);
    }
    return error;
}

cudaError_t stream_submit(struct runtime *runtime, cudaStream_t handle, const struct work *work) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    int device = runtime->device;
    if (stream == NULL || !may_submit(runtime, stream, work)) {
        return cudaErrorInvalidResourceHandle;
    }
    runtime_select(runtime, stream->device);
    cudaError_t error = submit(runtime, stream, work);
    runtime_select(runtime, device);
    return error;
}

static cudaError_t create(struct runtime *runtime, cudaStream_t *handle, unsigned flags,
                          int priority) {
    if (handle == NULL || (flags & ~(unsigned)cudaStreamNonBlocking) != 0) {
        return cudaErrorInvalidValue;
    }
    if (priority < HIGHEST_PRIORITY) {
        priority = HIGHEST_PRIORITY;
    } else if (priority > LOWEST_PRIORITY) {
        priority = LOWEST_PRIORITY;
    }
    struct CUstream_st *stream = stream_new(runtime, flags, priority);
    if (stream == NULL) {
        return cudaErrorMemoryAllocation;
    }
    stream->next = runtime->streams;
    runtime->streams = stream;
    *handle = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    DEVICE_CALL(runtime, create(runtime, stream, cudaStreamDefault, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    DEVICE_CALL(runtime, create(runtime, stream, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    DEVICE_CALL(runtime, create(runtime, stream, flags, priority));
}

static void free_stream(struct CUstream_st *stream) {
    dependent_forget(stream);
    node_list_free(&stream->tail);
    order_clock_free(&stream->clock);
    order_clock_free(&stream->reads);
    order_clock_free(&stream->fenced);
    order_clock_free(&stream->seen);
    dependent_forget(stream);
    free(stream);
}

void streams_free(struct runtime *runtime) {
    while (runtime->streams != NULL) {
        struct CUstream_st *stream = runtime->streams;
        runtime->streams = stream->next;
        free_stream(stream);
    }
    for (int d = 0; d < runtime->settings.devices; d++) {
        runtime_select(runtime, d);
        free_stream(runtime->default_stream);
        runtime->default_stream = NULL;
    }
    runtime_select(runtime, 0);
}

static cudaError_t destroy(struct runtime *runtime, cudaStream_t handle) {
    struct CUstream_st **link = &runtime->streams;
    while (*link != NULL && *link != handle) {
        link = &(*link)->next;
    }
    struct CUstream_st *stream = *link;
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture != NULL && stream->capture->origin == stream) {
        capture_abandon(runtime, stream);
    }
    *link = stream->next;
    free_stream(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    WAITING_CALL(runtime, flights_wait_for(runtime, stream_find(runtime, stream)),
                 destroy(runtime, stream));
}

/** What waiting for a stream, or asking whether it is done, comes to: all work is. */
static cudaError_t wait(struct runtime *runtime, cudaStream_t handle) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture != NULL) {
        return capture_spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
    }
    order_waited_for_stream(runtime, stream);
    return capture_allows_use(runtime, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    WAITING_CALL(runtime, flights_wait_for(runtime, stream_find(runtime, stream)),
                 wait(runtime, stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    WAITING_CALL(runtime, flights_ask(runtime, stream_find(runtime, stream)),
                 wait(runtime, stream));
}

/** The fields that programs ask for; a NULL field is not asked for. */
static cudaError_t describe(struct runtime *runtime, cudaStream_t handle, unsigned *flags,
                            int *priority, unsigned long long *id) {
    const struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (flags == NULL && priority == NULL && id == NULL) {
        return cudaErrorInvalidValue;
    }
    if (flags != NULL) {
        *flags = stream->flags;
    }
    if (priority != NULL) {
        *priority = stream->priority;
    }
    if (id != NULL) {
        *id = stream->id;
    }
    return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    DEVICE_CALL(runtime, describe(runtime, stream, flags, NULL, NULL));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    DEVICE_CALL(runtime, describe(runtime, stream, NULL, priority, NULL));
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
    DEVICE_CALL(runtime, describe(runtime, stream, NULL, NULL, id));
}

/** Where a hint is kept; NULL: no such attribute of a stream. */
static cudaStreamAttrValue *hint_of(struct CUstream_st *stream, cudaStreamAttrID attribute) {
    switch ((int)attribute) {
    case cudaStreamAttributeAccessPolicyWindow:
        return &stream->window;
    case cudaStreamAttributeSynchronizationPolicy:
        return &stream->policy;
    default:
        return NULL;
    }
}

/** Which lines L2 prefers, and how the host waits. @param given NULL: asks */
static cudaError_t attribute(struct runtime *runtime, cudaStream_t handle,
                             cudaStreamAttrID attribute, const cudaStreamAttrValue *given,
                             cudaStreamAttrValue *asked) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    cudaStreamAttrValue *hint = hint_of(stream, attribute);
    if (hint == NULL || (given == NULL && asked == NULL)) {
        return cudaErrorInvalidValue;
    }
    *(given != NULL ? hint : asked) = *(given != NULL ? given : hint);
    return cudaSuccess;
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID id,
                                   const cudaStreamAttrValue *value) {
    DEVICE_CALL(runtime, attribute(runtime, stream, id, value, NULL));
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID id,
                                   cudaStreamAttrValue *value) {
    DEVICE_CALL(runtime, attribute(runtime, stream, id, NULL, value));
}

static cudaError_t get_device(struct runtime *runtime, cudaStream_t handle, int *device) {
    const struct CUstream_st *stream = stream_find(runtime, handle);
    if (device == NULL || stream == NULL) {
        return device == NULL ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    *device = stream->device;
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
    DEVICE_CALL(runtime, get_device(runtime, stream, device));
}

/** Managed memory is plain memory here: attaching it changes nothing. */
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *memory, size_t bytes,
                                     unsigned flags) {
    (void)memory, (void)bytes, (void)flags;
    DEVICE_CALL(runtime, stream_find(runtime, stream) != NULL ? cudaSuccess
                                                              : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    struct work work = {.kind = WORK_HOST, .call = "cudaLaunchHostFunc"};
    work.host = (struct host_work){.function = function, .data = data};
    DEVICE_CALL(runtime, stream_submit(runtime, stream, &work));
}

static cudaError_t add_callback(struct runtime *runtime, cudaStream_t handle,
                                cudaStreamCallback_t callback, void *data, unsigned flags) {
    const struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL || callback == NULL || flags != 0) {
        return stream == NULL ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
    }
    if (stream->capture != NULL) {
        return capture_spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
    }
    program_callback(runtime, callback, handle, data);
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned flags) {
    WAITING_CALL(runtime, flights_wait_for(runtime, stream_find(runtime, stream)),
                 add_callback(runtime, stream, callback, data, flags));
}

static cudaError_t priority_range(int *least, int *greatest) {
    if (least != NULL) {
        *least = LOWEST_PRIORITY;
    }
    if (greatest != NULL) {
        *greatest = HIGHEST_PRIORITY;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    QUERY_CALL(runtime, priority_range(least, greatest));
}

/**
 * @file event.c
 * @brief Events: a point of modelled time, or of a capture.
 */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

struct CUevent_st {
    unsigned flags;
    int device; /**< of the stream that it was recorded in last; first, of its creation */
    bool recorded;
    struct order_clock clock; /**< what comes before it */
    double time;              /**< modelled nanoseconds */
    uint64_t promised, come;  /**< records so far: asked for, and done; see flight.h */
    bool destroyed;           /**< goes when all have come */
    struct CUevent_st *of;    /**< of another program: the event that it stands for; else NULL */
    unsigned users;           /**< that other programs have opened */
    uint64_t number;          /**< among those that they may open; 0: none of these */
    struct CUevent_st *next_shared;
    unsigned long long capture; /**< id of the capture it was last recorded in; 0: none */
    struct node_list after;     /**< captured work it stands for */
    struct CUevent_st *next;
};

static struct CUevent_st *find(struct runtime *runtime, cudaEvent_t handle) {
    struct CUevent_st *event = runtime->events;
    while (event != NULL && (event != handle || event->destroyed)) {
        event = event->next;
    }
    return event != NULL && event->of != NULL ? event->of : event;
}

uint64_t event_promise(cudaEvent_t event) {
    return ++event->promised;
}

uint64_t event_promised(cudaEvent_t event) {
    return event->promised;
}

bool event_has_come(cudaEvent_t event, uint64_t number) {
    return event->come >= number;
}

static cudaError_t create(struct runtime *runtime, cudaEvent_t *handle, unsigned flags) {
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (handle == NULL || (flags & ~known) != 0) {
        return cudaErrorInvalidValue;
    }
    bool shared = (flags & cudaEventInterprocess) != 0;
    if (shared && (flags & cudaEventDisableTiming) == 0) {
        return cudaErrorInvalidValue;
    }
    struct CUevent_st *event = calloc(1, sizeof *event);
    if (event == NULL) {
        return cudaErrorMemoryAllocation;
    }
    event->flags = flags;
    event->device = runtime->device;
    event->next = runtime->events;
    runtime->events = event;
    *handle = event;
    if (shared) {
        static uint64_t numbers;
        event->number = ++numbers;
        event->next_shared = runtime->shared_events;
        runtime->shared_events = event;
    }
    return cudaSuccess;
}

/* ---- Between processes ---- */

struct event_handle {
    char magic[8];
    uint64_t key[2], number;
};

static const char MAGIC[8] = {'s', 'i', 'm', 't', '-', 'e', 'v', 't'};

static cudaError_t get_handle(struct runtime *runtime, cudaIpcEventHandle_t *handle,
                              cudaEvent_t given) {
    const struct CUevent_st *event = find(runtime, given);
    if (handle == NULL || event == NULL || event->number == 0) {
        return handle == NULL ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    struct event_handle made = {.key = {runtime->key[0], runtime->key[1]}, .number = event->number};
    memcpy(made.magic, MAGIC, sizeof made.magic);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &made, sizeof made);
    return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
    DEVICE_CALL(runtime, runtime_is_shared(runtime, __func__) ? get_handle(runtime, handle, event)
                                                              : cudaErrorNotSupported);
}

static cudaError_t open_handle(struct runtime *runtime, cudaEvent_t *opened,
                               cudaIpcEventHandle_t given) {
    struct event_handle handle;
    struct CUevent_st *event = runtime->shared_events;
    memcpy(&handle, &given, sizeof handle);
    while (event != NULL && event->number != handle.number) {
        event = event->next_shared;
    }
    if (opened == NULL || event == NULL || event->destroyed ||
        memcmp(handle.magic, MAGIC, sizeof MAGIC) != 0 ||
        memcmp(handle.key, runtime->key, sizeof handle.key) != 0) {
        return opened == NULL ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    struct CUevent_st *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return cudaErrorMemoryAllocation;
    }
    made->of = event;
    event->users++;
    made->next = runtime->events;
    runtime->events = made;
    *opened = made;
    return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle) {
    DEVICE_CALL(runtime, runtime_is_shared(runtime, __func__) ? open_handle(runtime, event, handle)
                                                              : cudaErrorNotSupported);
}

static void forget_shared(struct runtime *runtime, const struct CUevent_st *event) {
    struct CUevent_st **link = &runtime->shared_events;
    while (*link != NULL && *link != event) {
        link = &(*link)->next_shared;
    }
    if (*link != NULL) {
        *link = event->next_shared;
    }
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    DEVICE_CALL(runtime, create(runtime, event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    DEVICE_CALL(runtime, create(runtime, event, flags));
}

static cudaError_t destroy(struct runtime *runtime, cudaEvent_t handle) {
    struct CUevent_st **link = &runtime->events;
    struct CUevent_st *busy = find(runtime, handle);
    if (busy != NULL && (busy->users > 0 || busy != handle)) {
        handle->destroyed = true; /* of what programs share nothing goes before they do */
        return cudaSuccess;
    }
    if (busy != NULL && (busy->come < busy->promised || runtime->flights.count > 0)) {
        busy->destroyed = true; /* work that is not done may still wait for it */
        return cudaSuccess;
    }
    while (*link != NULL && *link != handle) {
        link = &(*link)->next;
    }
    struct CUevent_st *event = *link;
    if (event == NULL || event->destroyed) {
        return cudaErrorInvalidResourceHandle;
    }
    *link = event->next;
    forget_shared(runtime, event);
    node_list_free(&event->after);
    order_clock_free(&event->clock);
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    DEVICE_CALL(runtime, destroy(runtime, event));
}

static void record_at(struct runtime *runtime, struct CUevent_st *event,
                      struct CUstream_st *stream) {
    event->recorded = true;
    order_clock_free(&event->clock);
    order_record(runtime, stream, &event->clock);
    event->device = stream->device;
    event->time = runtime_clock_of(runtime, stream->device);
}

static cudaError_t record(struct runtime *runtime, cudaEvent_t handle, cudaStream_t on) {
    struct CUevent_st *event = find(runtime, handle);
    struct CUstream_st *stream = stream_find(runtime, on);
    if (event == NULL || stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    CUDA_TRY(capture_allows_use(runtime, stream));
    event->after.count = 0;
    event->capture = 0;
    if (stream->capture != NULL) {
        event->capture = stream->capture->id;
        return node_list_merge(&event->after, &stream->tail)
                   ? cudaSuccess
                   : capture_spoil(stream->capture, cudaErrorMemoryAllocation);
    }
    cudaError_t error = cudaSuccess;
    if (flight_records(runtime, stream, event, &error)) {
        return error;
    }
    event->come = event_promise(event);
    record_at(runtime, event, stream);
    return cudaSuccess;
}

cudaError_t event_check(struct runtime *runtime, cudaEvent_t event) {
    return find(runtime, event) != NULL ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

void event_record_now(struct runtime *runtime, cudaEvent_t event) {
    record_at(runtime, event, runtime->order.stream);
}

/** Work of the selected device comes after an event of another one. */
static void come_after(struct runtime *runtime, const struct CUevent_st *event,
                       struct CUstream_st *stream) {
    order_learn(&stream->clock, &event->clock);
    if (event->recorded && event->device != stream->device) {
        int device = runtime->device;
        runtime_select(runtime, stream->device);
        runtime->clock = event->time > runtime->clock ? event->time : runtime->clock;
        runtime_select(runtime, device);
    }
}

void event_keep(struct runtime *runtime, cudaEvent_t event, uint64_t number) {
    (void)runtime;
    event->come = number > event->come ? number : event->come;
}

void event_wait_now(struct runtime *runtime, cudaEvent_t event) {
    come_after(runtime, event, runtime->order.stream);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    DEVICE_CALL(runtime, record(runtime, event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    (void)flags;
    return cudaEventRecord(event, stream);
}

static cudaError_t wait(struct runtime *runtime, cudaEvent_t handle) {
    const struct CUevent_st *event = find(runtime, handle);
    if (event == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (event->recorded) {
        runtime_meet(runtime, event->time);
    }
    order_waited(runtime, &event->clock);
    return event->capture != 0 ? cudaErrorCapturedEvent : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    WAITING_CALL(runtime, flights_wait_for_event(runtime, find(runtime, event)),
                 wait(runtime, event));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    WAITING_CALL(runtime, flights_ask_event(runtime, find(runtime, event)), wait(runtime, event));
}

static cudaError_t elapsed(struct runtime *runtime, float *milliseconds, cudaEvent_t from,
                           cudaEvent_t to) {
    const struct CUevent_st *start = find(runtime, from);
    const struct CUevent_st *stop = find(runtime, to);
    if (milliseconds == NULL) {
        return cudaErrorInvalidValue;
    }
    if (start == NULL || stop == NULL || !start->recorded || !stop->recorded ||
        ((start->flags | stop->flags) & cudaEventDisableTiming) != 0) {
        return cudaErrorInvalidResourceHandle;
    }
    if (start->come < start->promised || stop->come < stop->promised) {
        return cudaErrorNotReady;
    }
    order_waited(runtime, &start->clock); /* a time is known of events that have come */
    order_waited(runtime, &stop->clock);
    *milliseconds = (float)((stop->time - start->time) / 1e6);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    DEVICE_CALL(runtime, elapsed(runtime, milliseconds, start, stop));
}

/** A stream that waits for captured work takes part in its capture from then on. */
static cudaError_t join(struct capture *capture, struct CUstream_st *stream,
                        const struct CUevent_st *event) {
    if (stream->capture != NULL && stream->capture != capture) {
        return capture_spoil(stream->capture, cudaErrorStreamCaptureMerge);
    }
    stream->capture = capture;
    return node_list_merge(&stream->tail, &event->after)
               ? cudaSuccess
               : capture_spoil(capture, cudaErrorMemoryAllocation);
}

static cudaError_t stream_wait(struct runtime *runtime, cudaStream_t handle, cudaEvent_t on) {
    struct CUevent_st *event = find(runtime, on);
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (event == NULL || stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    struct capture *capture = event->capture != 0 ? capture_find(runtime, event->capture) : NULL;
    if (capture != NULL && stream != runtime->default_stream) {
        return join(capture, stream, event);
    }
    if (stream->capture != NULL && event->recorded) {
        return capture_spoil(stream->capture, cudaErrorStreamCaptureIsolation);
    }
    cudaError_t error = cudaSuccess;
    if (flight_waits(runtime, stream, event, &error)) {
        return error;
    }
    come_after(runtime, event, stream);
    return capture_allows_use(runtime, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    DEVICE_CALL(runtime, stream_wait(runtime, stream, event));
}

#include "common/simt/runtime/stream/flight.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/simt/runtime/graph/condition.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

struct flight {
    struct runtime *runtime;
    struct CUstream_st *stream;
    struct work work; /* owned */
    uint64_t serial;
    uint64_t number; /* of the event that it records or waits for */
    bool started, done, expired, progressed;
    bool waits;     /* for others, as of its last turn */
    uint64_t slept; /* since which of all turns */
    pthread_t thread;
    struct CUstream_st *order_stream; /* what struct runtime_order has while it runs */
    struct simt_footprint *footprint;
    uint64_t peer_bytes;
    cudaError_t *error; /* of the call that added it, while that lasts; or NULL */
    struct flight *next;
};

struct shadow_list {
    struct simt_global_shadow *shadow;
    struct shadow_list *next;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Which work, and when ---- */

static bool is_blocking(const struct CUstream_st *stream) {
    return (stream->flags & cudaStreamNonBlocking) == 0;
}

/* The oldest flight of the streams that a stream's work is in order with, its own first. */
static const struct flight *oldest_before(const struct runtime *runtime,
                                          const struct CUstream_st *stream) {
    const struct CUstream_st *by_default = stream_default(runtime, stream->device);
    const struct flight *oldest = stream->flights;
    if (stream != by_default) {
        const struct flight *other = is_blocking(stream) ? by_default->flights : NULL;
        return oldest == NULL || (other != NULL && other->serial < oldest->serial) ? other : oldest;
    }
    for (const struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        bool ordered = s->device == stream->device && is_blocking(s) && s->flights != NULL;
        if (ordered && (oldest == NULL || s->flights->serial < oldest->serial)) {
            oldest = s->flights;
        }
    }
    return oldest;
}

static bool may_wait(const struct work *work) {
    struct CUgraph_st *const *graphs = NULL;
    size_t count = work_graphs(work, &graphs);
    bool waits = work->kind == WORK_COLLECTIVE ||
                 (work->kind == WORK_KERNEL &&
                  (work->kernel.cooperative || work->kernel.kernel->info.order_sensitive));
    for (size_t g = 0; g < count; g++) {
        for (size_t n = 0; !waits && n < graphs[g]->all.count; n++) {
            waits = may_wait(&graphs[g]->all.nodes[n]->work);
        }
    }
    return waits;
}

bool flight_is_needed(const struct runtime *runtime, const struct CUstream_st *stream,
                      const struct work *work) {
    return runtime->settings.devices > 1 &&
           (oldest_before(runtime, stream) != NULL || may_wait(work));
}

static bool is_ready(const struct runtime *runtime, const struct flight *flight) {
    if (flight->work.kind == WORK_WAIT && !event_has_come(flight->work.event, flight->number)) {
        return false;
    }
    return flight->started || oldest_before(runtime, flight->stream) == flight;
}

void flights_stir(struct runtime *runtime) {
    runtime->flights.quiet = runtime->flights.count > 0 ? now() : 0;
    runtime->flights.vain = 0;
}

/* ---- Turns ---- */

static const char *name_of(const struct work *work) {
    return work->kind == WORK_KERNEL  ? work->kernel.kernel->readable
           : work->kind == WORK_GRAPH ? "a graph"
                                      : work->call;
}

/* On the flight's own thread, or on that of the call where the work cannot wait. */
static void run(struct flight *flight) {
    struct runtime *runtime = flight->runtime;
    const struct work *work = &flight->work;
    cudaError_t error = cudaSuccess;
    runtime->order.stream = flight->stream;
    if (runtime->sticky != cudaSuccess) {
        error = cudaSuccess; /* nothing runs any more on this device */
    } else if (work->kind == WORK_RECORD || work->kind == WORK_WAIT) {
        error = work_run(runtime, work, false);
    } else {
        order_begin(runtime, flight->stream);
        if (work->kind == WORK_GRAPH) {
            error = graph_begin(runtime, work->graph);
        }
        error = error != cudaSuccess ? error : work_run(runtime, work, false);
        order_end(runtime, flight->stream, name_of(work));
    }
    if (work->kind == WORK_RECORD) {
        event_keep(runtime, work->event, flight->number);
    }
    if (flight->error != NULL) {
        *flight->error = error;
    } else if (error != cudaSuccess && runtime->pending == cudaSuccess) {
        runtime->pending = error;
    }
    flight->done = true;
}

static void wait_for_turn(struct runtime_flights *flights, const struct flight *turn) {
    while (flights->turn != turn) {
        pthread_cond_wait(&flights->changed, &flights->lock);
    }
}

static void give_turn(struct runtime_flights *flights, struct flight *to) {
    flights->turn = to;
    pthread_cond_broadcast(&flights->changed);
}

static void *live(void *argument) {
    struct flight *flight = argument;
    struct runtime_flights *flights = &flight->runtime->flights;
    pthread_mutex_lock(&flights->lock);
    wait_for_turn(flights, flight);
    pthread_mutex_unlock(&flights->lock);
    run(flight);
    pthread_mutex_lock(&flights->lock);
    give_turn(flights, NULL);
    pthread_mutex_unlock(&flights->lock);
    return NULL;
}

bool flight_runs(const struct runtime *runtime) {
    return runtime->flights.turn != NULL &&
           pthread_equal(runtime->flights.turn->thread, pthread_self());
}

enum simt_late_way flight_way(struct runtime *runtime) {
    /* An odd number, and neighbours of each kind, so that the launches of two and of more devices
     * meet each other in many ways. */
    static const enum simt_late_way ways[] = {SIMT_LATE_STORES, SIMT_LATE_STORES, SIMT_LATE_NONE,
                                              SIMT_LATE_STORES, SIMT_LATE_LOADS,  SIMT_LATE_NONE,
                                              SIMT_LATE_NONE};
    enum { MOST = 512, SELDOM = 8 }; /* a long program does not take much longer */
    size_t launch = runtime->flights.launches++;
    bool races = (runtime->settings.check & SIMT_CHECK_RACES) != 0;
    bool is_tried = launch < MOST || launch % SELDOM == 0;
    return races && is_tried ? ways[launch % (sizeof ways / sizeof *ways)] : SIMT_LATE_NONE;
}

bool flight_yield(struct runtime *runtime, bool progress, bool waits) {
    struct runtime_flights *flights = &runtime->flights;
    struct flight *flight = flights->turn;
    flight->progressed = flight->progressed || progress;
    flight->waits = waits;
    flight->slept = ++flights->slept;
    pthread_mutex_lock(&flights->lock);
    give_turn(flights, NULL);
    wait_for_turn(flights, flight);
    pthread_mutex_unlock(&flights->lock);
    return !flight->expired;
}

/* Lets a flight's thread run until it is done or yields. */
static void give_thread_its_turn(struct runtime *runtime, struct flight *flight) {
    struct runtime_flights *flights = &runtime->flights;
    struct CUstream_st *stream = runtime->order.stream;
    struct simt_footprint *footprint = runtime->order.footprint;
    runtime->order.stream = flight->order_stream;
    runtime->order.footprint = flight->footprint;
    runtime->order.peer_bytes = flight->peer_bytes;
    runtime->order.name = name_of(&flight->work);
    pthread_mutex_lock(&flights->lock);
    give_turn(flights, flight);
    wait_for_turn(flights, NULL);
    pthread_mutex_unlock(&flights->lock);
    flight->order_stream = runtime->order.stream;
    flight->footprint = runtime->order.footprint;
    flight->peer_bytes = runtime->order.peer_bytes;
    runtime->order.peer_bytes = 0;
    runtime->order.stream = stream;
    runtime->order.footprint = footprint;
    runtime->order.name = NULL;
    if (flight->done) {
        pthread_join(flight->thread, NULL);
        flights->started--;
    }
}

static bool start_thread(struct flight *flight) {
    return may_wait(&flight->work) && pthread_create(&flight->thread, NULL, live, flight) == 0;
}

static void give_turn_to(struct runtime *runtime, struct flight *flight) {
    int device = runtime->device;
    runtime_select(runtime, flight->stream->device);
    flight->progressed = flight->waits = false;
    if (!flight->started && start_thread(flight)) {
        flight->started = true;
        runtime->flights.started++;
    }
    if (flight->started) {
        give_thread_its_turn(runtime, flight);
    } else {
        run(flight);
    }
    runtime_select(runtime, device);
}

static void land(struct runtime *runtime, struct flight *flight) {
    flight->stream->flights = flight->next;
    runtime->flights.count--;
    work_free(&flight->work);
    free(flight);
}

/* Gives the flights of a stream their turn. @param wakes also one that waits
 * @return whether something happened */
static bool go(struct runtime *runtime, struct CUstream_st *stream, bool wakes, bool *landed) {
    bool progress = false;
    while (stream->flights != NULL && is_ready(runtime, stream->flights)) {
        struct flight *flight = stream->flights;
        if (flight->waits && !wakes) {
            return progress;
        }
        give_turn_to(runtime, flight);
        if (!flight->done) {
            return progress || flight->progressed;
        }
        land(runtime, flight);
        progress = *landed = true;
    }
    return progress;
}

/* Gives all flights their turn, until no flight ends. @param wakes also those that wait */
static bool go_round(struct runtime *runtime, bool wakes) {
    bool progress = false;
    bool landed = runtime->flights.count > 0;
    while (landed) {
        landed = false;
        for (int d = 0; d < runtime->settings.devices; d++) {
            progress = go(runtime, stream_default(runtime, d), wakes, &landed) || progress;
        }
        for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
            progress = go(runtime, s, wakes, &landed) || progress;
        }
    }
    return progress;
}

/* The stream whose flight has waited longest, and not only since turn `since`; or NULL. */
static struct CUstream_st *longest_waiting(struct runtime *runtime, uint64_t since) {
    struct CUstream_st *longest = NULL;
    for (int d = 0; d < runtime->settings.devices; d++) {
        struct CUstream_st *s = stream_default(runtime, d);
        if (s->flights != NULL && s->flights->waits && s->flights->slept <= since) {
            since = s->flights->slept;
            longest = s;
        }
    }
    for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        if (s->flights != NULL && s->flights->waits && s->flights->slept <= since) {
            since = s->flights->slept;
            longest = s;
        }
    }
    return longest;
}

/* Wakes those that wait, one after the other until one gets on. */
static bool wake(struct runtime *runtime) {
    uint64_t since = runtime->flights.slept;
    struct CUstream_st *stream;
    bool progress = false, landed = false;
    runtime->flights.ahead = 0;
    while (!progress && (stream = longest_waiting(runtime, since)) != NULL) {
        progress = go(runtime, stream, true, &landed);
    }
    return progress;
}

/* Gives all flights their turn, or those that do not wait. @return whether something happened */
static bool go_all(struct runtime *runtime) {
    enum { MOST_AHEAD = 256 }; /* rounds: then who waits has its turn, come what may */
    bool fair =
        (runtime->settings.check & SIMT_CHECK_RACES) == 0 || runtime->flights.ahead >= MOST_AHEAD;
    bool progress = go_round(runtime, fair);
    runtime->flights.ahead = fair ? 0 : runtime->flights.ahead + 1;
    progress = progress || (!fair && wake(runtime));
    runtime->flights.vain++;
    if (progress) {
        flights_stir(runtime);
    }
    return progress;
}

/* ---- Submitting ---- */

static struct flight *add(struct runtime *runtime, struct CUstream_st *stream,
                          const struct work *work) {
    struct flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL || work_duplicate(&flight->work, work) != cudaSuccess) {
        free(flight);
        return NULL;
    }
    flight->runtime = runtime;
    flight->stream = stream;
    flight->serial = ++runtime->flights.serial;
    struct flight **end = &stream->flights;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = flight;
    runtime->flights.count++;
    flights_stir(runtime);
    return flight;
}

cudaError_t flight_add(struct runtime *runtime, struct CUstream_st *stream,
                       const struct work *work) {
    cudaError_t error = cudaSuccess;
    struct flight *flight = add(runtime, stream, work);
    if (flight == NULL) {
        return cudaErrorMemoryAllocation;
    }
    uint64_t serial = flight->serial;
    flight->error = &error;
    go_all(runtime);
    for (flight = stream->flights; flight != NULL; flight = flight->next) {
        if (flight->serial == serial) {
            flight->error = NULL; /* the call ends before it does */
        }
    }
    return error;
}

static bool add_of_event(struct runtime *runtime, struct CUstream_st *stream, enum work_kind kind,
                         cudaEvent_t event, cudaError_t *error) {
    const struct work work = {.kind = kind, .call = "cudaEventRecord", .event = event};
    struct flight *flight = add(runtime, stream, &work);
    *error = flight != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
    if (flight != NULL) {
        flight->number = kind == WORK_RECORD ? event_promise(event) : event_promised(event);
        go_all(runtime);
    }
    return true;
}

bool flight_records(struct runtime *runtime, struct CUstream_st *stream, cudaEvent_t event,
                    cudaError_t *error) {
    return oldest_before(runtime, stream) != NULL &&
           add_of_event(runtime, stream, WORK_RECORD, event, error);
}

bool flight_waits(struct runtime *runtime, struct CUstream_st *stream, cudaEvent_t event,
                  cudaError_t *error) {
    bool has_come = event_has_come(event, event_promised(event));
    return (!has_come || oldest_before(runtime, stream) != NULL) &&
           add_of_event(runtime, stream, WORK_WAIT, event, error);
}

/* ---- Waiting ---- */

/* What a call waits for. */
struct goal {
    const struct CUstream_st *stream;
    struct CUevent_st *event;
    uint64_t number;
    bool device;
};

static bool is_device_idle(const struct runtime *runtime) {
    bool idle = runtime->default_stream->flights == NULL;
    for (const struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        idle = idle && (s->device != runtime->device || s->flights == NULL);
    }
    return idle;
}

static bool is_reached(const struct runtime *runtime, const struct goal *goal) {
    return goal->event != NULL ? event_has_come(goal->event, goal->number)
           : goal->device      ? is_device_idle(runtime)
                               : oldest_before(runtime, goal->stream) == NULL;
}

/* Nothing has happened for long: flights that have begun are told so. */
static void expire(struct runtime *runtime) {
    const double turns = 20; /* a second, fewer than there are */
    double patience = runtime->settings.wait_seconds;
    if (now() - runtime->flights.quiet < patience ||
        (double)runtime->flights.vain < turns * patience) {
        return;
    }
    for (int d = 0; d < runtime->settings.devices; d++) {
        struct flight *flight = stream_default(runtime, d)->flights;
        if (flight != NULL) {
            flight->expired = true;
        }
    }
    for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        if (s->flights != NULL) {
            s->flights->expired = true;
        }
    }
}

/* Other host threads may submit what is waited for. */
static void let_others_call(struct runtime *runtime) {
    const struct timespec pause = {.tv_nsec = 200000};
    pthread_mutex_unlock(&runtime->lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&runtime->lock);
}

static cudaError_t wait_until(struct runtime *runtime, const struct goal *goal) {
    const double most = 0.005; /* seconds without a chance for others */
    int device = runtime->device;
    double begin = now();
    while (!is_reached(runtime, goal)) {
        bool progress = go_all(runtime);
        if (progress && now() - begin < most) {
            continue;
        }
        if (!progress) {
            expire(runtime);
        }
        if (runtime->program != NULL && !is_reached(runtime, goal)) {
            return SIMT_ERROR_AGAIN;
        }
        let_others_call(runtime);
        runtime_select(runtime, device);
        begin = now();
    }
    return cudaSuccess;
}

cudaError_t flights_wait_for(struct runtime *runtime, struct CUstream_st *stream) {
    return runtime->flights.count == 0 || stream == NULL
               ? cudaSuccess
               : wait_until(runtime, &(struct goal){.stream = stream});
}

cudaError_t flights_wait_for_device(struct runtime *runtime) {
    return runtime->flights.count == 0 ? cudaSuccess
                                       : wait_until(runtime, &(struct goal){.device = true});
}

cudaError_t flights_wait_for_event(struct runtime *runtime, struct CUevent_st *event) {
    return runtime->flights.count == 0 || event == NULL
               ? cudaSuccess
               : wait_until(runtime,
                            &(struct goal){.event = event, .number = event_promised(event)});
}

static cudaError_t ask(struct runtime *runtime, const struct goal *goal) {
    if (!is_reached(runtime, goal)) {
        go_all(runtime);
        expire(runtime);
    }
    return is_reached(runtime, goal) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t flights_ask(struct runtime *runtime, struct CUstream_st *stream) {
    return runtime->flights.count == 0 || stream == NULL
               ? cudaSuccess
               : ask(runtime, &(struct goal){.stream = stream});
}

cudaError_t flights_ask_event(struct runtime *runtime, struct CUevent_st *event) {
    return runtime->flights.count == 0 || event == NULL
               ? cudaSuccess
               : ask(runtime, &(struct goal){.event = event, .number = event_promised(event)});
}

/* ---- Shadows ---- */

struct simt_global_shadow *flight_take_shadow(struct runtime *runtime) {
    struct shadow_list *spare = runtime->flights.spare;
    struct simt_global_shadow *shadow = NULL;
    if (spare != NULL) {
        runtime->flights.spare = spare->next;
        shadow = spare->shadow;
        free(spare);
        return shadow;
    }
    bool races = (runtime->settings.check & SIMT_CHECK_RACES) != 0;
    return races && simt_global_shadow_create(&shadow, runtime->memory) == STATUS_OK ? shadow
                                                                                     : NULL;
}

void flight_give_shadow(struct runtime *runtime, struct simt_global_shadow *shadow) {
    struct shadow_list *spare = shadow != NULL ? malloc(sizeof *spare) : NULL;
    if (spare == NULL) {
        simt_global_shadow_free(shadow);
        return;
    }
    *spare = (struct shadow_list){.shadow = shadow, .next = runtime->flights.spare};
    runtime->flights.spare = spare;
}

bool flights_are_begun(const struct runtime *runtime) {
    return runtime->flights.started > (flight_runs(runtime) ? 1u : 0u);
}

/* Its thread waits for a turn until the process ends. */
static void drop(struct runtime *runtime, struct CUstream_st *stream) {
    if (stream->flights != NULL && stream->flights->started) {
        runtime_explain(runtime, "%s on device %d had not ended when the program did",
                        name_of(&stream->flights->work), stream->device);
    }
    for (const struct flight *f = stream->flights; f != NULL; f = f->next) {
        runtime->flights.count--;
        runtime->flights.started -= f->started;
    }
    stream->flights = NULL;
}

void flights_finish(struct runtime *runtime) {
    while (runtime->flights.count > 0 && go_all(runtime)) {
    }
    for (int d = 0; runtime->flights.count > 0 && d < runtime->settings.devices; d++) {
        drop(runtime, stream_default(runtime, d));
    }
    for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        drop(runtime, s);
    }
}

/* Ends the flights of a stream that have begun, and drops the others. */
static void abandon(struct runtime *runtime, struct CUstream_st *stream) {
    while (stream->flights != NULL) {
        struct flight *flight = stream->flights;
        flight->expired = true;
        while (flight->started && !flight->done) {
            give_turn_to(runtime, flight);
        }
        land(runtime, flight);
    }
}

void flights_abandon(struct runtime *runtime) {
    for (int d = 0; d < runtime->settings.devices; d++) {
        abandon(runtime, stream_default(runtime, d));
    }
    for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        abandon(runtime, s);
    }
}

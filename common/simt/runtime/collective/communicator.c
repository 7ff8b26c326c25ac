#include "common/simt/runtime/collective/communicator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

struct communicator *communicator_find(const struct runtime *runtime, uint64_t number) {
    struct communicator *c = runtime->communicators;
    while (c != NULL && c->number != number) {
        c = c->next;
    }
    return c;
}

void communicator_fail(struct runtime *runtime, struct communicator *c, enum collective_state state,
                       const char *format, ...) {
    if (c->state != COLLECTIVE_GOOD) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(c->text, sizeof c->text, format, args);
    va_end(args);
    c->state = state;
    c->told = runtime->program;
    runtime->findings++;
    runtime_say("NCCL: %s", c->text);
}

void communicator_tell(const struct runtime *runtime, struct communicator *c) {
    if (c->state != COLLECTIVE_GOOD && c->told != runtime->program) {
        c->told = runtime->program;
        runtime_say("NCCL: %s", c->text);
    }
}

static struct communicator *find_key(const struct runtime *runtime, const uint64_t key[2]) {
    struct communicator *c = runtime->communicators;
    while (c != NULL && (c->key[0] != key[0] || c->key[1] != key[1])) {
        c = c->next;
    }
    return c;
}

static struct communicator *make(struct runtime *runtime, const struct collective_join *join) {
    struct communicator *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->key[0] = join->key[0];
        c->key[1] = join->key[1];
        c->number = ++runtime->communicator_count;
        c->ranks = join->ranks;
        c->next = runtime->communicators;
        runtime->communicators = c;
    }
    return c;
}

static void refuse(struct collective_join *join, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void refuse(struct collective_join *join, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(join->text, sizeof join->text, format, args);
    va_end(args);
    join->state = COLLECTIVE_INVALID;
}

/** A rank that comes for the first time. */
static void come(struct runtime *runtime, struct communicator *c, struct collective_join *join) {
    if (c->ranks != join->ranks) {
        refuse(join, "rank %u says %u ranks, others of the same ncclUniqueId say %u", join->rank,
               join->ranks, c->ranks);
        return;
    }
    if (c->has_come[join->rank]) {
        refuse(join, "rank %u of %u comes twice: each needs its own number", join->rank, c->ranks);
        return;
    }
    for (uint32_t r = 0; r < c->ranks; r++) {
        if (c->has_come[r] && c->devices[r] == join->device) {
            refuse(join,
                   "ranks %u and %u both use device %d: each rank needs its own "
                   "(cudaSetDevice before ncclCommInitRank)",
                   r, join->rank, join->device);
            return;
        }
    }
    c->has_come[join->rank] = true;
    c->devices[join->rank] = join->device;
    c->programs[join->rank] = runtime->program;
    c->come++;
    join->has_come = 1;
}

static cudaError_t join_ranks(struct runtime *runtime, struct collective_join *join) {
    if (join == NULL || join->ranks < 1 || join->ranks > COLLECTIVE_MOST_RANKS ||
        join->rank >= join->ranks || join->device < 0 ||
        join->device >= runtime->settings.devices) {
        return cudaErrorInvalidValue;
    }
    join->text[0] = '\0';
    join->state = COLLECTIVE_WAITS;
    struct communicator *c = find_key(runtime, join->key);
    if (c == NULL && !join->has_come) {
        c = make(runtime, join);
    }
    if (c == NULL) {
        join->state = join->has_come ? COLLECTIVE_REMOTE : COLLECTIVE_OUT_OF_MEMORY;
        return cudaSuccess;
    }
    if (!join->has_come) {
        come(runtime, c, join);
    }
    join->communicator = c->number;
    if (join->state == COLLECTIVE_WAITS && c->state != COLLECTIVE_GOOD) {
        join->state = c->state;
        snprintf(join->text, sizeof join->text, "%s", c->text);
    } else if (join->state == COLLECTIVE_WAITS && c->come == c->ranks) {
        join->state = COLLECTIVE_GOOD;
    } else if (join->state == COLLECTIVE_WAITS) {
        uint32_t missing = 0;
        while (c->has_come[missing]) {
            missing++;
        }
        snprintf(join->text, sizeof join->text, "%u of %u ranks have come; rank %u has not",
                 c->come, c->ranks, missing);
    }
    return cudaSuccess;
}

cudaError_t simt_collective_join(struct collective_join *join) {
    QUERY_CALL(runtime, join_ranks(runtime, join));
}

/** Whose call it is. */
static struct communicator *of_rank(const struct runtime *runtime, uint64_t number, uint32_t rank) {
    struct communicator *c = communicator_find(runtime, number);
    bool own = c != NULL && rank < c->ranks && c->has_come[rank] && !c->has_gone[rank] &&
               c->programs[rank] == runtime->program;
    return own ? c : NULL;
}

static void forget(struct runtime *runtime, struct communicator *c) {
    struct communicator **link = &runtime->communicators;
    while (*link != c) {
        link = &(*link)->next;
    }
    *link = c->next;
    while (c->meetings != NULL) {
        struct meeting *meeting = c->meetings;
        c->meetings = meeting->next;
        order_clock_free(&meeting->clock);
        free(meeting);
    }
    free(c);
}

void communicators_sweep(struct runtime *runtime) {
    for (struct communicator *c = runtime->communicators, *next; c != NULL; c = next) {
        next = c->next;
        if (c->gone == c->come && c->pending == NULL) {
            forget(runtime, c);
        }
    }
}

void communicators_leave(struct runtime *runtime) {
    for (struct communicator *c = runtime->communicators; c != NULL; c = c->next) {
        for (uint32_t r = 0; r < c->ranks; r++) {
            if (!c->has_come[r] || c->has_gone[r] || c->programs[r] != runtime->program) {
                continue;
            }
            c->has_gone[r] = true;
            c->gone++;
            communicator_fail(runtime, c, COLLECTIVE_REMOTE,
                              "rank %u of %u has ended without ncclCommDestroy()", r, c->ranks);
        }
    }
}

static cudaError_t read_status(struct runtime *runtime, struct collective_status *status) {
    struct communicator *c =
        status != NULL ? of_rank(runtime, status->communicator, status->rank) : NULL;
    if (c == NULL) {
        return cudaErrorInvalidValue;
    }
    if (status->ends == 2) {
        c->aborted = true;
    }
    status->state = c->state;
    snprintf(status->text, sizeof status->text, "%s", c->text);
    if (status->ends != 0) {
        c->has_gone[status->rank] = true;
        c->gone++;
    }
    if (c->gone == c->come && c->pending == NULL && runtime->flights.count == 0) {
        forget(runtime, c);
    }
    return cudaSuccess;
}

cudaError_t simt_collective_status(struct collective_status *status) {
    QUERY_CALL(runtime, read_status(runtime, status));
}

/** What a rank gets: those of its color, by key and then by rank. */
static void give_split(struct communicator *c, struct collective_split *split) {
    split->new_ranks = split->new_rank = 0;
    for (uint32_t r = 0; r < c->ranks; r++) {
        if (c->colors[r] != split->color) {
            continue;
        }
        split->new_ranks++;
        split->new_rank += c->keys[r] < split->key || (c->keys[r] == split->key && r < split->rank);
    }
    /* No unique id has such a key: it would have to be drawn. */
    split->new_key[0] = ~c->number;
    split->new_key[1] = c->splits << 32 | (uint32_t)split->color;
    split->state = COLLECTIVE_GOOD;
    if (++c->split_left == c->ranks) {
        c->split_left = c->split_come = 0;
        c->splits++;
        memset(c->has_split, 0, sizeof c->has_split);
    }
}

static cudaError_t split_ranks(struct runtime *runtime, struct collective_split *split) {
    struct communicator *c =
        split != NULL ? of_rank(runtime, split->communicator, split->rank) : NULL;
    if (c == NULL || c->state != COLLECTIVE_GOOD) {
        return cudaErrorInvalidValue;
    }
    split->state = COLLECTIVE_WAITS;
    split->text[0] = '\0';
    if (!split->has_come) {
        if (c->has_split[split->rank]) { /* the last split is not over for all */
            return cudaSuccess;
        }
        c->has_split[split->rank] = true;
        c->colors[split->rank] = split->color;
        c->keys[split->rank] = split->key;
        c->split_come++;
        split->has_come = 1;
    }
    if (c->split_come == c->ranks) {
        give_split(c, split);
    }
    return cudaSuccess;
}

cudaError_t simt_collective_split(struct collective_split *split) {
    QUERY_CALL(runtime, split_ranks(runtime, split));
}

/* ---- Operations ---- */

size_t collective_work_bytes(const struct collective_work *work) {
    return sizeof *work + work->part_count * sizeof *work->parts;
}

static cudaError_t submit(struct runtime *runtime, struct collective_work *operation,
                          cudaStream_t handle) {
    const struct communicator *c =
        of_rank(runtime, operation->operation.communicator, operation->operation.rank);
    const struct CUstream_st *stream = stream_find(runtime, handle);
    if (c == NULL || stream == NULL) {
        return c == NULL ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    if (stream->device != c->devices[operation->operation.rank]) {
        runtime_explain(runtime, "NCCL: rank %u is on device %d, the stream on device %d",
                        operation->operation.rank, c->devices[operation->operation.rank],
                        stream->device);
        return cudaErrorInvalidResourceHandle;
    }
    struct work work = {.kind = WORK_COLLECTIVE,
                        .call = collective_name(operation->operation.kind),
                        .collective = operation};
    return stream_submit(runtime, handle, &work);
}

static cudaError_t submit_one(struct runtime *runtime, const struct collective *operation,
                              cudaStream_t stream) {
    if (operation == NULL || operation->kind >= COLLECTIVE_EXCHANGE) {
        return cudaErrorInvalidValue;
    }
    struct collective_work work = {.operation = *operation};
    return submit(runtime, &work, stream);
}

/* A stream of NULL is the default stream of the rank's device, which need not be the thread's. */
cudaError_t simt_collective_submit(const struct collective *operation, cudaStream_t stream) {
    DEVICE_CALL(runtime, submit_one(runtime, operation, stream));
}

static cudaError_t submit_parts(struct runtime *runtime, const struct collective_exchange *exchange,
                                cudaStream_t stream) {
    if (exchange == NULL || exchange->part_count > COLLECTIVE_MOST_PARTS) {
        return cudaErrorInvalidValue;
    }
    struct collective_work *work =
        malloc(sizeof *work + exchange->part_count * sizeof *work->parts);
    if (work == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *work = (struct collective_work){.operation = {.communicator = exchange->communicator,
                                                   .rank = exchange->rank,
                                                   .kind = COLLECTIVE_EXCHANGE},
                                     .part_count = exchange->part_count};
    memcpy(work->parts, exchange->parts, exchange->part_count * sizeof *work->parts);
    cudaError_t error = submit(runtime, work, stream);
    free(work);
    return error;
}

cudaError_t simt_collective_exchange(const struct collective_exchange *exchange,
                                     cudaStream_t stream) {
    DEVICE_CALL(runtime, submit_parts(runtime, exchange, stream));
}

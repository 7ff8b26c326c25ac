/*
 * An operation of a communicator: what it needs, how it meets those of the other ranks, what it
 * does, and how long that takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/memory/footprint.h"
#include "common/simt/nccl/reduce.h"
#include "common/simt/runtime/collective/communicator.h"
#include "common/simt/runtime/gpu/link.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

static const char *const OPERATIONS[] = {"sum", "prod", "max", "min", "avg", "premulsum"};

const char *collective_name(uint32_t kind) {
    static const char *const NAMES[] = {
        [COLLECTIVE_ALL_REDUCE] = "ncclAllReduce",
        [COLLECTIVE_REDUCE] = "ncclReduce",
        [COLLECTIVE_BROADCAST] = "ncclBroadcast",
        [COLLECTIVE_ALL_GATHER] = "ncclAllGather",
        [COLLECTIVE_REDUCE_SCATTER] = "ncclReduceScatter",
        [COLLECTIVE_EXCHANGE] = "ncclSend and ncclRecv",
    };
    return kind <= COLLECTIVE_EXCHANGE ? NAMES[kind] : "an unknown operation";
}

static bool reduces(uint32_t kind) {
    return kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE ||
           kind == COLLECTIVE_REDUCE_SCATTER;
}

static bool has_root(uint32_t kind) {
    return kind == COLLECTIVE_REDUCE || kind == COLLECTIVE_BROADCAST;
}

/* ---- What it needs ---- */

/* Bytes that a rank sends and receives; 0: none. @return false: too many */
static bool sizes_of(const struct communicator *c, const struct collective *call, size_t *send,
                     size_t *receive) {
    size_t one, all;
    bool fits = checked_multiply(call->count, collective_type_bytes(call->type), &one) &&
                checked_multiply(one, c->ranks, &all);
    bool is_root = call->rank == call->root;
    *send = *receive = fits ? one : 0;
    switch (call->kind) {
    case COLLECTIVE_REDUCE:
        *receive = is_root ? *receive : 0;
        break;
    case COLLECTIVE_BROADCAST:
        *send = is_root ? *send : 0;
        break;
    case COLLECTIVE_ALL_GATHER:
        *receive = fits ? all : 0;
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        *send = fits ? all : 0;
        break;
    default:
        break;
    }
    return fits;
}

/* A buffer is memory that the rank's device may use, all of it. */
static bool check_buffer(struct runtime *runtime, const char *name, const char *uses,
                         uint64_t address, size_t bytes) {
    struct simt_allocation allocation = {0};
    if (bytes == 0) {
        return true;
    }
    bool found = simt_memory_find(runtime->memory, address, &allocation) && !allocation.freed;
    size_t left = found ? allocation.bytes - (size_t)(address - allocation.address) : 0;
    if (!found || left < bytes) {
        runtime_explain(runtime, "NCCL: %s %s %zu bytes at 0x%llx, %s", name, uses, bytes,
                        (unsigned long long)address,
                        found ? "which is more than the allocation has there"
                              : "which is no memory of a device");
        return false;
    }
    if (!allocation.host && !simt_memory_allows(runtime->memory, allocation.device)) {
        runtime_explain(runtime,
                        "NCCL: %s %s memory of device %d, but the rank's device is %d: each rank "
                        "gives memory of its own device",
                        name, uses, allocation.device, runtime->device);
        return false;
    }
    return true;
}

static bool check_parts(struct runtime *runtime, const struct communicator *c,
                        const struct collective_work *work) {
    for (uint32_t n = 0; n < work->part_count; n++) {
        const struct collective_part *part = &work->parts[n];
        size_t bytes;
        if (part->peer >= c->ranks || part->type >= COLLECTIVE_TYPES ||
            !checked_multiply(part->count, collective_type_bytes(part->type), &bytes) ||
            !check_buffer(runtime, part->sends ? "ncclSend" : "ncclRecv",
                          part->sends ? "reads" : "writes", part->address, bytes)) {
            return false;
        }
    }
    return true;
}

cudaError_t collective_check(struct runtime *runtime, const struct collective_work *work) {
    const struct collective *call = &work->operation;
    const struct communicator *c = communicator_find(runtime, call->communicator);
    size_t send, receive;
    if (c == NULL || call->rank >= c->ranks || call->kind > COLLECTIVE_EXCHANGE) {
        return cudaErrorInvalidValue;
    }
    if (call->kind == COLLECTIVE_EXCHANGE) {
        return check_parts(runtime, c, work) ? cudaSuccess : cudaErrorInvalidValue;
    }
    bool good = call->type < COLLECTIVE_TYPES && call->operation < COLLECTIVE_OPERATIONS &&
                (!has_root(call->kind) || call->root < c->ranks) &&
                sizes_of(c, call, &send, &receive);
    const char *name = collective_name(call->kind);
    good = good && check_buffer(runtime, name, "reads", call->send, send) &&
           check_buffer(runtime, name, "writes", call->receive, receive);
    if (good && call->operation == COLLECTIVE_PRE_MUL_SUM && call->scalar_on_device) {
        good =
            check_buffer(runtime, name, "reads", call->scalar, collective_type_bytes(call->type));
    }
    return good ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- What it does ---- */

static unsigned char *place(const struct runtime *runtime, uint64_t address) {
    return address != 0 ? simt_memory_host(runtime->memory, address) : NULL;
}

static void move(struct runtime *runtime, uint64_t to, uint64_t from, size_t bytes) {
    if (bytes > 0 && to != from) {
        memmove(place(runtime, to), place(runtime, from), bytes);
        if (simt_memory_is_device(runtime->memory, (void *)(uintptr_t)to)) {
            simt_memory_mark_copy(runtime->memory, to, from, bytes);
        }
    }
}

/* Bytes of results are written where all ranks' bytes are, in pieces of 64. */
static void mark(struct runtime *runtime, const struct meeting *m, uint32_t ranks, size_t offset,
                 uint64_t to, size_t bytes) {
    enum { PIECE = 64 };
    for (size_t at = 0, piece; at < bytes; at += piece) {
        bool written = true;
        piece = bytes - at < PIECE ? bytes - at : PIECE;
        for (uint32_t r = 0; r < ranks; r++) {
            written = written &&
                      simt_memory_written(runtime->memory, m->calls[r].send + offset + at, piece);
        }
        if (written) {
            simt_memory_mark(runtime->memory, to + at, piece);
        }
    }
}

static uint64_t scalar_of(const struct runtime *runtime, const struct collective *call) {
    uint64_t scalar = call->scalar;
    if (call->operation == COLLECTIVE_PRE_MUL_SUM && call->scalar_on_device) {
        scalar = 0;
        memcpy(&scalar, place(runtime, call->scalar), collective_type_bytes(call->type));
    }
    return scalar;
}

/* @param offset in the ranks' inputs  @param to outputs, whose count is `outputs` */
static void reduce_to(struct runtime *runtime, const struct meeting *m, uint32_t ranks,
                      size_t offset, const uint64_t *to, uint32_t outputs) {
    const struct collective *call = &m->calls[0];
    const unsigned char *inputs[COLLECTIVE_MOST_RANKS];
    unsigned char *places[COLLECTIVE_MOST_RANKS];
    uint64_t scalars[COLLECTIVE_MOST_RANKS];
    if (call->count == 0) {
        return;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        inputs[r] = place(runtime, m->calls[r].send + offset);
        scalars[r] = scalar_of(runtime, &m->calls[r]);
    }
    for (uint32_t n = 0; n < outputs; n++) {
        places[n] = place(runtime, to[n]);
    }
    size_t bytes = call->count * collective_type_bytes(call->type);
    for (uint32_t n = 0; n < outputs; n++) {
        mark(runtime, m, ranks, offset, to[n], bytes);
    }
    collective_reduce((enum collective_type)call->type, (enum collective_operation)call->operation,
                      inputs, ranks, places, outputs, call->count, scalars);
}

static void act(struct runtime *runtime, const struct communicator *c, const struct meeting *m) {
    const struct collective *call = &m->calls[0];
    size_t bytes = call->count * collective_type_bytes(call->type);
    uint64_t to[COLLECTIVE_MOST_RANKS];
    for (uint32_t r = 0; r < c->ranks; r++) {
        to[r] = m->calls[r].receive;
    }
    switch (call->kind) {
    case COLLECTIVE_ALL_REDUCE:
        reduce_to(runtime, m, c->ranks, 0, to, c->ranks);
        break;
    case COLLECTIVE_REDUCE:
        reduce_to(runtime, m, c->ranks, 0, &to[call->root], 1);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        for (uint32_t r = 0; r < c->ranks; r++) {
            reduce_to(runtime, m, c->ranks, r * bytes, &to[r], 1);
        }
        break;
    case COLLECTIVE_BROADCAST:
        for (uint32_t r = 0; r < c->ranks; r++) {
            move(runtime, to[r], m->calls[call->root].send, bytes);
        }
        break;
    case COLLECTIVE_ALL_GATHER:
        for (uint32_t r = 0; r < c->ranks * c->ranks; r++) {
            uint32_t from = r % c->ranks;
            move(runtime, to[r / c->ranks] + from * bytes, m->calls[from].send, bytes);
        }
        break;
    default:
        break;
    }
}

/* ---- How long it takes ---- */

/* As on two H100 by NVLink: 12 us, and 301 of the 369 GB/s that a kernel can pull. */
static double nanoseconds_for(const struct runtime *runtime, double bytes) {
    const double least = 12000, share = 301.0 / 369;
    return least + bytes / (simt_gpu_link(runtime->settings.gpu)->bandwidth * share);
}

/* Bytes that each rank's link has to carry one way. */
static double carried(const struct communicator *c, const struct collective *call) {
    double bytes = (double)call->count * (double)collective_type_bytes(call->type);
    double others = c->ranks - 1;
    switch (call->kind) {
    case COLLECTIVE_ALL_REDUCE:
        return 2 * bytes * others / c->ranks;
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
        return bytes * others;
    default:
        return c->ranks > 1 ? bytes : 0;
    }
}

/* ---- How ranks meet ---- */

static void describe(const struct collective *call, char *text, size_t size) {
    int used = snprintf(text, size, "%s of %llu %s", collective_name(call->kind),
                        (unsigned long long)call->count, collective_type_name(call->type));
    if (reduces(call->kind) && used > 0 && (size_t)used < size) {
        used += snprintf(text + used, size - (size_t)used, ", %s", OPERATIONS[call->operation]);
    }
    if (has_root(call->kind) && used > 0 && (size_t)used < size) {
        snprintf(text + used, size - (size_t)used, ", root %u", call->root);
    }
}

static bool is_same(const struct collective *a, const struct collective *b) {
    return a->kind == b->kind && a->count == b->count && a->type == b->type &&
           (!reduces(a->kind) || a->operation == b->operation) &&
           (!has_root(a->kind) || a->root == b->root);
}

/* @return the first rank that has called, or COLLECTIVE_MOST_RANKS */
static uint32_t first_caller(const struct meeting *m) {
    uint32_t rank = 0;
    while (rank < COLLECTIVE_MOST_RANKS && !m->has_called[rank]) {
        rank++;
    }
    return rank;
}

static void compare(struct runtime *runtime, struct communicator *c, struct meeting *m,
                    const struct collective *call) {
    uint32_t first = first_caller(m);
    if (first >= c->ranks || is_same(&m->calls[first], call)) {
        return;
    }
    char texts[2][160];
    describe(&m->calls[first], texts[0], sizeof texts[0]);
    describe(call, texts[1], sizeof texts[1]);
    communicator_fail(runtime, c, COLLECTIVE_INVALID,
                      "operation %llu of a communicator of %u ranks is %s for rank %u, but %s for "
                      "rank %u: all ranks give the same operations, in the same order",
                      (unsigned long long)m->number, c->ranks, texts[0], first, texts[1],
                      call->rank);
    m->failed = true;
}

static struct meeting *find_meeting(struct communicator *c, uint64_t number) {
    struct meeting *m = c->meetings;
    while (m != NULL && m->number != number) {
        m = m->next;
    }
    if (m == NULL) {
        m = calloc(1, sizeof *m);
        if (m != NULL) {
            m->number = number;
            m->next = c->meetings;
            c->meetings = m;
        }
    }
    return m;
}

static void leave(struct communicator *c, struct meeting *m) {
    if (++m->left < m->arrived || (!m->done && !m->failed)) {
        return;
    }
    if (m->arrived < c->ranks) {
        return; /* it has failed: ranks that come later learn that from the communicator */
    }
    struct meeting **link = &c->meetings;
    while (*link != m) {
        link = &(*link)->next;
    }
    *link = m->next;
    order_clock_free(&m->clock);
    free(m);
}

static void note(struct runtime *runtime, uint64_t address, size_t bytes, bool writes) {
    if (runtime->order.footprint != NULL && bytes > 0) {
        simt_footprint_note(runtime->order.footprint, address, bytes, writes);
    }
}

/* The last rank does the work of all. */
static void finish(struct runtime *runtime, struct communicator *c, struct meeting *m) {
    act(runtime, c, m);
    m->end = m->begin + nanoseconds_for(runtime, carried(c, &m->calls[0]));
    m->done = true;
}

static void arrive(struct runtime *runtime, struct communicator *c, struct meeting *m,
                   const struct collective *call) {
    size_t send, receive;
    compare(runtime, c, m, call);
    m->calls[call->rank] = *call;
    m->has_called[call->rank] = true;
    m->arrived++;
    m->begin = runtime->clock > m->begin ? runtime->clock : m->begin;
    if (sizes_of(c, call, &send, &receive)) {
        note(runtime, call->send, send, false);
        note(runtime, call->receive, receive, true);
    }
    order_learn(&m->clock, &runtime->order.stream->clock);
    if (m->arrived == c->ranks && !m->failed) {
        finish(runtime, c, m);
    }
}

/* Who is not there, and what that rank does. */
static void explain_absence(struct runtime *runtime, struct communicator *c,
                            const struct meeting *m, const struct collective *call) {
    char text[160];
    uint32_t missing = 0;
    while (missing < c->ranks && m->has_called[missing]) {
        missing++;
    }
    describe(call, text, sizeof text);
    communicator_fail(
        runtime, c, COLLECTIVE_REMOTE,
        "rank %u of %u has waited %g s in %s (operation %llu of its communicator) for rank %u, "
        "which has %s",
        call->rank, c->ranks, runtime->settings.wait_seconds, text, (unsigned long long)m->number,
        missing,
        c->has_gone[missing] ? "left the communicator"
                             : "not called it, or has work before it in the stream that waits");
}

/* Lets others run. @return false: the operation will not be done */
static bool wait_a_turn(struct runtime *runtime, const struct communicator *c, bool failed) {
    return !failed && !c->aborted && c->state == COLLECTIVE_GOOD && flight_runs(runtime) &&
           flight_yield(runtime, false, true);
}

static cudaError_t meet(struct runtime *runtime, struct communicator *c,
                        const struct collective *call) {
    struct meeting *m = find_meeting(c, ++c->operations[call->rank]);
    if (m == NULL) {
        return cudaErrorMemoryAllocation;
    }
    arrive(runtime, c, m, call);
    while (!m->done && wait_a_turn(runtime, c, m->failed)) {
    }
    bool done = m->done;
    if (!done && c->state == COLLECTIVE_GOOD && !c->aborted) {
        explain_absence(runtime, c, m, call);
    }
    if (done) {
        runtime->clock = m->end > runtime->clock ? m->end : runtime->clock;
        order_learn(&runtime->order.stream->clock, &m->clock);
    }
    m->failed = m->failed || !done;
    leave(c, m);
    return done ? cudaSuccess : cudaErrorLaunchFailure;
}

/* ---- Sends and receives ---- */

static bool fit(const struct pending_part *a, const struct pending_part *b) {
    return a->rank == b->part.peer && b->rank == a->part.peer && a->part.sends != b->part.sends;
}

/* The data goes over, unless the two sides differ. */
static void exchange(struct runtime *runtime, struct communicator *c, struct pending_part *send,
                     struct pending_part *receive) {
    uint64_t bytes = send->part.count * collective_type_bytes(send->part.type);
    if (bytes != receive->part.count * collective_type_bytes(receive->part.type)) {
        communicator_fail(runtime, c, COLLECTIVE_INVALID,
                          "rank %u sends %llu %s to rank %u, which wants to receive %llu %s",
                          send->rank, (unsigned long long)send->part.count,
                          collective_type_name(send->part.type), receive->rank,
                          (unsigned long long)receive->part.count,
                          collective_type_name(receive->part.type));
        send->failed = receive->failed = true;
        return;
    }
    move(runtime, receive->part.address, send->part.address, bytes);
    runtime->clock += send->rank != receive->rank
                          ? (double)bytes / simt_gpu_link(runtime->settings.gpu)->bandwidth
                          : 0;
    send->done = receive->done = true;
}

static void unlink_part(struct communicator *c, const struct pending_part *part) {
    struct pending_part **link = &c->pending;
    while (*link != NULL && *link != part) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = part->next;
    }
}

/* Finds the other side among those that wait, the oldest first; else waits itself. */
static void offer(struct runtime *runtime, struct communicator *c, struct pending_part *part) {
    struct pending_part **end = &c->pending;
    for (; *end != NULL; end = &(*end)->next) {
        struct pending_part *other = *end;
        if (fit(part, other)) {
            *end = other->next;
            exchange(runtime, c, part->part.sends ? part : other, part->part.sends ? other : part);
            return;
        }
    }
    part->next = NULL;
    *end = part;
}

static bool all_done(const struct pending_part *parts, uint32_t count, bool *failed) {
    bool done = true;
    for (uint32_t n = 0; n < count; n++) {
        done = done && parts[n].done;
        *failed = *failed || parts[n].failed;
    }
    return done;
}

static void explain_silence(struct runtime *runtime, struct communicator *c,
                            const struct pending_part *parts, uint32_t count) {
    uint32_t n = 0;
    while (n < count && parts[n].done) {
        n++;
    }
    if (n < count) {
        const struct collective_part *part = &parts[n].part;
        communicator_fail(runtime, c, COLLECTIVE_REMOTE,
                          "rank %u of %u has waited %g s in %s of %llu %s %s rank %u, which has %s",
                          parts[n].rank, c->ranks, runtime->settings.wait_seconds,
                          part->sends ? "ncclSend" : "ncclRecv", (unsigned long long)part->count,
                          collective_type_name(part->type), part->sends ? "to" : "from", part->peer,
                          c->has_gone[part->peer] ? "left the communicator"
                          : part->sends           ? "not called ncclRecv for it"
                                                  : "not called ncclSend for it");
    }
}

static cudaError_t trade(struct runtime *runtime, struct communicator *c,
                         const struct collective_work *work) {
    struct pending_part *parts = calloc(work->part_count + 1, sizeof *parts);
    bool failed = false;
    if (parts == NULL) {
        return cudaErrorMemoryAllocation;
    }
    runtime->clock += nanoseconds_for(runtime, 0);
    for (uint32_t n = 0; n < work->part_count; n++) {
        const struct collective_part *part = &work->parts[n];
        parts[n] = (struct pending_part){.part = *part, .rank = work->operation.rank};
        note(runtime, part->address, part->count * collective_type_bytes(part->type), !part->sends);
        offer(runtime, c, &parts[n]);
    }
    while (!all_done(parts, work->part_count, &failed) && wait_a_turn(runtime, c, failed)) {
    }
    bool done = all_done(parts, work->part_count, &failed);
    if (!done && c->state == COLLECTIVE_GOOD && !c->aborted) {
        explain_silence(runtime, c, parts, work->part_count);
    }
    for (uint32_t n = 0; n < work->part_count; n++) {
        unlink_part(c, &parts[n]);
    }
    free(parts);
    return done ? cudaSuccess : cudaErrorLaunchFailure;
}

cudaError_t collective_run(struct runtime *runtime, const struct collective_work *work) {
    struct communicator *c = communicator_find(runtime, work->operation.communicator);
    cudaError_t error = cudaErrorLaunchFailure;
    if (c != NULL && c->state == COLLECTIVE_GOOD && !c->aborted) {
        error = work->operation.kind == COLLECTIVE_EXCHANGE ? trade(runtime, c, work)
                                                            : meet(runtime, c, &work->operation);
    }
    if (c != NULL) {
        communicator_tell(runtime, c);
    }
    bool aborted = c != NULL && c->aborted;
    if (error != cudaSuccess && !aborted && runtime->pending == cudaSuccess) {
        runtime->pending = error;
    }
    return cudaSuccess;
}

#include "common/simt/runtime/stream/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/memory/footprint.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/dependent.h"
#include "common/simt/runtime/stream/stream.h"

/* Older work than so many pieces is forgotten. */
enum { MOST_KEPT = 64 };

struct order_piece {
    size_t stream; /* its number */
    uint64_t number;
    char *name;
    struct simt_footprint *footprint;
    struct order_piece *next; /* older */
};

static uint64_t known(const struct order_clock *clock, size_t stream) {
    return stream < clock->count ? clock->pieces[stream] : 0;
}

static bool make_room(struct order_clock *clock, size_t count) {
    if (count <= clock->count) {
        return true;
    }
    uint64_t *pieces = realloc(clock->pieces, count * sizeof *pieces);
    if (pieces == NULL) {
        return false;
    }
    memset(pieces + clock->count, 0, (count - clock->count) * sizeof *pieces);
    *clock = (struct order_clock){.pieces = pieces, .count = count};
    return true;
}

void order_clock_free(struct order_clock *clock) {
    free(clock->pieces);
    *clock = (struct order_clock){0};
}

void order_learn(struct order_clock *clock, const struct order_clock *from) {
    if (!make_room(clock, from->count)) {
        return;
    }
    for (size_t n = 0; n < from->count; n++) {
        clock->pieces[n] = from->pieces[n] > clock->pieces[n] ? from->pieces[n] : clock->pieces[n];
    }
}

static void forget(struct order_piece *piece) {
    simt_footprint_free(piece->footprint);
    free(piece->name);
    free(piece);
}

void order_waited(struct runtime *runtime, const struct order_clock *clock) {
    struct runtime_order *order = &runtime->order;
    dependent_forget_all(runtime);
    if (clock != NULL) {
        order_learn(&order->host, clock);
    }
    for (struct order_piece **link = &order->pieces; *link != NULL;) {
        struct order_piece *piece = *link;
        if (clock != NULL && known(&order->host, piece->stream) < piece->number) {
            link = &piece->next;
            continue;
        }
        *link = piece->next;
        forget(piece);
    }
}

/* @return whether an early access of the host meets this work; *wrote: whether that wrote */
static bool meets_host(const struct order_piece *piece, uint64_t used, bool writes, bool *wrote) {
    *wrote = simt_footprint_has(piece->footprint, used, true);
    return *wrote || (writes && simt_footprint_has(piece->footprint, used, false));
}

static void report_host(struct runtime *runtime, const struct order_piece *piece,
                        const void *address, bool writes, bool wrote) {
    struct simt_fault fault = {.kind = SIMT_FAULT_HOST_RACE,
                               .address = (uint64_t)(uintptr_t)address};
    char where[400];
    simt_memory_describe(runtime->memory, fault.address, where, sizeof where);
    snprintf(fault.kernel, sizeof fault.kernel, "%s", piece->name);
    snprintf(fault.text, sizeof fault.text,
             "the host %s managed memory at %p, %s, that %s in stream %zu %s, and has not waited "
             "for it: on a GPU with concurrentManagedAccess the two happen in any order, on one "
             "without it the program ends with a segmentation fault",
             writes ? "writes" : "reads", address, where, piece->name, piece->stream,
             wrote ? "writes" : "reads");
    runtime_take_fault(runtime, &fault);
}

void order_host_access(struct runtime *runtime, const void *address, uint64_t used, bool writes) {
    bool wrote;
    for (const struct order_piece *p = runtime->order.pieces; p != NULL; p = p->next) {
        if (runtime->order.host_functions == 0 && runtime->pending == cudaSuccess &&
            meets_host(p, used, writes, &wrote)) {
            report_host(runtime, p, address, writes, wrote);
            return;
        }
    }
}

void order_free(struct runtime *runtime) {
    order_waited(runtime, NULL);
    order_clock_free(&runtime->order.host);
    simt_footprint_free(runtime->order.footprint);
    runtime->order.footprint = NULL;
}

static bool has_managed_memory(const struct runtime *runtime) {
    const struct host_block *block = runtime->host_blocks;
    while (block != NULL && block->kind != HOST_MANAGED) {
        block = block->next;
    }
    return block != NULL;
}

/* Work may overlap where there are two streams that do not wait for each other by themselves, and
 * the host may meet it in managed memory. */
static bool may_overlap(const struct runtime *runtime) {
    size_t count = 0;
    bool apart = has_managed_memory(runtime);
    for (const struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        count++;
        apart = apart || (s->flags & cudaStreamNonBlocking) != 0;
    }
    return (runtime->settings.check & SIMT_CHECK_STREAMS) != 0 && (apart || count > 1);
}

/* The default stream waits for the blocking streams, and they for it. */
static void order_by_default(struct runtime *runtime, struct CUstream_st *stream) {
    bool blocking = (stream->flags & cudaStreamNonBlocking) == 0;
    if (stream != runtime->default_stream) {
        if (blocking) {
            order_learn(&stream->clock, &runtime->default_stream->clock);
        }
        return;
    }
    for (const struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        if ((s->flags & cudaStreamNonBlocking) == 0) {
            order_learn(&stream->clock, &s->clock);
        }
    }
}

void order_waited_for_stream(struct runtime *runtime, struct CUstream_st *stream) {
    order_by_default(runtime, stream);
    order_waited(runtime, &stream->clock);
}

cudaError_t order_waited_for_copy(struct runtime *runtime, cudaError_t error) {
    order_waited_for_stream(runtime, runtime->default_stream);
    return error;
}

void order_record(struct runtime *runtime, struct CUstream_st *stream, struct order_clock *clock) {
    dependent_forget(stream);
    order_learn(&stream->clock, &runtime->order.host);
    order_by_default(runtime, stream);
    order_learn(clock, &stream->clock);
}

void order_begin(struct runtime *runtime, struct CUstream_st *stream) {
    runtime->order.stream = stream;
    if (!may_overlap(runtime)) {
        return;
    }
    order_learn(&stream->clock, &runtime->order.host);
    order_by_default(runtime, stream);
    if (make_room(&stream->clock, stream->number + 1)) {
        stream->clock.pieces[stream->number]++;
        runtime->order.footprint = simt_footprint_create();
    }
}

/* Of other host memory the copies to and from it are in the order of their calls. */
static bool is_watched(struct runtime *runtime, const void *pointer) {
    return simt_memory_is_device(runtime->memory, pointer) ||
           host_block_find(runtime, pointer) != NULL;
}

static void note_area(struct runtime *runtime, const struct area *area, const struct box *box,
                      bool writes) {
    struct simt_footprint *footprint = runtime->order.footprint;
    if (!is_watched(runtime, area->pointer)) {
        return;
    }
    for (size_t z = 0; z < box->depth; z++) {
        for (size_t y = 0; y < box->height; y++) {
            uint64_t begin = (uint64_t)(uintptr_t)area->pointer + z * area->slice + y * area->pitch;
            simt_footprint_note(footprint, begin, box->width, writes);
        }
    }
}

void order_note(struct runtime *runtime, const struct work *work) {
    struct simt_footprint *footprint = runtime->order.footprint;
    if (footprint != NULL && work->kind == WORK_COPY) {
        note_area(runtime, &work->copy.from, &work->copy.box, false);
        note_area(runtime, &work->copy.to, &work->copy.box, true);
    } else if (footprint != NULL && work->kind == WORK_SET) {
        note_area(runtime, &work->set.to, &work->set.box, true);
    }
}

static void report(struct runtime *runtime, const struct order_piece *first,
                   const struct order_piece *second, const struct simt_meeting *meeting) {
    struct simt_fault fault = {.kind = SIMT_FAULT_STREAM_RACE, .address = meeting->address};
    char where[400];
    simt_memory_describe(runtime->memory, meeting->address, where, sizeof where);
    snprintf(fault.kernel, sizeof fault.kernel, "%s", second->name);
    snprintf(fault.text, sizeof fault.text,
             "%s in stream %zu %s 4 bytes at 0x%llx, %s, that %s in stream %zu %s before, and "
             "nothing orders the two: on a GPU they may run in any order or at the same time",
             second->name, second->stream, meeting->second_writes ? "writes" : "reads",
             (unsigned long long)meeting->address, where, first->name, first->stream,
             meeting->first_writes ? "wrote" : "read");
    runtime_take_fault(runtime, &fault);
}

static void compare(struct runtime *runtime, const struct CUstream_st *stream,
                    const struct order_piece *piece) {
    struct simt_meeting meeting;
    for (const struct order_piece *p = runtime->order.pieces; p != NULL; p = p->next) {
        if (known(&stream->clock, p->stream) < p->number && runtime->pending == cudaSuccess &&
            simt_footprint_meets(p->footprint, piece->footprint, &meeting)) {
            report(runtime, p, piece, &meeting);
            return;
        }
    }
}

static void drop_oldest(struct runtime *runtime) {
    size_t count = 0;
    for (struct order_piece **link = &runtime->order.pieces; *link != NULL;) {
        if (++count > MOST_KEPT) {
            struct order_piece *piece = *link;
            *link = piece->next;
            forget(piece);
        } else {
            link = &(*link)->next;
        }
    }
}

void order_end(struct runtime *runtime, struct CUstream_st *stream, const char *name) {
    struct simt_footprint *footprint = runtime->order.footprint;
    runtime->order.footprint = NULL;
    if (footprint == NULL) {
        return;
    }
    struct order_piece *piece = calloc(1, sizeof *piece);
    char *copy = strdup(name);
    if (piece == NULL || copy == NULL) {
        free(piece);
        free(copy);
        simt_footprint_free(footprint);
        return;
    }
    *piece = (struct order_piece){.stream = stream->number,
                                  .number = known(&stream->clock, stream->number),
                                  .name = copy,
                                  .footprint = footprint};
    compare(runtime, stream, piece);
    piece->next = runtime->order.pieces;
    runtime->order.pieces = piece;
    drop_oldest(runtime);
}

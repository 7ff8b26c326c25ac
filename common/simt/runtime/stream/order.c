#include "common/simt/runtime/stream/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/memory/footprint.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/dependent.h"
#include "common/simt/runtime/stream/flag.h"
#include "common/simt/runtime/stream/stream.h"

/* Older work than so many pieces is forgotten. */
enum { MOST_KEPT = 64, MOST_KEPT_OF_DEVICES = 1024 };

#define DEVICES_HINT                                                                               \
    "let a stream of the one device wait for an event of the other (cudaStreamWaitEvent), or the " \
    "host for both; kernels that run at the same time order their accesses by a flag: "            \
    "__threadfence_system() between the data and the volatile or atomic store of the flag, "       \
    "which __threadfence() does for one device alone, and __threadfence_system() or a barrier "    \
    "behind the load; and each side waits for the flag that belongs to the data, as only that "    \
    "one says that the data are there, or read"

struct order_piece {
    size_t stream; /* its number */
    int device, program;
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

bool order_has_news(const struct order_clock *clock, const struct order_clock *from) {
    size_t both = from->count < clock->count ? from->count : clock->count;
    bool news = false;
    for (size_t n = 0; n < both; n++) {
        news |= from->pieces[n] > clock->pieces[n];
    }
    for (size_t n = both; !news && n < from->count; n++) {
        news = from->pieces[n] > 0;
    }
    return news;
}

/* Host memory of several programs has the same addresses. */
static int program_of(const struct runtime *runtime) {
    return runtime->selected != NULL ? runtime->selected->number : 0;
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
    flag_prune(order->flags, &order->host);
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

void order_end_program(struct runtime *runtime) {
    int program = program_of(runtime);
    for (struct order_piece **link = &runtime->order.pieces; *link != NULL;) {
        struct order_piece *piece = *link;
        if (piece->program == program) {
            *link = piece->next;
            forget(piece);
        } else {
            link = &piece->next;
        }
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
    int program = program_of(runtime);
    for (const struct order_piece *p = runtime->order.pieces; p != NULL; p = p->next) {
        if (p->program == program && runtime->order.host_functions == 0 &&
            runtime->pending == cudaSuccess && meets_host(p, used, writes, &wrote)) {
            report_host(runtime, p, address, writes, wrote);
            return;
        }
    }
}

void order_free(struct runtime *runtime) {
    order_waited(runtime, NULL);
    order_clock_free(&runtime->order.host);
    flag_table_free(runtime->order.flags);
    runtime->order.flags = NULL;
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

/* Work may overlap where there are two devices, or two streams that do not wait for each other by
 * themselves, and the host may meet it in managed memory. */
static bool may_overlap(const struct runtime *runtime) {
    size_t count = 0;
    bool apart = has_managed_memory(runtime) || runtime->settings.devices > 1;
    for (const struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        count++;
        apart = apart || (s->flags & cudaStreamNonBlocking) != 0;
    }
    return (runtime->settings.check & SIMT_CHECK_STREAMS) != 0 && (apart || count > 1);
}

/* The default stream waits for the blocking streams, and they for it. */
static void order_by_default(struct runtime *runtime, struct CUstream_st *stream) {
    bool blocking = (stream->flags & cudaStreamNonBlocking) == 0;
    const struct CUstream_st *by_default = stream_default(runtime, stream->device);
    if (stream != by_default) {
        if (blocking) {
            order_learn(&stream->clock, &by_default->clock);
        }
        return;
    }
    for (const struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        if (s->device == stream->device && (s->flags & cudaStreamNonBlocking) == 0) {
            order_learn(&stream->clock, &s->clock);
        }
    }
}

void order_waited_for_stream(struct runtime *runtime, struct CUstream_st *stream) {
    runtime_meet(runtime, runtime_clock_of(runtime, stream->device));
    order_by_default(runtime, stream);
    order_waited(runtime, &stream->clock);
}

void order_waited_for_device(struct runtime *runtime) {
    runtime_meet(runtime, runtime->clock);
    if (runtime->settings.devices == 1) {
        order_waited(runtime, NULL);
        return;
    }
    order_waited(runtime, &runtime->default_stream->clock);
    for (const struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        if (s->device == runtime->device) {
            order_waited(runtime, &s->clock);
        }
    }
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
    if (runtime->clock < runtime->host_clock) {
        runtime->clock = runtime->host_clock;
    }
    if (!may_overlap(runtime)) {
        return;
    }
    order_learn(&stream->clock, &runtime->order.host);
    order_by_default(runtime, stream);
    order_learn(&stream->clock, &stream->seen);
    order_learn(&stream->fenced, &stream->clock); /* a kernel's end is a fence */
    if (make_room(&stream->clock, stream->number + 1)) {
        stream->clock.pieces[stream->number]++;
        runtime->order.footprint = simt_footprint_create();
    }
}

void order_copy_of(struct runtime *runtime, struct CUstream_st *stream, int device, bool before) {
    struct CUstream_st *by_default = stream_default(runtime, device);
    if (!before) {
        order_learn(&by_default->clock, &stream->clock);
    } else {
        order_learn(&stream->clock, &by_default->clock);
    }
    for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        if (s->device == device && before) {
            order_learn(&stream->clock, &s->clock);
        } else if (s->device == device) {
            order_learn(&s->clock, &stream->clock);
        }
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

/* "stream 3", with several devices "stream 3 of device 1". */
static void name_stream(const struct runtime *runtime, const struct order_piece *piece, char *text,
                        size_t size) {
    bool several = runtime->settings.devices > 1;
    snprintf(text, size, several ? "stream %zu of device %d" : "stream %zu", piece->stream,
             piece->device);
}

static void report(struct runtime *runtime, const struct order_piece *first,
                   const struct order_piece *second, const struct simt_meeting *meeting) {
    struct simt_fault fault = {.kind = SIMT_FAULT_STREAM_RACE, .address = meeting->address};
    char where[400], streams[2][64];
    simt_memory_describe(runtime->memory, meeting->address, where, sizeof where);
    name_stream(runtime, first, streams[0], sizeof streams[0]);
    name_stream(runtime, second, streams[1], sizeof streams[1]);
    if (first->device != second->device) {
        fault.hint = DEVICES_HINT;
    }
    snprintf(fault.kernel, sizeof fault.kernel, "%s", second->name);
    snprintf(fault.text, sizeof fault.text,
             "%s in %s %s 4 bytes at 0x%llx, %s, that %s in %s %s before, and "
             "nothing orders the two: on a GPU they may run in any order or at the same time",
             second->name, streams[1], meeting->second_writes ? "writes" : "reads",
             (unsigned long long)meeting->address, where, first->name, streams[0],
             meeting->first_writes ? "wrote" : "read");
    runtime_take_fault(runtime, &fault);
}

static void compare(struct runtime *runtime, const struct CUstream_st *stream,
                    const struct order_piece *piece) {
    struct simt_meeting meeting;
    const struct simt_extent devices = simt_memory_window(runtime->memory);
    for (const struct order_piece *p = runtime->order.pieces; p != NULL; p = p->next) {
        bool reads_too = known(&stream->reads, p->stream) < p->number;
        const struct simt_extent *where = p->program == piece->program ? NULL : &devices;
        if (known(&stream->clock, p->stream) < p->number && runtime->pending == cudaSuccess &&
            simt_footprint_meets(p->footprint, piece->footprint, reads_too, where, &meeting)) {
            report(runtime, p, piece, &meeting);
            return;
        }
    }
}

static void drop_oldest(struct runtime *runtime) {
    size_t count = 0;
    size_t most = runtime->settings.devices > 1 ? MOST_KEPT_OF_DEVICES : MOST_KEPT;
    for (struct order_piece **link = &runtime->order.pieces; *link != NULL;) {
        if (++count > most) {
            struct order_piece *piece = *link;
            *link = piece->next;
            forget(piece);
        } else {
            link = &(*link)->next;
        }
    }
}

/* Bytes of other devices' memory. */
struct far {
    const struct runtime *runtime;
    uint64_t bytes;
};

static void add_far(void *context, uint64_t address, unsigned words) {
    enum { WORD = 4 };
    struct far *far = context;
    int device = simt_memory_device_of(far->runtime->memory, address);
    far->bytes += device >= 0 && device != far->runtime->device ? (uint64_t)words * WORD : 0;
}

uint64_t order_peer_bytes(const struct runtime *runtime) {
    struct far far = {.runtime = runtime, .bytes = runtime->order.peer_bytes};
    if (runtime->settings.devices > 1 && runtime->order.footprint != NULL) {
        simt_footprint_visit(runtime->order.footprint, add_far, &far);
    }
    return far.bytes;
}

/* The work that runs goes on as another piece, where there is something to tell apart. */
static void cut(struct runtime *runtime, struct CUstream_st *stream) {
    struct runtime_order *order = &runtime->order;
    if (order->footprint == NULL || simt_footprint_is_empty(order->footprint)) {
        return;
    }
    order->peer_bytes = order_peer_bytes(runtime);
    order_end(runtime, stream, order->name != NULL ? order->name : "a kernel");
    stream->clock.pieces[stream->number]++;
    order->footprint = simt_footprint_create();
}

/* All but the piece that is being noted. */
static void tell(struct order_clock *clock, const struct CUstream_st *stream) {
    uint64_t before = known(clock, stream->number);
    order_learn(clock, &stream->clock);
    if (stream->number < clock->count && clock->pieces[stream->number] > before) {
        clock->pieces[stream->number]--;
    }
}

/* The kernel that runs comes after what some flags tell. */
static void come_after(struct runtime *runtime, struct order_clock *clock,
                       const struct order_clock *told) {
    if (order_has_news(clock, told)) {
        cut(runtime, runtime->order.stream);
        order_learn(clock, told);
    }
}

static void fence(struct runtime *runtime, struct CUstream_st *stream, unsigned how) {
    if ((how & SIMT_ORDER_ACQUIRES) != 0) {
        come_after(runtime, &stream->clock, &stream->seen);
    }
    if ((how & SIMT_ORDER_RELEASES) != 0) {
        cut(runtime, stream);
        tell(&stream->fenced, stream);
    }
}

/* By which a flag is known: its address, in host memory that of its program. */
static uint64_t key_of(const struct runtime *runtime, uint64_t address) {
    enum { PROGRAM_SHIFT = 56 }; /* above all addresses of a CPU */
    return simt_memory_is_device(runtime->memory, (const void *)(uintptr_t)address)
               ? address
               : address | (uint64_t)program_of(runtime) << PROGRAM_SHIFT;
}

/* What a look orders: that reads are over at once, all else from the next fence or barrier on. */
static void look(struct runtime *runtime, struct CUstream_st *stream, unsigned how,
                 uint64_t address, uint32_t bytes) {
    struct flag_news news = {{0}, {0}};
    bool acquires = (how & SIMT_ORDER_ACQUIRES) != 0;
    if (!flag_has_news(runtime->order.flags, address, bytes,
                       acquires ? &stream->clock : &stream->seen, &stream->reads)) {
        return;
    }
    flag_look(runtime->order.flags, address, bytes, &news);
    order_learn(&stream->reads, &stream->clock);
    come_after(runtime, &stream->reads, &news.reads);
    if (acquires) {
        come_after(runtime, &stream->clock, &news.clock);
    } else {
        order_learn(&stream->seen, &news.clock);
    }
    order_clock_free(&news.clock);
    order_clock_free(&news.reads);
}

static void store(struct runtime *runtime, struct CUstream_st *stream, unsigned how,
                  uint64_t address, uint32_t bytes) {
    struct flag_news news = {{0}, {0}};
    cut(runtime, stream);
    tell(&news.reads, stream);
    if ((how & SIMT_ORDER_RELEASES) != 0) {
        tell(&stream->fenced, stream);
    }
    order_learn(&news.clock, &stream->fenced);
    flag_store(&runtime->order.flags, address, bytes, &news, (how & SIMT_ORDER_LOADS) != 0);
    order_clock_free(&news.clock);
    order_clock_free(&news.reads);
}

void order_of_system(struct runtime *runtime, unsigned how, uint64_t address, uint32_t bytes) {
    struct CUstream_st *stream = runtime->order.stream;
    if (runtime->order.footprint == NULL || stream->number >= stream->clock.count) {
        return;
    }
    if ((how & (SIMT_ORDER_LOADS | SIMT_ORDER_STORES)) == 0) {
        fence(runtime, stream, how);
    }
    if ((how & SIMT_ORDER_LOADS) != 0) {
        look(runtime, stream, how, key_of(runtime, address), bytes);
    }
    if ((how & SIMT_ORDER_STORES) != 0) {
        store(runtime, stream, how, key_of(runtime, address), bytes);
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
                                  .device = stream->device,
                                  .program = program_of(runtime),
                                  .number = known(&stream->clock, stream->number),
                                  .name = copy,
                                  .footprint = footprint};
    compare(runtime, stream, piece);
    piece->next = runtime->order.pieces;
    runtime->order.pieces = piece;
    drop_oldest(runtime);
}

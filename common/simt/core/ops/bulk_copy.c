/*
 * cp.async.bulk and cp.async.bulk.tensor, cp.reduce.async.bulk and its tensor form: copies of many
 * bytes by one thread, which the async proxy carries out later (async_proxy.h).
 *
 * Bytes move in pieces: 16 in shared memory, whose chunks a swizzle moves, and in global memory 16,
 * or single elements where the box does not lie on such a boundary or reaches over the edge of the
 * tensor. Each piece is checked as any other access of the thread.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/async_proxy.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/memory/pipeline.h"

enum { CHUNK = 16 };

/* detail: 0 enum form, 1 flags, 2 the source that is the mbarrier, 3 dimensions. */
enum { FORM, FLAGS, SECOND, DIMENSIONS };
enum form { FORM_LOAD, FORM_STORE, FORM_TENSOR_LOAD, FORM_TENSOR_STORE, FORM_TO_PEER };
enum {
    FLAG_NARROW_FIRST = 1,
    FLAG_NARROW_SECOND = 2,
    FLAG_NARROW_BARRIER = 4,
    FLAG_MULTICAST = 8, /* the source behind the mbarrier is a mask of blocks */
    FLAG_REDUCES = 16   /* cp.reduce: the bytes are added to those that are there, or the like */
};

/* Pieces of one size on their way to or from one space, at most one a lane. */
struct pieces {
    const struct bulk_copy *copy;
    struct simt_access access;
    uint32_t count;
    unsigned char *data[SIMT_LANES];
};

/* The thread of a fault is the one that copies, whichever lane moved the piece. */
static void name_thread(const struct bulk_copy *copy) {
    const uint32_t *threads = copy->warp->block->run->threads;
    uint32_t number = copy->warp->index * SIMT_LANES + copy->lane;
    uint32_t *thread = copy->warp->block->fault.thread;
    thread[0] = number % threads[0];
    thread[1] = number / threads[0] % threads[1];
    thread[2] = number / threads[0] / threads[1];
}

static bool flush(struct pieces *p) {
    unsigned char *host[SIMT_LANES];
    uint32_t lanes = p->count == SIMT_LANES ? UINT32_MAX : ((uint32_t)1 << p->count) - 1;
    struct simt_warp *warp = p->copy->warp;
    if (p->count == 0) {
        return true;
    }
    if (!simt_lane_resolve(warp, p->copy->instruction, &p->access, lanes, host)) {
        name_thread(p->copy);
        return false;
    }
    for (uint32_t n = 0; n < p->count; n++) {
        if (host[n] != NULL && p->access.kind == SIMT_READ) {
            memcpy(p->data[n], host[n], p->access.bytes);
        } else if (host[n] != NULL && p->access.kind == SIMT_ATOMIC) {
            simt_reduce(&p->copy->reduction, host[n], p->data[n], p->access.bytes);
        } else if (host[n] != NULL) {
            memcpy(host[n], p->data[n], p->access.bytes);
        }
    }
    p->count = 0;
    return true;
}

static bool add(struct pieces *p, uint64_t address, uint32_t bytes, unsigned char *data) {
    if ((p->count == SIMT_LANES || p->access.bytes != bytes) && !flush(p)) {
        return false;
    }
    p->access.bytes = bytes;
    p->access.addresses[p->count] = address;
    p->data[p->count++] = data;
    return true;
}

/* How the bytes come to their place. */
static enum simt_access_kind kind_of(const struct bulk_copy *copy) {
    return copy->reduces ? SIMT_ATOMIC : SIMT_WRITE;
}

/* Moves `bytes` between buffer and memory, 16 at a time. */
static bool move_row(const struct bulk_copy *copy, enum ptx_space space, enum simt_access_kind kind,
                     uint64_t address, uint32_t bytes, enum tensor_swizzle swizzle,
                     unsigned char *buffer) {
    struct pieces p = {.copy = copy,
                       .access = {.space = space,
                                  .kind = kind,
                                  .counted = space == PTX_GLOBAL && copy->counted,
                                  .async = true,
                                  .early = copy->early}};
    for (uint32_t at = 0; at < bytes; at += CHUNK) {
        uint64_t to = address + at;
        to = space == PTX_SHARED ? tensor_swizzled((uint32_t)to, swizzle) : to;
        if (!add(&p, to, CHUNK, buffer + at)) {
            return false;
        }
    }
    return flush(&p);
}

/* One row of a box, elements along dimension 0; `place` is that of its first element. */
struct row {
    uint64_t address; /* of element 0 of dimension 0 */
    bool inside;      /* but for dimension 0 */
};

static struct row row_of(const struct tensor_map *map, const int64_t *place) {
    struct row row = {.address = map->address, .inside = true};
    for (uint32_t d = 1; d < map->rank; d++) {
        row.inside = row.inside && place[d] >= 0 && place[d] <= map->last[d];
        row.address += (uint64_t)place[d] * map->strides[d - 1];
    }
    return row;
}

/* Fills an element outside the tensor. */
static void fill(const struct tensor_map *map, unsigned char *to) {
    memset(to, 0, map->element_bytes);
    if (map->fill_nan != 0) {
        memset(to, 0xff, map->element_bytes);
        to[map->element_bytes - 1] = 0x7f;
    }
}

/* Moves one row of elements between buffer and global memory; those outside are not stored. */
static bool move_elements(const struct bulk_copy *copy, struct pieces *p, const int64_t *place,
                          unsigned char *buffer) {
    const struct tensor_map *map = &copy->map;
    const struct row row = row_of(map, place);
    uint32_t bytes = map->element_bytes, count = map->box[0];
    for (uint32_t e = 0; e < count;) {
        int64_t x = place[0] + e;
        uint32_t chunk = CHUNK / bytes;
        uint64_t address = row.address + (uint64_t)x * bytes;
        unsigned char *data = buffer + (size_t)e * bytes;
        bool whole = e + chunk <= count && x >= 0 && x + chunk - 1 <= (int64_t)map->last[0] &&
                     address % CHUNK == 0;
        bool inside = row.inside && x >= 0 && x <= (int64_t)map->last[0];
        if (!row.inside || !whole) {
            if (inside && !add(p, address, bytes, data)) {
                return false;
            }
            if (!inside && copy->direction == BULK_LOAD) {
                fill(map, data);
            }
            e++;
        } else {
            if (!add(p, address, CHUNK, data)) {
                return false;
            }
            e += chunk;
        }
    }
    return flush(p);
}

/* By which the copy's thread reaches its place in shared memory. */
static uint64_t shared_address(const struct bulk_copy *copy) {
    return simt_block_address(copy->warp->block, copy->home, copy->shared);
}

/* The bytes of a row of a box that are inside the tensor, in whole chunks. */
struct span {
    uint32_t begin, end;
};

static struct span span_of(const struct tensor_map *map, const int64_t *place) {
    int64_t first = place[0] < 0 ? -place[0] : 0, count = map->box[0];
    int64_t behind = (int64_t)map->last[0] + 1 - place[0];
    int64_t end = behind < count ? behind : count;
    if (!row_of(map, place).inside || first >= end) {
        return (struct span){0, 0};
    }
    uint32_t bytes = map->element_bytes;
    return (struct span){(uint32_t)first * bytes / CHUNK * CHUNK,
                         ((uint32_t)end * bytes + CHUNK - 1) / CHUNK * CHUNK};
}

/* Stores one row. Of shared memory nothing is read that is not stored. */
static bool store_row(const struct bulk_copy *copy, struct pieces *p, const int64_t *place,
                      uint64_t shared, unsigned char *buffer) {
    const struct span span = span_of(&copy->map, place);
    return span.begin == span.end ||
           (move_row(copy, PTX_SHARED, SIMT_READ, shared + span.begin, span.end - span.begin,
                     (enum tensor_swizzle)copy->map.swizzle, buffer + span.begin) &&
            move_elements(copy, p, place, buffer));
}

/* Who reads a row of a swizzled box with another swizzle is told. */
static void note_swizzle(const struct bulk_copy *copy, uint32_t offset, uint32_t bytes) {
    const struct simt_shadow *shadow = copy->home->shadow;
    if (shadow == NULL || shadow->generic == NULL || copy->map.swizzle == TENSOR_SWIZZLE_NONE) {
        return;
    }
    for (uint32_t at = 0; at < bytes; at += SIMT_GENERIC_BYTES) {
        uint32_t place = tensor_swizzled(offset + at, (enum tensor_swizzle)copy->map.swizzle);
        if (place / SIMT_GENERIC_BYTES <= shadow->shared_bytes / SIMT_GENERIC_BYTES) {
            shadow->generic[place / SIMT_GENERIC_BYTES].box = copy->instruction;
            shadow->generic[place / SIMT_GENERIC_BYTES].swizzle = copy->map.swizzle;
        }
    }
}

/* Goes through the rows of a box. */
static bool move_box(const struct bulk_copy *copy) {
    const struct tensor_map *map = &copy->map;
    unsigned char buffer[256 * 8];
    uint32_t row_bytes = (uint32_t)map->box[0] * map->element_bytes;
    uint32_t rows = tensor_map_bytes(map) / row_bytes;
    bool load = copy->direction == BULK_LOAD;
    for (uint32_t n = 0; n < rows; n++) {
        int64_t place[TENSOR_DIMENSIONS] = {copy->place[0]};
        uint32_t rest = n;
        for (uint32_t d = 1; d < map->rank; d++) {
            uint32_t count = tensor_map_count(map, d);
            place[d] = (int64_t)copy->place[d] + (int64_t)(rest % count) * map->steps[d];
            rest /= count;
        }
        struct pieces p = {.copy = copy,
                           .access = {.space = PTX_GLOBAL,
                                      .kind = load ? SIMT_READ : kind_of(copy),
                                      .counted = copy->counted,
                                      .async = true,
                                      .early = copy->early}};
        uint64_t shared = shared_address(copy) + n * row_bytes;
        enum tensor_swizzle swizzle = (enum tensor_swizzle)map->swizzle;
        bool done =
            load ? move_elements(copy, &p, place, buffer) &&
                       move_row(copy, PTX_SHARED, SIMT_WRITE, shared, row_bytes, swizzle, buffer)
                 : store_row(copy, &p, place, shared, buffer);
        if (!done) {
            return false;
        }
        if (load) {
            note_swizzle(copy, copy->shared + n * row_bytes, row_bytes);
        }
    }
    return true;
}

static bool move_bytes(const struct bulk_copy *copy) {
    enum { MOST = 512 };
    unsigned char buffer[MOST];
    bool load = copy->direction == BULK_LOAD;
    for (uint32_t at = 0; at < copy->bytes; at += MOST) {
        uint32_t bytes = copy->bytes - at < MOST ? copy->bytes - at : MOST;
        uint64_t from = load ? copy->global + at : copy->shared + at;
        uint64_t to = load ? shared_address(copy) + at : copy->global + at;
        bool global = load && !copy->from_shared;
        if (!move_row(copy, global ? PTX_GLOBAL : PTX_SHARED, SIMT_READ, from, bytes,
                      TENSOR_SWIZZLE_NONE, buffer) ||
            !move_row(copy, load ? PTX_SHARED : PTX_GLOBAL, kind_of(copy), to, bytes,
                      TENSOR_SWIZZLE_NONE, buffer)) {
            return false;
        }
    }
    return true;
}

bool bulk_copy_run(const struct bulk_copy *copy) {
    if (copy->from_value) {
        unsigned char value[BULK_VALUE_BYTES];
        memcpy(value, copy->value, sizeof value);
        struct pieces p = {.copy = copy,
                           .access = {.space = PTX_SHARED, .kind = kind_of(copy), .async = true}};
        return add(&p, shared_address(copy), copy->bytes, value) && flush(&p);
    }
    return copy->tensor ? move_box(copy) : move_bytes(copy);
}

/* The address that operand `operand` is, whose row is source `source`. */
static uint64_t address_of(const struct simt_warp *warp, const struct simt_instruction *i,
                           uint32_t source, uint32_t operand, uint32_t narrow, uint32_t lane) {
    const union simt_row *row = simt_row(warp, simt_sources(i)[source]);
    uint64_t base = (i->detail[FLAGS] & narrow) != 0 ? row->u32[lane] : row->u64[lane];
    return base + (uint64_t)i->source->operands[operand].offset;
}

/* Reads the map that a thread names: a parameter of the kernel, or global memory. */
static bool read_map(struct simt_warp *warp, const struct simt_instruction *i, uint64_t address,
                     struct bulk_copy *copy) {
    struct simt_access access = {.space = PTX_GENERIC, .kind = SIMT_READ, .bytes = CHUNK};
    unsigned char *host[SIMT_LANES];
    unsigned char *bytes = (unsigned char *)&copy->map;
    enum { PARTS = sizeof copy->map / CHUNK };
    if (address % 64 != 0) {
        simt_fail(warp, i, copy->lane, SIMT_FAULT_MISALIGNED, address,
                  "names a tensor map at 0x%llx, which is no multiple of 64",
                  (unsigned long long)address);
        return false;
    }
    for (uint32_t n = 0; n < PARTS; n++) {
        access.addresses[copy->lane] = address + n * CHUNK;
        if (!simt_lane_resolve(warp, i, &access, 1u << copy->lane, host)) {
            return false;
        }
        if (host[copy->lane] != NULL) {
            memcpy(bytes + n * CHUNK, host[copy->lane], CHUNK);
        }
    }
    if (copy->map.magic != TENSOR_MAP_MAGIC) {
        simt_fail(warp, i, copy->lane, SIMT_FAULT_TEXTURE, address,
                  "names a tensor map at 0x%llx, but what lies there was not made by "
                  "cuTensorMapEncodeTiled",
                  (unsigned long long)address);
        return false;
    }
    if (copy->map.rank != i->detail[DIMENSIONS]) {
        simt_fail(warp, i, copy->lane, SIMT_FAULT_TEXTURE, address,
                  "copies a box of %u dimensions, but the tensor map has %u", i->detail[DIMENSIONS],
                  copy->map.rank);
        return false;
    }
    return true;
}

/* Where the box lies in the tensor: an H100 stops with "illegal instruction" at any other place. */
static bool check_place(struct simt_warp *warp, const struct bulk_copy *copy) {
    const struct tensor_map *map = &copy->map;
    int64_t first = (int64_t)copy->place[0] * map->element_bytes;
    if (first % CHUNK != 0) {
        simt_fail(warp, copy->instruction, copy->lane, SIMT_FAULT_MISALIGNED, copy->shared,
                  "copies a box from element %d of dimension 0 on, which is byte %lld of a row: it "
                  "must be a multiple of 16 bytes (on a GPU: an illegal instruction)",
                  copy->place[0], (long long)first);
        return false;
    }
    for (uint32_t d = 0; copy->direction == BULK_STORE && d < map->rank; d++) {
        if (copy->place[d] < 0) {
            simt_fail(warp, copy->instruction, copy->lane, SIMT_FAULT_OUT_OF_BOUNDS, copy->shared,
                      "stores a box from element %d of dimension %u on: a box that is stored may "
                      "end outside its tensor, but not begin before it (on a GPU: an illegal "
                      "instruction)",
                      copy->place[d], d);
            return false;
        }
    }
    return true;
}

/* Where the box lies in shared memory. */
static bool check_box(struct simt_warp *warp, const struct bulk_copy *copy) {
    if (copy->shared % 128 == 0) {
        return check_place(warp, copy);
    }
    simt_fail(warp, copy->instruction, copy->lane, SIMT_FAULT_MISALIGNED, copy->shared,
              "copies a box at address %u of shared memory, which is no multiple of 128",
              copy->shared);
    return false;
}

static bool check_bytes(struct simt_warp *warp, const struct bulk_copy *copy) {
    if (copy->shared % CHUNK == 0 && copy->global % CHUNK == 0 && copy->bytes % CHUNK == 0) {
        return true;
    }
    simt_fail(
        warp, copy->instruction, copy->lane, SIMT_FAULT_MISALIGNED, copy->global,
        "copies %u bytes in bulk between 0x%llx and address %u of shared memory: both and the "
        "size must be multiples of 16",
        copy->bytes, (unsigned long long)copy->global, copy->shared);
    return false;
}

static bool is_load(enum form form) {
    return form == FORM_LOAD || form == FORM_TENSOR_LOAD || form == FORM_TO_PEER;
}

static bool is_global_load(enum form form) {
    return form == FORM_LOAD || form == FORM_TENSOR_LOAD;
}

/* The type behind the operation: modifiers such as .global are none. */
static enum ptx_type reduced_type(const struct ptx_instruction *in) {
    return ptx_modifier_type(in, 0);
}

/* A box and its place. */
static bool read_box(struct simt_warp *warp, struct bulk_copy *copy, bool load) {
    const struct simt_instruction *i = copy->instruction;
    const uint32_t *sources = simt_sources(i);
    uint32_t dimensions = i->detail[DIMENSIONS], at = load ? 2 : 1;
    for (uint32_t d = 0; d < dimensions; d++) {
        copy->place[d] = simt_row(warp, sources[at + d])->s32[copy->lane];
    }
    uint64_t map = load ? address_of(warp, i, 1, 1, FLAG_NARROW_SECOND, copy->lane)
                        : address_of(warp, i, 0, 0, FLAG_NARROW_FIRST, copy->lane);
    if (!read_map(warp, i, map, copy) || !check_box(warp, copy)) {
        return false;
    }
    copy->bytes = tensor_map_bytes(&copy->map);
    return true;
}

/* Where the copy lies in shared memory. */
static void find_shared(struct simt_warp *warp, struct bulk_copy *copy, bool load) {
    const struct simt_instruction *i = copy->instruction;
    uint32_t source = copy->tensor ? 1 + i->detail[DIMENSIONS] : 1;
    uint64_t address = load ? address_of(warp, i, 0, 0, FLAG_NARROW_FIRST, copy->lane)
                            : address_of(warp, i, source, 1, FLAG_NARROW_SECOND, copy->lane);
    copy->home = load ? simt_block_at(warp->block, &address) : warp->block;
    copy->shared = (uint32_t)address;
}

/* The mbarrier at which a load completes, which lies where the bytes go. */
static bool find_barrier(struct simt_warp *warp, struct bulk_copy *copy) {
    const struct simt_instruction *i = copy->instruction;
    uint64_t address = address_of(warp, i, i->detail[SECOND], copy->tensor ? 2 : 3,
                                  FLAG_NARROW_BARRIER, copy->lane);
    bool together = simt_block_at(warp->block, &address) == copy->home;
    copy->barrier = (uint32_t)address;
    if (!together) {
        simt_fail(warp, i, copy->lane, SIMT_FAULT_BARRIER, address,
                  "copies to the shared memory of one block of the cluster and names an mbarrier "
                  "in that of another");
    }
    return together;
}

/* Nothing else may use the bytes meanwhile. @return false after a fault */
static bool follow(struct bulk_copy *copy, struct simt_block *home, uint64_t offset,
                   enum simt_flight_kind kind, uint64_t *number) {
    struct simt_warp *warp = copy->warp;
    const struct simt_flight flight = {.kind = kind,
                                       .begin = offset,
                                       .end = offset + copy->bytes,
                                       .instruction = copy->instruction,
                                       .block = warp->block,
                                       .thread = warp->index * SIMT_LANES + copy->lane};
    char text[1000];
    if (home->shadow == NULL || (home->run->check & SIMT_CHECK_COPIES) == 0) {
        return true;
    }
    const struct simt_flight *other =
        simt_flights_find(home->shadow, offset, flight.end, kind == SIMT_FLIGHT_LOAD);
    if (other == NULL) {
        *number = simt_flights_begin(home->shadow, &flight);
        return true;
    }
    simt_flight_text(warp, flight.thread, other, text, sizeof text);
    simt_fail(warp, copy->instruction, copy->lane, SIMT_FAULT_COPY, offset,
              "copies %u bytes %s offset %llu of shared memory, %s", copy->bytes,
              kind == SIMT_FLIGHT_LOAD ? "to" : "from", (unsigned long long)offset, text);
    warp->block->fault.hint = SIMT_FLIGHT_HINT;
    simt_place_find(warp->block->run, other->instruction, &warp->block->fault.other);
    return false;
}

/* What it is for the counters, and for the clocks of its block. */
static void count_copy(struct bulk_copy *copy, uint32_t blocks) {
    struct simt_counters *c = copy->warp->block->counters;
    c->bulk_requests++;
    c->bulk_bytes += copy->bytes;
    c->multicast_bytes += blocks > 1 ? (uint64_t)blocks * copy->bytes : 0;
    enum pipeline_way way = copy->direction != BULK_LOAD                           ? PIPELINE_STORE
                            : copy->from_shared && copy->home != copy->warp->block ? PIPELINE_PEER
                                                                                   : PIPELINE_LOAD;
    copy->comes = pipeline_copy(copy->warp, copy->bytes, way);
}

/* The copy is on its way. */
static bool begin(struct bulk_copy *copy) {
    bool load = copy->direction == BULK_LOAD;
    bool meets_others = load && copy->reduces; /* several may add to the same bytes */
    return (meets_others || follow(copy, copy->home, copy->shared,
                                   load ? SIMT_FLIGHT_LOAD : SIMT_FLIGHT_STORE, &copy->flight)) &&
           (!copy->from_shared || follow(copy, copy->warp->block, copy->global, SIMT_FLIGHT_STORE,
                                         &copy->source_flight)) &&
           async_proxy_start(copy);
}

/* One copy for each block of the mask. */
static bool begin_multicast(struct simt_warp *warp, struct bulk_copy *copy) {
    const struct simt_instruction *i = copy->instruction;
    const struct simt_cluster *cluster = warp->block->cluster;
    uint32_t mask = simt_row(warp, simt_sources(i)[i->detail[SECOND] + 1])->u32[copy->lane];
    uint32_t size = cluster != NULL ? cluster->size : 1;
    mask &= UINT16_MAX;
    if (mask == 0 || mask >> size != 0) {
        simt_fail(warp, i, copy->lane, SIMT_FAULT_BARRIER, 0,
                  "copies to the blocks 0x%04x of its cluster (a bit a block), which has %u", mask,
                  size);
        return false;
    }
    count_copy(copy, (uint32_t)__builtin_popcount(mask));
    for (; mask != 0; mask &= mask - 1) {
        copy->home = cluster != NULL ? cluster->blocks[__builtin_ctz(mask)] : warp->block;
        if (!begin(copy)) {
            return false;
        }
        copy->counted = false;
    }
    return true;
}

/* The operation of cp.reduce: elements of a box have the tensor's type. */
static bool find_reduction(struct bulk_copy *copy) {
    static const uint8_t types[] = {PTX_U8,  PTX_U16, PTX_U32,  PTX_S32, PTX_U64, PTX_S64, PTX_F16,
                                    PTX_F32, PTX_F64, PTX_BF16, PTX_F32, PTX_F32, PTX_F32};
    const struct ptx_instruction *in = copy->instruction->source;
    enum ptx_type type = PTX_NO_TYPE;
    if (!copy->tensor) {
        type = reduced_type(in);
    } else if (copy->map.type < sizeof types) {
        type = (enum ptx_type)types[copy->map.type];
    }
    copy->reduces = true;
    if (simt_reduction_find(in, type, &copy->reduction)) {
        return true;
    }
    simt_fail(copy->warp, copy->instruction, copy->lane, SIMT_FAULT_TEXTURE, copy->map.address,
              "%s: elements of the tensor's type have no such operation", in->opcode);
    return false;
}

/* Whether launches before this one may still run, as far as a warp knows. */
static bool is_early(const struct simt_warp *warp) {
    const struct simt_block *block = warp->block;
    return block->run->primaries != NULL && block->shadow != NULL &&
           (block->shadow->waited >> warp->index & 1) == 0;
}

/* The copy of one thread begins. */
static bool start(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane) {
    enum form form = (enum form)i->detail[FORM];
    bool load = is_load(form);
    struct bulk_copy copy = {.instruction = i,
                             .warp = warp,
                             .lane = lane,
                             .direction = load ? BULK_LOAD : BULK_STORE,
                             .counted = true,
                             .early = is_early(warp),
                             .from_shared = form == FORM_TO_PEER,
                             .tensor = form == FORM_TENSOR_LOAD || form == FORM_TENSOR_STORE};
    find_shared(warp, &copy, load);
    if (copy.tensor && !read_box(warp, &copy, load)) {
        return false;
    }
    if (!copy.tensor) {
        copy.global = load ? address_of(warp, i, 1, 1, FLAG_NARROW_SECOND, lane)
                           : address_of(warp, i, 0, 0, FLAG_NARROW_FIRST, lane);
        copy.bytes = simt_row(warp, simt_sources(i)[2])->u32[lane];
        if (!check_bytes(warp, &copy)) {
            return false;
        }
    }
    if ((load && !find_barrier(warp, &copy)) ||
        ((i->detail[FLAGS] & FLAG_REDUCES) != 0 && !find_reduction(&copy))) {
        return false;
    }
    if ((i->detail[FLAGS] & FLAG_MULTICAST) != 0) {
        return begin_multicast(warp, &copy);
    }
    count_copy(&copy, 1);
    return begin(&copy);
}

static void run_start(struct simt_warp *warp, const struct simt_instruction *i) {
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        if (!start(warp, i, (uint32_t)__builtin_ctz(rest))) {
            return;
        }
    }
}

static void run_commit(struct simt_warp *warp, const struct simt_instruction *i) {
    pipeline_commit(warp, false);
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (async_proxy_commit(warp->block, warp->index * SIMT_LANES + lane) != STATUS_OK) {
            simt_fail(warp, i, lane, SIMT_FAULT_UNSUPPORTED, 0, "out of memory for bulk copies");
            return;
        }
    }
}

static void run_wait(struct simt_warp *warp, const struct simt_instruction *i) {
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (!async_proxy_wait(warp->block, warp->index * SIMT_LANES + lane,
                              (uint32_t)i->immediate)) {
            return;
        }
    }
    pipeline_wait_for(warp, false, (uint32_t)i->immediate);
}

static void run_nothing(struct simt_warp *warp, const struct simt_instruction *i) {
    (void)warp;
    (void)i;
}

static uint32_t dimensions_of(const struct ptx_instruction *in) {
    static const char *const names[] = {"1d", "2d", "3d", "4d", "5d"};
    for (uint32_t n = 0; n < TENSOR_DIMENSIONS; n++) {
        if (ptx_has_modifier(in, names[n])) {
            return n + 1;
        }
    }
    return 0;
}

static bool decode_group(const struct ptx_instruction *in, struct simt_instruction *out) {
    out->op_class = SIMT_CLASS_OTHER;
    if (ptx_has_modifier(in, "commit_group")) {
        out->run = run_commit;
        return true;
    }
    out->run = run_wait;
    out->immediate = in->operand_count == 1 ? (int64_t)in->operands[0].bits : 0;
    return in->operand_count == 1 && in->operands[0].kind == PTX_OPERAND_IMMEDIATE;
}

/* Modifiers that these copies may have. */
static bool is_known(const struct ptx_instruction *in) {
    static const char *const known[] = {"async",
                                        "bulk",
                                        "tensor",
                                        "1d",
                                        "2d",
                                        "3d",
                                        "4d",
                                        "5d",
                                        "shared::cta",
                                        "shared::cluster",
                                        "global",
                                        "tile",
                                        "mbarrier::complete_tx::bytes",
                                        "multicast::cluster",
                                        "bulk_group",
                                        "L2::cache_hint",
                                        NULL};
    for (size_t n = 0; n < in->modifier_count; n++) {
        const char *modifier = in->modifiers[n];
        bool reduction = ptx_has_modifier(in, "reduce") &&
                         (strcmp(modifier, "reduce") == 0 || strcmp(modifier, "noftz") == 0 ||
                          simt_reduction_names(modifier) ||
                          ptx_type_find(modifier, strlen(modifier)) != PTX_NO_TYPE);
        if (!ptx_is_one_of(modifier, known) && !reduction) {
            return false;
        }
    }
    return true;
}

/* Whether cp.reduce knows its operation, as far as the instruction says. */
static bool reduces_well(const struct ptx_instruction *in, bool tensor) {
    struct simt_reduction reduction;
    enum ptx_type type = tensor ? PTX_U32 : reduced_type(in);
    return simt_reduction_find(in, type, &reduction);
}

static enum form form_of(const struct ptx_instruction *in) {
    bool tensor = ptx_has_modifier(in, "tensor");
    if (ptx_has_modifier(in, "bulk_group")) {
        return tensor ? FORM_TENSOR_STORE : FORM_STORE;
    }
    return tensor ? FORM_TENSOR_LOAD : ptx_has_modifier(in, "global") ? FORM_LOAD : FORM_TO_PEER;
}

static bool decode_copy(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool tensor = ptx_has_modifier(in, "tensor");
    enum form form = form_of(in);
    bool store = !is_load(form), multicast = ptx_has_modifier(in, "multicast::cluster");
    uint32_t dimensions = tensor ? dimensions_of(in) : 0;
    size_t operands = (tensor ? 2u : 3u) + (store ? 0u : 1u) + (multicast ? 1u : 0u) +
                      (ptx_has_modifier(in, "L2::cache_hint") ? 1u : 0u);
    const struct ptx_operand *map = &in->operands[store ? 0 : 1];
    bool reduces = ptx_has_modifier(in, "reduce");
    if (!is_known(in) || in->operand_count != operands ||
        (multicast && (store || form == FORM_TO_PEER)) ||
        (reduces && (is_global_load(form) || !reduces_well(in, tensor))) ||
        (tensor && (dimensions == 0 || map->element_count != 1 ||
                    map->elements[0].element_count != dimensions))) {
        return false;
    }
    out->detail[FORM] = form;
    out->detail[DIMENSIONS] = dimensions;
    out->detail[SECOND] = tensor ? 2 + dimensions : 3;
    uint32_t flags = simt_lane_address_is_narrow(decoding, 0) ? FLAG_NARROW_FIRST : 0;
    flags |= simt_lane_address_is_narrow(decoding, 1) ? (uint32_t)FLAG_NARROW_SECOND : 0;
    if (!store && simt_lane_address_is_narrow(decoding, tensor ? 2 : 3)) {
        flags |= FLAG_NARROW_BARRIER;
    }
    flags |= reduces ? (uint32_t)FLAG_REDUCES : 0;
    out->detail[FLAGS] = flags | (multicast ? (uint32_t)FLAG_MULTICAST : 0);
    out->op_class = form == FORM_TO_PEER ? SIMT_CLASS_SHARED : SIMT_CLASS_GLOBAL;
    out->run = run_start;
    return true;
}

bool simt_decode_bulk_copy(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    if (strcmp(in->base, "cp") != 0 || !ptx_has_modifier(in, "bulk")) {
        return false;
    }
    if (ptx_has_modifier(in, "commit_group") || ptx_has_modifier(in, "wait_group")) {
        return decode_group(in, out);
    }
    if (ptx_has_modifier(in, "prefetch")) {
        out->op_class = SIMT_CLASS_OTHER;
        out->run = run_nothing;
        return true;
    }
    return decode_copy(decoding, out);
}

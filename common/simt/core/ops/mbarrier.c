/*
 * mbarrier: a barrier in shared memory that counts arrivals and bytes.
 *
 * The 64 bits of the object, which only these instructions understand:
 *
 *      0-19  arrivals still missing in this phase
 *     20-39  arrivals of a whole phase
 *     40-61  bytes still to come, plus 2^21
 *     63     parity of the phase
 *
 * A phase ends when no arrival and no byte is missing. The state that arrive
 * returns is the object before it arrived. Waiting never blocks: test_wait and
 * try_wait answer at once, and a warp that is told "not yet" lets others run.
 */
#include <stdio.h>
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/async_proxy.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/memory/pipeline.h"

enum { COUNT_BITS = 20, MOST_COUNT = (1 << COUNT_BITS) - 1 };
#define BYTES_ZERO ((int64_t)1 << 21)
#define MOST_BYTES (((int64_t)1 << 20) - 1)

enum operation {
    OP_INIT,
    OP_INVALIDATE,
    OP_ARRIVE,
    OP_EXPECT,
    OP_COMPLETE,
    OP_WAIT,
    OP_COPY_ARRIVE
};

/* detail: 0 operation, 1 the flags below, above them the space. */
enum { OPERATION, FLAGS };
enum {
    FLAG_NARROW = 1,
    FLAG_COUNT = 2,  /* arrive: src[1] is a count (with FLAG_EXPECT: of bytes) */
    FLAG_DROP = 4,   /* arrive_drop: missing in later phases too */
    FLAG_EXPECT = 8, /* arrive.expect_tx */
    FLAG_NO_COMPLETE = 16,
    FLAG_PARITY = 32, /* wait: src[1] is a parity, else a state */
    FLAG_NO_INCREMENT = 64,
    SPACE_SHIFT = 8
};

struct object {
    uint32_t missing, all;
    int64_t bytes;
    uint32_t parity;
};

static struct object unpack(uint64_t word) {
    return (struct object){.missing = (uint32_t)word & MOST_COUNT,
                           .all = (uint32_t)(word >> COUNT_BITS) & MOST_COUNT,
                           .bytes = (int64_t)(word >> 40 & 0x3fffff) - BYTES_ZERO,
                           .parity = (uint32_t)(word >> 63)};
}

static uint64_t pack(const struct object *object) {
    return (uint64_t)object->missing | (uint64_t)object->all << COUNT_BITS |
           ((uint64_t)(object->bytes + BYTES_ZERO) & 0x3fffff) << 40 |
           (uint64_t)object->parity << 63;
}

static bool fail(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane,
                 const char *what, uint32_t count) {
    simt_fail(warp, i, lane, SIMT_FAULT_BARRIER, 0, "%s (%s, count %u)", what, i->source->opcode,
              count);
    return false;
}

/* Ends the phase of an object of block `home` when nothing is missing. */
static void settle(const struct simt_block *home, uint32_t offset, struct object *object) {
    if (object->missing > 0 || object->bytes != 0) {
        return;
    }
    pipeline_end_phase(home, offset, object->parity);
    object->missing = object->all;
    object->parity ^= 1;
}

/* What a warp did is over for those that wait for the phase. */
static void release(const struct simt_warp *warp) {
    if (warp->block->shadow != NULL) {
        simt_shadow_release(warp->block->shadow, warp->index);
    }
}

/* More or fewer bytes are to come in this phase. */
static bool add_bytes(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane,
                      struct object *object, int64_t bytes) {
    object->bytes += bytes;
    return (object->bytes <= MOST_BYTES && object->bytes >= -MOST_BYTES) ||
           fail(warp, i, lane, "an mbarrier counts at most 2^20 - 1 bytes in a phase",
                (uint32_t)(bytes < 0 ? -bytes : bytes));
}

static bool arrive(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane,
                   const struct simt_block *home, uint32_t offset, struct object *object) {
    uint32_t flags = i->detail[FLAGS];
    uint32_t number = (flags & FLAG_COUNT) != 0 ? simt_row(warp, i->src[1])->u32[lane] : 1;
    if ((flags & FLAG_EXPECT) != 0) {
        if (!add_bytes(warp, i, lane, object, number)) {
            return false;
        }
        number = 1;
    }
    if (number < 1 || number > object->missing) {
        return fail(warp, i, lane, "arrives at an mbarrier more often than it expects", number);
    }
    object->missing -= number;
    object->all -= (flags & FLAG_DROP) != 0 && number <= object->all ? number : 0;
    if ((flags & FLAG_NO_COMPLETE) != 0 && object->missing == 0) {
        return fail(warp, i, lane, "completes a phase with an arrival that says it does not",
                    number);
    }
    pipeline_arrive(warp, home, offset);
    settle(home, offset, object);
    return true;
}

/* One lane's operation on the object at `place`, in the shared memory of block `home`. */
static bool operate(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane,
                    const struct simt_block *home, unsigned char *place) {
    uint64_t word;
    uint32_t offset = (uint32_t)(place - home->shared);
    memcpy(&word, place, sizeof word);
    struct object object = unpack(word);
    uint32_t count = i->src_count > 1 ? simt_row(warp, i->src[1])->u32[lane] : 1;
    bool fine = true;
    switch ((enum operation)i->detail[OPERATION]) {
    case OP_INIT:
        object = (struct object){.missing = count, .all = count};
        fine = (count >= 1 && count <= MOST_COUNT) ||
               fail(warp, i, lane, "an mbarrier counts 1 to 2^20 - 1 arrivals", count);
        break;
    case OP_ARRIVE:
        fine = arrive(warp, i, lane, home, offset, &object);
        break;
    case OP_EXPECT:
        fine = add_bytes(warp, i, lane, &object, count);
        break;
    case OP_COMPLETE:
        fine = add_bytes(warp, i, lane, &object, -(int64_t)count);
        settle(home, offset, &object);
        break;
    case OP_COPY_ARRIVE: /* the copies have come; without .noinc the count went up before */
        if ((i->detail[FLAGS] & FLAG_NO_INCREMENT) != 0) {
            fine = arrive(warp, i, lane, home, offset, &object);
        }
        break;
    case OP_INVALIDATE:
    case OP_WAIT:
        break;
    }
    uint64_t after = pack(&object);
    memcpy(place, &after, sizeof after);
    if (i->dst_count > 0) {
        simt_row(warp, i->dst[0])->u64[lane] = word;
    }
    return fine;
}

/* Where the lanes' objects lie. */
struct places {
    struct simt_access access;
    unsigned char *host[SIMT_LANES];
};

static bool resolve(struct simt_warp *warp, const struct simt_instruction *i, struct places *p) {
    p->access =
        (struct simt_access){.space = (enum ptx_space)(i->detail[FLAGS] >> SPACE_SHIFT),
                             .kind = i->detail[OPERATION] == OP_INIT ? SIMT_WRITE : SIMT_ATOMIC,
                             .bytes = 8,
                             .counted = i->detail[OPERATION] == OP_INIT};
    simt_lane_addresses(warp, i->src[0], (i->detail[FLAGS] & FLAG_NARROW) != 0, i->immediate,
                        p->access.addresses);
    return simt_access_resolve(warp, i, &p->access, p->host);
}

/* Whose shared memory the object of a lane is in. */
static struct simt_block *home_of(const struct simt_warp *warp, const struct places *p,
                                  uint32_t lane) {
    enum { GENERIC_SHIFT = 56 };
    uint64_t address = p->access.addresses[lane] & (((uint64_t)1 << GENERIC_SHIFT) - 1);
    return simt_block_at(warp->block, &address);
}

static void run_operation(struct simt_warp *warp, const struct simt_instruction *i) {
    struct places p;
    if (i->detail[OPERATION] == OP_COPY_ARRIVE) {
        simt_lane_wait_for_copies(warp, SIMT_COPIES_ALL);
    }
    if (warp->fault != NULL || !resolve(warp, i, &p)) {
        return;
    }
    release(warp);
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        const struct simt_block *home = home_of(warp, &p, lane);
        if (home != warp->block && warp->block->shadow != NULL) {
            simt_cluster_release(warp->block);
        }
        if (p.host[lane] != NULL && !operate(warp, i, lane, home, p.host[lane])) {
            return;
        }
    }
}

void mbarrier_complete(const struct bulk_copy *copy) {
    struct simt_warp *warp = copy->warp;
    const struct simt_instruction *instruction = copy->instruction;
    uint32_t lane = copy->lane;
    unsigned char *host[SIMT_LANES];
    struct simt_access access = {.space = PTX_SHARED, .kind = SIMT_ATOMIC, .bytes = 8};
    access.addresses[lane] = simt_block_address(warp->block, copy->home, copy->barrier);
    if (!simt_lane_resolve(warp, instruction, &access, (uint32_t)1 << lane, host) ||
        host[lane] == NULL) {
        return;
    }
    uint64_t word;
    memcpy(&word, host[lane], sizeof word);
    struct object object = unpack(word);
    if (copy->home != warp->block && warp->block->shadow != NULL) {
        simt_cluster_release(warp->block);
    }
    release(warp);
    if (add_bytes(warp, instruction, lane, &object, -(int64_t)copy->bytes)) {
        pipeline_arrive_at(copy->home, copy->barrier, copy->comes);
        settle(copy->home, copy->barrier, &object);
        word = pack(&object);
        memcpy(host[lane], &word, sizeof word);
    }
}

/* The parity of the phase that a lane names, itself or by a state. */
static uint32_t named_parity(const struct simt_warp *warp, const struct simt_instruction *i,
                             uint32_t lane) {
    const union simt_row *row = simt_row(warp, i->src[1]);
    bool by_parity = (i->detail[FLAGS] & FLAG_PARITY) != 0;
    return by_parity ? row->u32[lane] & 1 : unpack(row->u64[lane]).parity;
}

/* Whether the phase that a lane names is over: the object is in the one of other parity. */
static bool is_over(const struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane,
                    const unsigned char *place) {
    uint32_t named = named_parity(warp, i, lane);
    uint64_t word = 0;
    if (place != NULL) {
        memcpy(&word, place, sizeof word);
    }
    return unpack(word).parity != named;
}

static bool is_own(const struct simt_block *block, const unsigned char *place) {
    return place >= block->shared && place < block->shared + block->shared_bytes;
}

/* Copies that have been on their way to this mbarrier come now, as many as its phase needs:
 * somebody waits for them. @return false after a fault */
static bool fetch(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane,
                  const unsigned char *place) {
    struct simt_block *block = warp->block;
    uint32_t barrier = (uint32_t)(place - block->shared);
    while (is_own(block, place) && !is_over(warp, i, lane, place) &&
           async_proxy_load(block, barrier)) {
    }
    if (block->fault.kind != SIMT_FAULT_NONE) {
        warp->fault = &block->fault;
        return false;
    }
    return true;
}

void mbarrier_explain(const struct simt_block *block, uint32_t barrier, char *text, size_t size) {
    uint64_t word;
    memcpy(&word, block->shared + barrier, sizeof word);
    const struct object object = unpack(word);
    int length = snprintf(text, size,
                          "; it waits for the mbarrier at address %u of shared memory, whose phase "
                          "of parity %u lacks %u of %u arrivals",
                          barrier, object.parity, object.missing, object.all);
    if (length > 0 && (size_t)length < size && object.bytes > 0) {
        snprintf(text + length, size - (size_t)length, " and %lld bytes", (long long)object.bytes);
    } else if (length > 0 && (size_t)length < size && object.bytes < 0) {
        snprintf(text + length, size - (size_t)length,
                 " and received %lld bytes more than were announced (expect_tx)",
                 (long long)-object.bytes);
    }
}

static void run_wait(struct simt_warp *warp, const struct simt_instruction *i) {
    struct places p;
    unsigned char **host = p.host;
    uint64_t writes = warp->block->writes;
    uint32_t over = 0;
    if (!resolve(warp, i, &p)) {
        return;
    }
    warp->block->writes = writes; /* waiting changes nothing */
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (!fetch(warp, i, lane, host[lane])) {
            return;
        }
        if (!is_over(warp, i, lane, host[lane]) && is_own(warp->block, host[lane])) {
            async_proxy_note_wait(warp, (uint32_t)(host[lane] - warp->block->shared));
        }
        if (is_over(warp, i, lane, host[lane]) && is_own(warp->block, host[lane])) {
            pipeline_wait(warp, (uint32_t)(host[lane] - warp->block->shared),
                          named_parity(warp, i, lane));
            over |= (uint32_t)1 << lane;
        }
    }
    if (over != 0 && warp->block->shadow != NULL) {
        simt_shadow_acquire(warp->block->shadow, warp->index);
        simt_cluster_acquire(warp->block);
    }
    uint32_t *predicate = &warp->predicates[i->pred_dst[0]];
    *predicate = (*predicate & ~warp->mask) | over;
}

static void run_pending(struct simt_warp *warp, const struct simt_instruction *i) {
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t state = simt_row(warp, i->src[0])->u64[lane];
        simt_row(warp, i->dst[0])->u32[lane] = unpack(state).missing;
    }
}

/* What the first modifier says. @return -1: not known */
static int operation_of(const char *name) {
    static const struct {
        const char *name;
        enum operation operation;
    } operations[] = {{"init", OP_INIT},        {"inval", OP_INVALIDATE},
                      {"arrive", OP_ARRIVE},    {"arrive_drop", OP_ARRIVE},
                      {"expect_tx", OP_EXPECT}, {"complete_tx", OP_COMPLETE},
                      {"test_wait", OP_WAIT},   {"try_wait", OP_WAIT}};
    for (size_t n = 0; n < sizeof operations / sizeof *operations; n++) {
        if (strcmp(name, operations[n].name) == 0) {
            return (int)operations[n].operation;
        }
    }
    return -1;
}

static uint32_t flags_of(const struct simt_decoding *decoding, size_t address) {
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {{"arrive_drop", FLAG_DROP},
                 {"expect_tx", FLAG_EXPECT},
                 {"noComplete", FLAG_NO_COMPLETE},
                 {"parity", FLAG_PARITY},
                 {"noinc", FLAG_NO_INCREMENT}};
    uint32_t all = (uint32_t)simt_lane_space(decoding->source) << SPACE_SHIFT;
    for (size_t n = 0; n < sizeof flags / sizeof *flags; n++) {
        all |= ptx_has_modifier(decoding->source, flags[n].name) ? flags[n].flag : 0;
    }
    return all | (simt_lane_address_is_narrow(decoding, address) ? (uint32_t)FLAG_NARROW : 0);
}

static void finish(struct simt_instruction *out, enum operation operation, uint32_t flags) {
    out->detail[OPERATION] = (uint32_t)operation;
    out->detail[FLAGS] = flags;
    out->op_class = SIMT_CLASS_BARRIER;
    out->run = run_operation;
    if (operation == OP_WAIT) {
        out->run = run_wait;
        out->next = SIMT_NEXT_FLOW;
        out->flow = SIMT_FLOW_POLL;
    }
}

static bool decode_pending(struct simt_instruction *out) {
    out->op_class = SIMT_CLASS_BARRIER;
    out->run = run_pending;
    return out->dst_count == 1 && out->src_count == 1;
}

bool simt_decode_mbarrier(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool copies = strcmp(in->base, "cp") == 0 && ptx_has_modifier(in, "mbarrier");
    if (copies && in->operand_count == 1 && !ptx_has_modifier(in, "bulk")) {
        finish(out, OP_COPY_ARRIVE, flags_of(decoding, 0));
        return true;
    }
    if (strcmp(in->base, "mbarrier") != 0 || in->modifier_count == 0) {
        return false;
    }
    if (strcmp(in->modifiers[0], "pending_count") == 0) {
        return decode_pending(out);
    }
    int operation = operation_of(in->modifiers[0]);
    bool returns = operation == OP_ARRIVE || operation == OP_WAIT;
    size_t address = returns ? 1 : 0;
    bool needs_value = operation != OP_ARRIVE && operation != OP_INVALIDATE;
    if (operation < 0 || in->operand_count <= address || (needs_value && out->src_count < 2) ||
        (operation == OP_WAIT && out->pred_dst[0] < 0)) {
        return false;
    }
    uint32_t flags = flags_of(decoding, address);
    flags |= operation == OP_ARRIVE && out->src_count > 1 ? (uint32_t)FLAG_COUNT : 0;
    finish(out, (enum operation)operation, flags);
    return true;
}

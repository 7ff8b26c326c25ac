/*
 * cp.async: copies from global to shared memory, done at once when issued.
 *
 * On a GPU the bytes come at any time until the thread has waited for them. So
 * with full checks nobody may touch them in between (memory/race/shadow.h), and they
 * are written twice, as far as races go: when the copy is issued, and when its
 * thread has waited. What else is checked as for any store: bounds, alignment,
 * source bytes never written.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"

/* detail: 0 bytes of the copy, 1 the flags below, 2 offset of the destination's address. */
enum { COPY_BYTES, FLAGS, TO_OFFSET };
enum { PENDING }; /* wait_group: groups that may still be on their way */
enum { FLAG_NARROW_TO = 1, FLAG_NARROW_FROM = 2, FLAG_SIZE = 4, FLAG_IGNORE = 8 };

/* How many bytes a lane takes from the source; the rest are zeros. */
static uint32_t source_bytes(const struct simt_warp *warp, const struct simt_instruction *i,
                             uint32_t lane) {
    uint32_t bytes = i->detail[COPY_BYTES];
    if ((i->detail[FLAGS] & FLAG_IGNORE) != 0) {
        uint32_t ignore = warp->predicates[i->src[3]];
        ignore = i->src_negated[3] ? ~ignore : ignore;
        return ignore >> lane & 1 ? 0 : bytes;
    }
    if ((i->detail[FLAGS] & FLAG_SIZE) != 0) {
        uint32_t size = simt_row(warp, i->src[3])->u32[lane];
        return size < bytes ? size : bytes;
    }
    return bytes;
}

/* One read: the lanes that have it all, or one lane's part, piece by piece. */
static bool read_pieces(struct simt_warp *warp, const struct simt_instruction *i,
                        struct simt_access *access, uint32_t lanes, uint32_t bytes,
                        unsigned char data[SIMT_LANES][16]) {
    unsigned char *host[SIMT_LANES];
    uint32_t piece = (bytes & (bytes - 1)) == 0 ? bytes : bytes % 4 == 0 ? 4 : 1;
    for (uint32_t at = 0; at < bytes; at += piece) {
        struct simt_access part = *access;
        part.bytes = piece;
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            part.addresses[lane] += at;
        }
        if (!simt_lane_resolve(warp, i, &part, lanes, host)) {
            return false;
        }
        for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            if (host[lane] != NULL) {
                memcpy(data[lane] + at, host[lane], piece);
            }
        }
    }
    return true;
}

static bool read_source(struct simt_warp *warp, const struct simt_instruction *i,
                        unsigned char data[SIMT_LANES][16]) {
    struct simt_access access = {.space = PTX_GLOBAL, .kind = SIMT_READ, .counted = true};
    uint32_t left = warp->mask;
    simt_lane_addresses(warp, i->src[1], (i->detail[FLAGS] & FLAG_NARROW_FROM) != 0, i->immediate,
                        access.addresses);
    while (left != 0) { /* lanes that take as much as the first of those left */
        uint32_t bytes = source_bytes(warp, i, (uint32_t)__builtin_ctz(left));
        uint32_t same = 0;
        for (uint32_t rest = left; rest != 0; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            same |= source_bytes(warp, i, lane) == bytes ? (uint32_t)1 << lane : 0;
        }
        if (bytes > 0 && !read_pieces(warp, i, &access, same, bytes, data)) {
            return false;
        }
        left &= ~same;
    }
    return true;
}

/* With full checks, when all addresses are known to be inside. */
static void start(const struct simt_warp *warp, const struct simt_instruction *i,
                  const struct simt_access *access) {
    struct simt_copy copy = {.instruction = i, .lanes = warp->mask, .bytes = access->bytes};
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        copy.offsets[lane] = (uint32_t)access->addresses[lane];
    }
    simt_shadow_start_copy(warp->block->shadow, warp->index, &copy);
}

static void run_copy(struct simt_warp *warp, const struct simt_instruction *i) {
    unsigned char data[SIMT_LANES][16] = {{0}};
    unsigned char *host[SIMT_LANES];
    struct simt_access access = {
        .space = PTX_SHARED, .kind = SIMT_WRITE, .bytes = i->detail[COPY_BYTES], .counted = true};
    simt_lane_addresses(warp, i->src[0], (i->detail[FLAGS] & FLAG_NARROW_TO) != 0,
                        (int32_t)i->detail[TO_OFFSET], access.addresses);
    if (!read_source(warp, i, data) || !simt_access_resolve(warp, i, &access, host)) {
        return;
    }
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (host[lane] != NULL) {
            memcpy(host[lane], data[lane], i->detail[COPY_BYTES]);
        }
    }
    if (warp->block->shadow != NULL && (warp->block->run->check & SIMT_CHECK_COPIES) != 0) {
        start(warp, i, &access);
    }
}

static void run_commit(struct simt_warp *warp, const struct simt_instruction *i) {
    const struct simt_shadow *shadow = warp->block->shadow;
    (void)i;
    if (shadow != NULL && shadow->copies != NULL) {
        simt_copies_commit(shadow->copies, warp->index, warp->mask);
    }
}

/* Completed copies count as writes, which must not race with other accesses meanwhile. */
static bool land(struct simt_warp *warp, const struct simt_copy *copy) {
    unsigned char *host[SIMT_LANES];
    struct simt_access access = {.space = PTX_SHARED, .kind = SIMT_WRITE, .bytes = copy->bytes};
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        access.addresses[lane] = copy->offsets[lane];
    }
    return simt_lane_resolve(warp, copy->instruction, &access, copy->lanes, host);
}

void simt_lane_wait_for_copies(struct simt_warp *warp, uint32_t pending) {
    const struct simt_shadow *shadow = warp->block->shadow;
    struct simt_copy copy;
    size_t next = 0;
    if (shadow == NULL || shadow->copies == NULL) {
        return;
    }
    while (simt_copies_land(shadow->copies, warp->index, warp->mask, pending, &next, &copy) &&
           land(warp, &copy)) {
    }
}

static void run_wait(struct simt_warp *warp, const struct simt_instruction *i) {
    simt_lane_wait_for_copies(warp, i->detail[PENDING]);
}

/* wait_all is commit_group and wait_group 0. */
static void run_wait_all(struct simt_warp *warp, const struct simt_instruction *i) {
    run_commit(warp, i);
    simt_lane_wait_for_copies(warp, 0);
}

static bool is_predicate(const struct simt_decoding *decoding, const struct ptx_operand *operand) {
    return operand->kind == PTX_OPERAND_REGISTER &&
           decoding->function->registers[operand->index].type == PTX_PRED;
}

/* cp.async.ca.shared.global [to], [from], 16{, size or ignore}{, cache policy}. */
static bool decode_copy(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool policy = ptx_has_modifier(in, "L2::cache_hint");
    size_t operands = in->operand_count - (policy ? 1 : 0);
    if (in->operand_count < 3 || operands < 3 || operands > 4 ||
        in->operands[2].kind != PTX_OPERAND_IMMEDIATE || !ptx_has_modifier(in, "global")) {
        return false;
    }
    uint64_t bytes = in->operands[2].bits;
    if (bytes != 4 && bytes != 8 && bytes != 16) {
        return false;
    }
    out->detail[COPY_BYTES] = (uint32_t)bytes;
    out->detail[FLAGS] = simt_lane_address_is_narrow(decoding, 0) ? FLAG_NARROW_TO : 0;
    out->detail[FLAGS] |= simt_lane_address_is_narrow(decoding, 1) ? (uint32_t)FLAG_NARROW_FROM : 0;
    if (operands == 4) {
        bool ignore = is_predicate(decoding, &in->operands[3]);
        out->detail[FLAGS] |= ignore ? (uint32_t)FLAG_IGNORE : (uint32_t)FLAG_SIZE;
    }
    out->detail[TO_OFFSET] = (uint32_t)in->operands[0].offset;
    out->immediate = in->operands[1].offset;
    out->op_class = SIMT_CLASS_GLOBAL;
    out->run = run_copy;
    return true;
}

/* cp.async.commit_group, .wait_group N, .wait_all. */
static bool decode_group(const struct ptx_instruction *in, struct simt_instruction *out) {
    out->op_class = SIMT_CLASS_OTHER;
    if (ptx_has_modifier(in, "wait_group")) {
        out->detail[PENDING] = in->operand_count == 1 ? (uint32_t)in->operands[0].bits : 0;
        out->run = run_wait;
        return in->operand_count == 1 && in->operands[0].kind == PTX_OPERAND_IMMEDIATE;
    }
    out->run = ptx_has_modifier(in, "wait_all") ? run_wait_all : run_commit;
    return ptx_has_modifier(in, "wait_all") || ptx_has_modifier(in, "commit_group");
}

bool simt_decode_async_copy(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool copy = strcmp(in->base, "cp") == 0 && ptx_has_modifier(in, "async");
    if (!copy || ptx_has_modifier(in, "bulk") || ptx_has_modifier(in, "mbarrier")) {
        return false;
    }
    if (ptx_has_modifier(in, "ca") || ptx_has_modifier(in, "cg")) {
        return decode_copy(decoding, out);
    }
    return decode_group(in, out);
}

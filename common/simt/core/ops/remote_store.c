/*
 * st.async and red.async: values that a thread sends to the shared memory of a block of its
 * cluster, where they complete at an mbarrier. They come as late as they are waited for
 * (async_proxy.h).
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/async_proxy.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/memory/pipeline.h"

/* detail: 0 bytes of an element, 1 flags, 2 number of elements, 3 a reduction, packed. */
enum { BYTES, FLAGS, COUNT, REDUCTION };
enum { FLAG_NARROW = 1, FLAG_NARROW_BARRIER = 2 };

static uint64_t address_of(const struct simt_warp *warp, const struct simt_instruction *i,
                           uint32_t source, size_t operand, uint32_t narrow, uint32_t lane) {
    const union simt_row *row = simt_row(warp, i->src[source]);
    uint64_t base = (i->detail[FLAGS] & narrow) != 0 ? row->u32[lane] : row->u64[lane];
    return base + (uint64_t)i->source->operands[operand].offset;
}

/* The values, one element behind the other. */
static void read_value(const struct simt_warp *warp, const struct simt_instruction *i,
                       uint32_t lane, struct bulk_copy *copy) {
    uint32_t bytes = i->detail[BYTES];
    for (uint32_t e = 0; e < i->detail[COUNT]; e++) {
        const union simt_row *row = simt_row(warp, i->src[1 + e]);
        memcpy(copy->value + e * bytes,
               bytes == 8 ? (const void *)&row->u64[lane] : (const void *)&row->u32[lane], bytes);
    }
}

static bool send(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane) {
    struct bulk_copy copy = {.instruction = i,
                             .warp = warp,
                             .lane = lane,
                             .direction = BULK_LOAD,
                             .from_value = true,
                             .reduces = i->detail[REDUCTION] != 0,
                             .reduction = simt_reduction_unpack(i->detail[REDUCTION]),
                             .bytes = i->detail[BYTES] * i->detail[COUNT]};
    uint64_t to = address_of(warp, i, 0, 0, FLAG_NARROW, lane);
    uint64_t barrier = address_of(warp, i, 1 + i->detail[COUNT], 2, FLAG_NARROW_BARRIER, lane);
    copy.home = simt_block_at(warp->block, &to);
    copy.shared = (uint32_t)to;
    read_value(warp, i, lane, &copy);
    if (simt_block_at(warp->block, &barrier) != copy.home) {
        simt_fail(warp, i, lane, SIMT_FAULT_BARRIER, barrier,
                  "sends a value to the shared memory of one block of the cluster and names an "
                  "mbarrier in that of another");
        return false;
    }
    copy.barrier = (uint32_t)barrier;
    copy.comes = pipeline_message(warp);
    return async_proxy_start(&copy);
}

static void run_send(struct simt_warp *warp, const struct simt_instruction *i) {
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        if (!send(warp, i, (uint32_t)__builtin_ctz(rest))) {
            return;
        }
    }
}

static uint32_t count_of(const struct ptx_instruction *in) {
    return ptx_has_modifier(in, "v4") ? 4 : ptx_has_modifier(in, "v2") ? 2 : 1;
}

/* Modifiers without effect here. */
static bool is_known(const struct ptx_instruction *in) {
    static const char *const known[] = {
        "async", "weak", "relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes",
        "v2",    "v4",   NULL};
    for (size_t n = 0; n < in->modifier_count; n++) {
        const char *modifier = in->modifiers[n];
        if (!ptx_is_one_of(modifier, known) &&
            ptx_type_find(modifier, strlen(modifier)) == PTX_NO_TYPE &&
            !simt_reduction_names(modifier)) {
            return false;
        }
    }
    return true;
}

bool simt_decode_remote_store(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool reduces = strcmp(in->base, "red") == 0;
    enum ptx_type type = ptx_modifier_type(in, 0);
    size_t size = ptx_type_size(type);
    uint32_t count = count_of(in);
    if ((!reduces && strcmp(in->base, "st") != 0) || !ptx_has_modifier(in, "async") ||
        !ptx_has_modifier(in, "mbarrier::complete_tx::bytes") || !is_known(in) ||
        (size != 4 && size != 8) || in->operand_count != 3 || out->src_count != count + 2 ||
        size * count > BULK_VALUE_BYTES) {
        return false;
    }
    struct simt_reduction reduction;
    if (reduces && (count != 1 || !simt_reduction_find(in, type, &reduction))) {
        return false;
    }
    out->detail[REDUCTION] = reduces ? simt_reduction_pack(&reduction) : 0;
    out->detail[BYTES] = (uint32_t)size;
    out->detail[COUNT] = count;
    out->detail[FLAGS] = simt_lane_address_is_narrow(decoding, 0) ? FLAG_NARROW : 0;
    out->detail[FLAGS] |=
        simt_lane_address_is_narrow(decoding, 2) ? (uint32_t)FLAG_NARROW_BARRIER : 0;
    out->op_class = reduces ? SIMT_CLASS_ATOMIC : SIMT_CLASS_SHARED;
    out->run = run_send;
    return true;
}

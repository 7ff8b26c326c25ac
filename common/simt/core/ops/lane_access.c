#include "common/simt/core/ops/lane_access.h"

#include <string.h>

#include "common/simt/core/code.h"

bool simt_lane_address_is_narrow(const struct simt_decoding *decoding, size_t n) {
    const struct ptx_operand *operand = &decoding->source->operands[n];
    return operand->has_register &&
           ptx_type_size(decoding->function->registers[operand->index].type) == 4;
}

enum ptx_space simt_lane_space(const struct ptx_instruction *source) {
    /* Clusters have one block, so that shared::cluster is the block's own. */
    if (ptx_has_modifier(source, "shared") || ptx_has_modifier(source, "shared::cta") ||
        ptx_has_modifier(source, "shared::cluster")) {
        return PTX_SHARED;
    }
    return ptx_has_modifier(source, "global") ? PTX_GLOBAL : PTX_GENERIC;
}

void simt_lane_addresses(const struct simt_warp *warp, uint32_t row, bool narrow, int64_t offset,
                         uint64_t addresses[SIMT_LANES]) {
    const union simt_row *base = simt_row(warp, row);
    for (size_t n = 0; n < SIMT_LANES; n++) {
        addresses[n] =
            narrow ? (uint32_t)(base->u32[n] + (uint32_t)offset) : base->u64[n] + (uint64_t)offset;
    }
}

bool simt_lane_resolve(struct simt_warp *warp, const struct simt_instruction *instruction,
                       const struct simt_access *access, uint32_t lanes,
                       unsigned char *host[SIMT_LANES]) {
    uint32_t active = warp->mask;
    simt_set_mask(warp, lanes);
    bool done = simt_access_resolve(warp, instruction, access, host);
    simt_set_mask(warp, active);
    return done;
}

bool simt_lane_require_all(struct simt_warp *warp, const struct simt_instruction *instruction) {
    if (simt_full(warp)) {
        return true;
    }
    simt_fail(warp, instruction, (uint32_t)__builtin_ctz(warp->mask), SIMT_FAULT_BARRIER, 0,
              "executes %s without lanes 0x%08x of its warp: a matrix operation needs all 32 lanes",
              instruction->source->opcode, ~warp->mask);
    return false;
}

void simt_lane_synchronise(struct simt_instruction *instruction) {
    instruction->next = SIMT_NEXT_FLOW;
    instruction->flow = SIMT_FLOW_WARP_SYNC;
    instruction->op_class = SIMT_CLASS_TENSOR;
    instruction->detail[0] = SIMT_ALL_LANES;
}

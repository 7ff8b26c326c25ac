/*
 * Clusters of one block, and setmaxnreg.
 *
 * A block is its own cluster: the address of a shared variable in block 0 of it is the variable's
 * own. setmaxnreg has no effect on a model whose registers are not allocated; its number is
 * checked.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"

enum { FEWEST_REGISTERS = 24, MOST_REGISTERS = 256 };
enum { WIDE };

/* mapa d, a, b: the address of a in block b of the cluster. */
static void run_map(struct simt_warp *warp, const struct simt_instruction *i) {
    const union simt_row *from = simt_row(warp, i->src[0]);
    const union simt_row *block = simt_row(warp, i->src[1]);
    union simt_row *to = simt_row(warp, i->dst[0]);
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (block->u32[lane] != 0) {
            simt_fail(warp, i, lane, SIMT_FAULT_OUT_OF_BOUNDS, block->u32[lane],
                      "asks for an address in block %u of its cluster, which has one block",
                      block->u32[lane]);
            return;
        }
        if (i->detail[WIDE] != 0) {
            to->u64[lane] = from->u64[lane];
        } else {
            to->u32[lane] = from->u32[lane];
        }
    }
}

static void run_rank(struct simt_warp *warp, const struct simt_instruction *i) {
    union simt_row *to = simt_row(warp, i->dst[0]);
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        to->u32[__builtin_ctz(rest)] = 0;
    }
}

static void run_registers(struct simt_warp *warp, const struct simt_instruction *i) {
    (void)simt_lane_require_all(warp, i);
}

static bool decode_registers(const struct ptx_instruction *in, struct simt_instruction *out) {
    const struct ptx_operand *count = in->operands;
    simt_lane_synchronise(out);
    out->op_class = SIMT_CLASS_OTHER;
    out->run = run_registers;
    return in->operand_count == 1 && count->kind == PTX_OPERAND_IMMEDIATE && count->bits % 8 == 0 &&
           count->bits >= FEWEST_REGISTERS && count->bits <= MOST_REGISTERS &&
           (ptx_has_modifier(in, "inc") || ptx_has_modifier(in, "dec"));
}

bool simt_decode_cluster(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool wide = ptx_has_modifier(in, "u64");
    out->op_class = SIMT_CLASS_OTHER;
    if (strcmp(in->base, "setmaxnreg") == 0) {
        return decode_registers(in, out);
    }
    out->detail[WIDE] = wide;
    if (strcmp(in->base, "mapa") == 0) {
        out->run = run_map;
        return out->dst_count == 1 && out->src_count == 2;
    }
    out->run = run_rank;
    return strcmp(in->base, "getctarank") == 0 && out->dst_count == 1;
}

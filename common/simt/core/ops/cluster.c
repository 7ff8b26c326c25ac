/*
 * Clusters, and setmaxnreg.
 *
 * Addresses in the shared memory of a cluster's blocks: struct simt_cluster. setmaxnreg has no
 * effect on a model whose registers are not allocated; its number is checked.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/memory/run.h"

enum { FEWEST_REGISTERS = 24, MOST_REGISTERS = 256 };
enum { WIDE };

/* mapa d, a, b: the address of a in block b of the cluster. */
static void run_map(struct simt_warp *warp, const struct simt_instruction *i) {
    const struct simt_cluster *cluster = warp->block->cluster;
    const union simt_row *from = simt_row(warp, i->src[0]);
    const union simt_row *block = simt_row(warp, i->src[1]);
    union simt_row *to = simt_row(warp, i->dst[0]);
    uint32_t size = cluster != NULL ? cluster->size : 1;
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest), rank = block->u32[lane];
        if (rank >= size) {
            simt_fail(warp, i, lane, SIMT_FAULT_OUT_OF_BOUNDS, rank,
                      "asks for an address in block %u of its cluster, which has %u block%s", rank,
                      size, size == 1 ? "" : "s");
            return;
        }
        uint64_t place = cluster != NULL ? ((uint64_t)rank + 1) << SIMT_RANK_SHIFT : 0;
        uint64_t offset = ((uint64_t)1 << SIMT_RANK_SHIFT) - 1;
        if (i->detail[WIDE] != 0) {
            to->u64[lane] = (from->u64[lane] & (~(uint64_t)UINT32_MAX | offset)) | place;
        } else {
            to->u32[lane] = (uint32_t)((from->u32[lane] & offset) | place);
        }
    }
}

/* getctarank d, a: the block of the cluster that an address is in. */
static void run_rank(struct simt_warp *warp, const struct simt_instruction *i) {
    const union simt_row *from = simt_row(warp, i->src[0]);
    union simt_row *to = simt_row(warp, i->dst[0]);
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t address = i->detail[WIDE] != 0 ? from->u64[lane] & UINT32_MAX : from->u32[lane];
        to->u32[lane] = simt_block_at(warp->block, &address)->rank;
    }
}

void simt_run_cluster_arrive(struct simt_warp *warp, const struct simt_instruction *i) {
    struct simt_block *block = warp->block;
    uint32_t again = warp->mask & (warp->arrived | warp->passed);
    if (again != 0) {
        simt_fail(warp, i, (uint32_t)__builtin_ctz(again), SIMT_FAULT_BARRIER, 0,
                  "arrives at the barrier of its cluster (barrier.cluster.arrive) again, without "
                  "having waited (barrier.cluster.wait) since the last time");
        block->fault.hint = "every thread of every block of the cluster arrives at its barrier and "
                            "then waits, as often as the others: cluster.sync() does both";
        return;
    }
    warp->arrived |= warp->mask;
    block->has_arrived = true;
    block->writes++;
    if (ptx_has_modifier(i->source, "relaxed")) {
        block->has_relaxed = true;
    } else if (block->shadow != NULL) {
        simt_shadow_release(block->shadow, warp->index);
        simt_cluster_release(block);
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

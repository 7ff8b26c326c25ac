/*
 * The barrier of a cluster: barrier.cluster.arrive and .wait.
 *
 * A lane arrives, and later waits until every lane of the cluster that has not returned has
 * arrived, too. A warp knows which of its lanes have arrived in this phase, and which may pass:
 * their phase has ended, and they have not waited yet.
 */
#include "common/simt/core/schedule/warp.h"
#include "common/simt/memory/access/witness.h"
#include "common/simt/memory/pipeline.h"

/* Every lane that is left has arrived, and some have. */
static bool is_complete(struct simt_block_run *const *blocks, uint32_t count) {
    uint32_t any = 0;
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t n = 0; n < blocks[k]->warp_count; n++) {
            const struct simt_warp *w = &blocks[k]->warps[n].warp;
            if ((w->members & ~w->arrived) != 0) {
                return false;
            }
            any |= w->arrived;
        }
    }
    return any != 0;
}

/* The phase ends: with it everything that the blocks did, unless a thread said otherwise. */
static void end_phase(struct simt_block_run *const *blocks, uint32_t count) {
    bool relaxed = false;
    for (uint32_t k = 0; k < count; k++) {
        relaxed = relaxed || blocks[k]->block.has_relaxed;
    }
    for (uint32_t k = 0; k < count; k++) {
        struct simt_block *block = &blocks[k]->block;
        for (uint32_t n = 0; n < blocks[k]->warp_count; n++) {
            struct simt_warp *w = &blocks[k]->warps[n].warp;
            w->passed |= w->arrived;
            w->arrived = 0;
        }
        block->has_relaxed = false;
        if (!relaxed && block->shadow != NULL) {
            simt_shadow_barrier(block->shadow);
        }
        if (!relaxed && block->run->witness != NULL) {
            simt_witness_barrier(block->run->witness, block->order);
        }
    }
    const struct simt_cluster *cluster = blocks[0]->block.cluster;
    if (!relaxed && cluster != NULL && cluster->history != NULL) {
        simt_history_advance(cluster->history);
    }
}

/* A warp waits, and all its lanes may pass. */
static bool let_pass(struct simt_block_run *b, struct simt_warp_run *w) {
    struct simt_block *block = &b->block;
    if (w->state != SIMT_WARP_AT_BARRIER || w->barrier != SIMT_CLUSTER_BARRIER ||
        (w->warp.members & ~w->warp.passed) != 0) {
        return false;
    }
    w->warp.passed = 0;
    simt_warp_release(w, 0, 0);
    block->counters->barriers++;
    if (block->shadow != NULL) {
        simt_shadow_acquire(block->shadow, w->warp.index);
        simt_cluster_acquire(block);
    }
    return true;
}

/* All blocks go on when the last warp of any has arrived. */
static void hold_all(struct simt_block_run *const *blocks, uint32_t count) {
    enum { CYCLES = 150 };
    uint64_t latest = 0;
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t n = 0; blocks[k]->block.pipeline != NULL && n < blocks[k]->warp_count; n++) {
            const struct simt_warp_run *w = &blocks[k]->warps[n];
            uint64_t now = simt_pipeline_now(blocks[k]->pipeline, n);
            latest = w->state == SIMT_WARP_AT_BARRIER && now > latest ? now : latest;
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t n = 0; blocks[k]->block.pipeline != NULL && n < blocks[k]->warp_count; n++) {
            if (blocks[k]->warps[n].state == SIMT_WARP_AT_BARRIER) {
                simt_pipeline_hold(blocks[k]->pipeline, n, latest + CYCLES);
            }
        }
    }
}

bool simt_cluster_barrier_open(struct simt_block_run *const *blocks, uint32_t count) {
    bool used = false, opened = false;
    for (uint32_t k = 0; k < count; k++) {
        used = used || blocks[k]->block.has_arrived;
    }
    if (used && is_complete(blocks, count)) {
        end_phase(blocks, count);
        hold_all(blocks, count);
    }
    for (uint32_t k = 0; k < count && used; k++) {
        for (uint32_t n = 0; n < blocks[k]->warp_count; n++) {
            opened = let_pass(blocks[k], &blocks[k]->warps[n]) || opened;
        }
    }
    return opened;
}

/*
 * What orders the blocks of a cluster: barriers of the cluster, mbarriers that another block
 * arrives at, fences.
 */
#include "common/simt/memory/run.h"

static struct simt_history *global_of(const struct simt_block *block) {
    return block->shadow != NULL && block->shadow->watch != NULL ? block->shadow->watch->blocks
                                                                 : NULL;
}

void simt_cluster_release(struct simt_block *block) {
    struct simt_history *global = global_of(block);
    if (block->cluster != NULL && block->cluster->history != NULL) {
        simt_history_release(block->cluster->history, &block->peer);
    }
    if (block->cluster != NULL && global != NULL) {
        simt_history_release(global, &block->agent);
    }
}

void simt_cluster_acquire(struct simt_block *block) {
    struct simt_history *global = global_of(block);
    if (block->shadow != NULL && block->shadow->others != NULL &&
        atomic_load(block->shadow->others)) {
        block->shadow->waited = UINT32_MAX;
    }
    if (block->cluster != NULL && block->cluster->history != NULL) {
        simt_history_acquire(block->cluster->history, &block->peer);
    }
    if (block->cluster != NULL && global != NULL) {
        simt_history_acquire(global, &block->agent);
    }
}

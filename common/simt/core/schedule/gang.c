#include "common/simt/core/schedule/gang.h"

#include <stdlib.h>

#include "common/simt/memory/access/access.h"

/* What the blocks of a cluster have together. */
static enum status create_cluster(struct simt_gang *g, const struct simt_block_shape *shape) {
    struct simt_cluster *cluster = &g->cluster;
    enum simt_check check = shape->run->check;
    cluster->size = g->size;
    cluster->stride = (shape->shared_bytes + 63) / 64 * 64;
    for (uint32_t rank = 0; rank < g->size; rank++) {
        struct simt_block *block = &g->blocks[rank]->block;
        cluster->blocks[rank] = block;
        block->cluster = cluster;
        block->rank = rank;
    }
    return g->size > 1 && (check & SIMT_CHECK_RACES) != 0
               ? simt_history_create(&cluster->history, SIMT_BLOCKS_OF_SHARED,
                                     g->size * cluster->stride)
               : STATUS_OK;
}

enum status simt_gang_create(struct simt_gang **gang, const struct simt_block_shape *shape,
                             const struct simt_block_counts *counts) {
    const uint32_t *cluster = shape->run->cluster;
    struct simt_gang *g = calloc(1, sizeof *g);
    *gang = g;
    if (g == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    g->size = cluster[0] * cluster[1] * cluster[2];
    g->is_cluster = shape->is_cluster;
    for (uint32_t rank = 0; rank < g->size; rank++) {
        TRY(simt_block_create(&g->blocks[rank], shape, counts));
    }
    return g->is_cluster ? create_cluster(g, shape) : STATUS_OK;
}

void simt_gang_free(struct simt_gang *g) {
    for (uint32_t rank = 0; g != NULL && rank < g->size; rank++) {
        simt_block_free(g->blocks[rank]);
    }
    if (g != NULL) {
        simt_history_free(g->cluster.history);
    }
    free(g);
}

/* Position in the grid of a block of gang `number`. */
static uint64_t order_of(const struct simt_run *run, uint64_t number, uint32_t rank) {
    uint64_t order = 0, rows = 1;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t gangs = run->grid[axis] / run->cluster[axis];
        uint64_t index = number % gangs * run->cluster[axis] + rank % run->cluster[axis];
        order += index * rows;
        rows *= run->grid[axis];
        number /= gangs;
        rank /= run->cluster[axis];
    }
    return order;
}

enum status simt_gang_begin(struct simt_gang *g, uint64_t number) {
    for (uint32_t rank = 0; rank < g->size; rank++) {
        const struct simt_run *run = g->blocks[rank]->block.run;
        TRY(simt_block_begin(g->blocks[rank], order_of(run, number, rank)));
    }
    if (g->cluster.history != NULL) {
        simt_history_advance(g->cluster.history);
    }
    return STATUS_OK;
}

struct simt_block_run *simt_gang_faulty(const struct simt_gang *g) {
    for (uint32_t rank = 0; rank < g->size; rank++) {
        if (g->blocks[rank]->block.fault.kind != SIMT_FAULT_NONE) {
            return g->blocks[rank];
        }
    }
    return NULL;
}

/* All threads of a block have returned: what others did in its shared memory must be over. */
static void end_of_block(struct simt_gang *g, struct simt_block_run *b) {
    struct simt_block *block = &b->block;
    struct simt_history *history = g->cluster.history;
    struct simt_touch touch = {.bytes = 4, .kind = SIMT_WRITE, .lane = 0};
    struct simt_race race;
    block->over = true;
    for (size_t at = 0; history != NULL && block->is_reached && at < block->shared_bytes; at += 4) {
        touch.offset = block->rank * g->cluster.stride + at;
        if (simt_history_touch(history, &block->peer, &touch, &race)) {
            simt_access_race_at_end(&b->last->warp, b->last_instruction, at, &race);
            return;
        }
    }
}

/* @return how a round of all blocks' turns ended */
static enum simt_turn take_turns(struct simt_gang *g) {
    bool progress = false, left = false;
    for (uint32_t rank = 0; rank < g->size && simt_gang_faulty(g) == NULL; rank++) {
        struct simt_block_run *b = g->blocks[rank];
        if (b->block.over) {
            continue;
        }
        if (b->block.shadow != NULL && g->size > 1) {
            simt_shadow_resume(b->block.shadow);
        }
        enum simt_turn turn = simt_block_turn(b);
        if (turn == SIMT_TURN_OVER && b->block.fault.kind == SIMT_FAULT_NONE) {
            end_of_block(g, b);
        }
        progress = progress || turn != SIMT_TURN_WAITS;
        left = left || turn != SIMT_TURN_OVER;
    }
    return !left || simt_gang_faulty(g) != NULL ? SIMT_TURN_OVER
           : progress                           ? SIMT_TURN_GOES_ON
                                                : SIMT_TURN_WAITS;
}

static bool go_together(struct simt_gang *g) {
    enum simt_turn turn = take_turns(g);
    if (turn == SIMT_TURN_OVER) {
        return true;
    }
    simt_stall_check(g->blocks, g->size);
    if (simt_cluster_barrier_open(g->blocks, g->size) || turn == SIMT_TURN_GOES_ON) {
        return simt_gang_faulty(g) != NULL;
    }
    for (uint32_t rank = 0; rank < g->size; rank++) {
        if (!g->blocks[rank]->block.over && simt_gang_faulty(g) == NULL) {
            simt_block_fail_stuck(g->blocks[rank]);
        }
    }
    return true;
}

bool simt_gang_go(struct simt_gang *g, bool again) {
    if (g->is_cluster) {
        return go_together(g);
    }
    return again ? simt_block_resume(g->blocks[0]) : simt_block_go(g->blocks[0]);
}

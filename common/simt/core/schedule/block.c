#include "common/simt/core/schedule/warp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/schedule/timeline.h"
#include "common/simt/memory/access/access.h"
#include "common/simt/memory/access/block_clock.h"
#include "common/simt/memory/access/witness.h"
#include "common/simt/memory/cache/cache.h"
#include "common/simt/memory/pipeline.h"
#include "common/simt/memory/primary.h"
#include "common/simt/memory/undefined.h"

/* Warp instructions before another warp gets its turn: warps may spin, and those of a block load
 * the same lines at about the same time. */
enum { TURN = 64 };

static uint32_t threads_of(const struct simt_run *run) {
    return run->threads[0] * run->threads[1] * run->threads[2];
}

static enum status create_caches(struct simt_block *block) {
    const struct simt_run *run = block->run;
    struct simt_caches *caches = &block->caches;
    caches->modelled = run->l1_bytes > 0 || run->l2 != NULL || block->clock != NULL;
    caches->l2 = run->l2;
    caches->first_line = simt_memory_window(run->memory).begin / 128;
    if (run->l1_bytes > 0) {
        caches->l1 = simt_l1_create(run->l1_bytes);
    }
    return run->l1_bytes == 0 || caches->l1 != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void begin_caches(struct simt_block *block) {
    const struct simt_run *run = block->run;
    uint64_t blocks = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2];
    block->caches.part = (uint32_t)(block->order * run->l2_parts / blocks);
    if (block->caches.l1 != NULL) {
        simt_l1_clear(block->caches.l1);
    }
}

/* Clocks for all warps. In a kernel without a pipeline they are only for what blocks wait for. */
static enum status alloc_pipeline(struct simt_block_run *b, const struct simt_block_clocks *all) {
    b->timelines = calloc(b->warp_count, sizeof *b->timelines);
    b->pipeline = simt_pipeline_create();
    if (b->timelines == NULL || b->pipeline == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (uint32_t n = 0; n < b->warp_count; n++) {
        b->timelines[n] = simt_timeline_create(b->code);
        if (b->timelines[n] == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        if (!b->is_pipelined) {
            simt_timeline_set_load(b->timelines[n], simt_block_clocks_alone(all)->l2_latency);
        }
    }
    return STATUS_OK;
}

static void free_pipeline(struct simt_block_run *b) {
    for (uint32_t n = 0; b->timelines != NULL && n < b->warp_count; n++) {
        simt_timeline_free(b->timelines[n]);
    }
    free(b->timelines);
    simt_pipeline_free(b->pipeline);
}

/* Blocks of clusters are all followed: their clocks go together. Of others as many as have a warp
 * that would be. */
static bool is_followed(const struct simt_block_run *b) {
    const uint32_t *grid = b->block.run->grid;
    const struct simt_timeline_grid all = {
        .blocks = (uint64_t)grid[0] * grid[1] * grid[2], .warps = b->warp_count, .seed = b->seed};
    bool followed = b->block.cluster != NULL;
    for (uint32_t n = 0; n < b->warp_count && !followed; n++) {
        followed = simt_timeline_follows(&all, b->block.order, n);
    }
    return b->is_pipelined && followed;
}

static void begin_pipeline(struct simt_block_run *b) {
    b->is_followed = is_followed(b);
    b->block.pipeline = b->is_followed || b->clock != NULL ? b->pipeline : NULL;
    if (b->clock != NULL) {
        simt_block_clock_begin(b->clock);
    }
    if (b->block.pipeline != NULL) {
        simt_pipeline_reset(b->pipeline);
        memset(b->arrived, 0, sizeof b->arrived);
    }
}

static enum status alloc_memories(struct simt_block_run *b, const struct simt_block_shape *shape,
                                  struct simt_watch *watch) {
    size_t shared = (b->block.shared_bytes + 63) / 64 * 64 + 64;
    size_t local = b->block.local_bytes * b->warp_count * SIMT_LANES + 64;
    b->block.shared = aligned_alloc(64, shared);
    b->block.local = aligned_alloc(64, (local + 63) / 64 * 64);
    b->warps = calloc(b->warp_count, sizeof *b->warps);
    b->timeline = simt_timeline_create(b->code);
    if (b->block.shared == NULL || b->block.local == NULL || b->warps == NULL ||
        b->timeline == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    if (shape->clocks != NULL) {
        b->clock = b->block.clock = simt_block_clock_create(shape->clocks, &b->own);
        if (b->clock == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    if (shape->is_pipelined || shape->clocks != NULL) {
        TRY(alloc_pipeline(b, shape->clocks));
    }
    enum simt_check check = b->block.run->check;
    if ((check & (SIMT_CHECK_UNINITIALISED | SIMT_CHECK_SHUFFLES)) != 0) {
        b->block.undefined = simt_undefined_create();
        if (b->block.undefined == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    if ((check & SIMT_CHECK_ACCESSES) != 0) {
        bool follows = shape->has_async_reads && (check & SIMT_CHECK_COPIES) != 0;
        const struct simt_shadow_size size = {.shared_bytes = b->block.shared_bytes,
                                              .local_bytes = local,
                                              .warps = b->warp_count,
                                              .has_async_reads = follows};
        TRY(simt_shadow_create(&b->block.shadow, &size, watch));
    }
    b->block.cache = simt_access_cache_create();
    return b->block.cache != NULL ? create_caches(&b->block) : STATUS_OUT_OF_MEMORY;
}

enum status simt_block_create(struct simt_block_run **block, const struct simt_block_shape *shape,
                              const struct simt_block_counts *counts) {
    struct simt_block_run *b = calloc(1, sizeof *b);
    *block = b;
    if (b == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    b->code = shape->code;
    b->instruction_limit = shape->instruction_limit;
    b->is_pipelined = shape->is_pipelined;
    b->dynamic_shared_bytes = shape->dynamic_shared_bytes;
    b->reserves_shared = shape->reserves_shared;
    b->warp_count = (threads_of(shape->run) + SIMT_LANES - 1) / SIMT_LANES;
    b->block.run = shape->run;
    b->block.shared_bytes = shape->shared_bytes;
    b->block.local_bytes = shape->local_bytes;
    b->seed = shape->seed;
    b->block.counters = &b->own;
    b->all = counts->counters;
    b->block.sites = counts->sites;
    b->block.xray = counts->xray;
    return alloc_memories(b, shape, counts->watch);
}

void simt_block_free(struct simt_block_run *b) {
    if (b == NULL) {
        return;
    }
    for (uint32_t n = 0; n < b->warp_count && b->warps != NULL; n++) {
        simt_warp_finish(&b->warps[n]);
        simt_frame_free(b->warps[n].spare);
    }
    simt_access_cache_free(b->block.cache);
    simt_l1_free(b->block.caches.l1);
    simt_shadow_free(b->block.shadow);
    simt_undefined_free(b->block.undefined);
    simt_async_free(b->block.async);
    simt_timeline_free(b->timeline);
    free_pipeline(b);
    simt_block_clock_free(b->clock);
    free(b->block.shared);
    free(b->block.local);
    free(b->warps);
    free(b);
}

enum status simt_block_begin(struct simt_block_run *b, uint64_t order) {
    const struct simt_run *run = b->block.run;
    b->block.order = order;
    b->block.index[0] = (uint32_t)(order % run->grid[0]);
    b->block.index[1] = (uint32_t)(order / run->grid[0] % run->grid[1]);
    b->block.index[2] = (uint32_t)(order / run->grid[0] / run->grid[1]);
    b->block.agent = (struct simt_agent){.id = (uint32_t)order};
    b->block.fault.kind = SIMT_FAULT_NONE;
    b->block.fault.race.raced = false;
    b->block.returned = 0;
    b->block.writes = 0;
    b->block.peer = (struct simt_agent){.id = (uint32_t)order};
    b->block.over = false;
    b->block.is_reached = false;
    b->block.has_arrived = false;
    b->block.has_relaxed = false;
    b->block.has_looked = false;
    b->last = NULL;
    b->last_instruction = NULL;
    b->own = (struct simt_counters){0};
    b->instructions = 0;
    b->turn_instructions = 0;
    b->skipped_cycles = 0;
    b->is_near_limit = false;
    b->yielded = b->written = 0;
    simt_stall_begin(b);
    simt_async_reset(b->block.async);
    begin_caches(&b->block);
    begin_pipeline(b);
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->block.shared, 0, b->block.shared_bytes); /* undefined on a GPU; zeros repeat */
    if (b->block.shadow != NULL) {
        simt_shadow_reset(b->block.shadow);
        b->block.shadow->others = run->primaries != NULL ? &run->trace->has_waited : NULL;
        b->block.shadow->is_simple = b->block.cluster == NULL && run->witness == NULL &&
                                     (run->check & SIMT_CHECK_RACES) != 0;
    }
    if (b->block.shadow != NULL && b->reserves_shared) {
        simt_shadow_mark(b->block.shadow, b->block.shared_bytes - SIMT_RESERVED_BYTES,
                         SIMT_RESERVED_BYTES);
    }
    if (b->block.undefined != NULL) {
        simt_undefined_reset(b->block.undefined);
    }
    for (uint32_t n = 0; n < b->warp_count; n++) {
        simt_warp_finish(&b->warps[n]);
        TRY(simt_warp_start(b, n));
    }
    return STATUS_OK;
}

const struct simt_counters *simt_block_end(struct simt_block_run *b) {
    for (uint32_t n = 0; n < b->warp_count; n++) {
        uint64_t machine = b->warps[n].machine;
        b->own.longest_warps = machine > b->own.longest_warps ? machine : b->own.longest_warps;
    }
    if (b->is_followed) {
        pipeline_end(&b->block, b->warp_count);
    }
    if (b->clock != NULL) {
        simt_block_clock_end(&b->block);
    }
    simt_access_cache_tally(b->block.cache, &b->own, b->block.sites);
    simt_counters_add(b->all, &b->own);
    return &b->own;
}

/* Warps that wait at barrier `id`, and how many threads it wants; 0: all that are left. */
static uint32_t count_waiting(const struct simt_block_run *b, uint32_t id, uint32_t *wanted) {
    uint32_t waiting = 0;
    *wanted = b->barriers[id].wanted;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        const struct simt_warp_run *w = &b->warps[n];
        if (w->state == SIMT_WARP_AT_BARRIER && w->barrier == id) {
            waiting++;
            *wanted = w->barrier_count > 0 ? w->barrier_count : *wanted;
        }
    }
    return waiting;
}

/* Lets the warps at a barrier go on; bar.red gives each the result of the vote. */
static void open_barrier(struct simt_block_run *b, uint32_t id) {
    uint32_t yes = 0, threads = 0;
    uint64_t latest = b->arrived[id];
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t n = 0; n < b->warp_count; n++) {
            struct simt_warp_run *w = &b->warps[n];
            uint32_t lanes;
            if (w->state != SIMT_WARP_AT_BARRIER || w->barrier != id) {
                continue;
            }
            if (b->block.pipeline != NULL) {
                uint64_t now = simt_pipeline_now(b->pipeline, n);
                latest = now > latest ? now : latest;
                simt_pipeline_hold(b->pipeline, n, latest);
            }
            if (pass == 0) {
                yes += (uint32_t)__builtin_popcount(simt_warp_vote(w, &lanes));
                threads += (uint32_t)__builtin_popcount(lanes);
            } else {
                simt_warp_release(w, yes, threads);
            }
        }
    }
    b->barriers[id] = (struct simt_barrier){0};
    b->arrived[id] = 0;
}

/* Opens every barrier that has its threads. @return true when one opened */
static bool open_barriers(struct simt_block_run *b, uint32_t alive) {
    bool opened = false;
    for (uint32_t id = 0; id < SIMT_CLUSTER_BARRIER; id++) {
        uint32_t wanted;
        uint32_t waiting = count_waiting(b, id, &wanted);
        uint32_t here = waiting * SIMT_LANES + b->barriers[id].arrived;
        bool all = wanted == 0 ? waiting == alive : here >= wanted;
        if (waiting == 0 || !all) {
            continue;
        }
        open_barrier(b, id);
        b->block.counters->barriers += waiting;
        if (b->block.shadow != NULL) {
            simt_shadow_barrier(b->block.shadow);
            simt_sync_met(&b->block);
        }
        if (b->block.run->witness != NULL) {
            simt_witness_barrier(b->block.run->witness, b->block.order);
        }
        opened = true;
    }
    return opened;
}

static void fail_at_cluster_barrier(struct simt_warp_run *w) {
    uint32_t lane = (uint32_t)__builtin_ctz(w->warp.members);
    bool arrived = (w->warp.members & ~(w->warp.arrived | w->warp.passed)) == 0;
    simt_fail(&w->warp, w->barrier_at, lane, SIMT_FAULT_BARRIER, 0,
              arrived ? "waits at the barrier of its cluster (barrier.cluster.wait) for threads "
                        "that wait elsewhere and have not arrived (barrier.cluster.arrive): they "
                        "wait for each other for ever"
                      : "waits at the barrier of its cluster (barrier.cluster.wait), at which it "
                        "has not arrived (barrier.cluster.arrive)");
    w->warp.block->fault.hint = "every thread of every block of the cluster arrives at its barrier "
                                "and then waits, as often as the others: cluster.sync() does both";
}

void simt_block_fail_stuck(struct simt_block_run *b) {
    for (uint32_t n = 0; n < b->warp_count; n++) {
        struct simt_warp_run *w = &b->warps[n];
        if (w->state == SIMT_WARP_AT_BARRIER && w->barrier == SIMT_CLUSTER_BARRIER) {
            fail_at_cluster_barrier(w);
            return;
        }
        if (w->state == SIMT_WARP_AT_BARRIER) {
            char wanted[32] = "all threads";
            if (w->barrier_count > 0) {
                snprintf(wanted, sizeof wanted, "%u threads", w->barrier_count);
            }
            simt_fail(
                &w->warp, w->barrier_at, (uint32_t)__builtin_ctz(w->warp.mask), SIMT_FAULT_BARRIER,
                0,
                "waits at barrier %u for %s, but of the block's %u threads %u have returned, and "
                "others wait elsewhere or at a barrier of their own: they wait for each other for "
                "ever",
                w->barrier, wanted, threads_of(b->block.run), b->block.returned);
            return;
        }
    }
}

enum simt_turn simt_block_turn(struct simt_block_run *b) {
    uint32_t alive = 0;
    bool progress = false;
    for (uint32_t n = 0; n < b->warp_count && b->block.fault.kind == SIMT_FAULT_NONE; n++) {
        struct simt_warp_run *w = &b->warps[n];
        if (w->state == SIMT_WARP_RUNS) {
            simt_warp_go(b, w, TURN);
            progress = true;
        }
        alive += w->state != SIMT_WARP_DONE;
    }
    if (b->block.cluster == NULL) {
        simt_stall_check(&b, 1);
    }
    if (alive == 0 && b->block.fault.kind == SIMT_FAULT_NONE) {
        simt_async_finish(&b->block);
    }
    if (b->block.fault.kind != SIMT_FAULT_NONE || alive == 0) {
        return SIMT_TURN_OVER;
    }
    return open_barriers(b, alive) || progress ? SIMT_TURN_GOES_ON : SIMT_TURN_WAITS;
}

bool simt_block_go(struct simt_block_run *b) {
    enum simt_turn turn = simt_block_turn(b);
    if (turn != SIMT_TURN_OVER && !simt_cluster_barrier_open(&b, 1) && turn == SIMT_TURN_WAITS) {
        simt_block_fail_stuck(b);
        return true;
    }
    return turn == SIMT_TURN_OVER;
}

void simt_block_run_on(struct simt_block_run *b) {
    enum { ROUNDS = 64 };
    const struct simt_witness *witness = b->block.run->witness;
    const struct simt_fault fault = b->block.fault;
    if (witness == NULL || !fault.race.raced || fault.race.blocks) {
        return;
    }
    for (uint32_t turn = 0; turn < ROUNDS * b->warp_count && !witness->other_warps; turn++) {
        struct simt_warp_run *w = &b->warps[turn % b->warp_count];
        if (w->state == SIMT_WARP_RUNS && w->warp.fault == NULL) {
            b->block.fault.kind = SIMT_FAULT_NONE;
            simt_warp_go(b, w, TURN);
        }
    }
    b->block.fault = fault;
}

bool simt_block_resume(struct simt_block_run *b) {
    if (b->block.shadow != NULL) {
        simt_shadow_resume(b->block.shadow);
    }
    return simt_block_go(b);
}

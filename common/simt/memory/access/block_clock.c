#include "common/simt/memory/access/block_clock.h"

#include <stdlib.h>

#include "common/simt/memory/access/request.h"
#include "common/simt/memory/pipeline.h"
#include "common/simt/memory/store_times.h"

/* Machine instructions of a block before its counts are looked at again: so many, and a part of
 * those so far. */
enum { LEAST_NEWS = 64, PART_OF_NEWS = 64 };

struct simt_block_clocks {
    struct simt_store_times *times;
    struct simt_alone alone;
    uint64_t latest;
};

struct simt_block_clock {
    struct simt_block_clocks *all;
    struct simt_counters *own;
    struct simt_counters from; /* what it had counted at `base` */
    uint64_t base;             /* when it last went on after others */
    uint64_t busy;             /* when its busiest unit is ready with what was counted since */
    uint64_t next;             /* machine instructions at which that is looked at again */
    uint64_t waited;           /* the latest time of what it has loaded from others; 0: nothing */
};

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

struct simt_block_clocks *simt_block_clocks_create(const struct simt_alone *alone) {
    struct simt_block_clocks *clocks = calloc(1, sizeof *clocks);
    if (clocks == NULL || (clocks->times = simt_store_times_create()) == NULL) {
        free(clocks);
        return NULL;
    }
    clocks->alone = *alone;
    return clocks;
}

void simt_block_clocks_free(struct simt_block_clocks *clocks) {
    if (clocks != NULL) {
        simt_store_times_free(clocks->times);
        free(clocks);
    }
}

void simt_block_clocks_clear(struct simt_block_clocks *clocks) {
    simt_store_times_clear(clocks->times);
    clocks->latest = 0;
}

uint64_t simt_block_clocks_latest(const struct simt_block_clocks *clocks) {
    return clocks->latest;
}

const struct simt_alone *simt_block_clocks_alone(const struct simt_block_clocks *clocks) {
    return &clocks->alone;
}

struct simt_block_clock *simt_block_clock_create(struct simt_block_clocks *clocks,
                                                 struct simt_counters *own) {
    struct simt_block_clock *clock = calloc(1, sizeof *clock);
    if (clock != NULL) {
        clock->all = clocks;
        clock->own = own;
    }
    return clock;
}

void simt_block_clock_free(struct simt_block_clock *clock) {
    free(clock);
}

void simt_block_clock_begin(struct simt_block_clock *clock) {
    *clock = (struct simt_block_clock){.all = clock->all, .own = clock->own, .next = LEAST_NEWS};
}

static uint64_t machine_since(const struct simt_block_clock *clock) {
    return clock->own->machine_instructions - clock->from.machine_instructions;
}

/* Works out when the busiest unit is ready. */
static void look_at_units(struct simt_block *block) {
    struct simt_block_clock *clock = block->clock;
    simt_access_cache_tally(block->cache, clock->own, block->sites);
    struct simt_counters since = *clock->own;
    simt_counters_subtract(&since, &clock->from);
    double cycles = clock->all->alone.cycles(clock->all->alone.gpu, &since);
    clock->busy = later(clock->busy, clock->base + (uint64_t)cycles);
    clock->next =
        clock->own->machine_instructions + LEAST_NEWS + machine_since(clock) / PART_OF_NEWS;
}

/* @return the time at which a warp stores */
static uint64_t time_of_store(const struct simt_warp *warp) {
    struct simt_block *block = warp->block;
    struct simt_block_clock *clock = block->clock;
    if (clock->own->machine_instructions >= clock->next) {
        look_at_units(block);
    }
    simt_pipeline_delay(block->pipeline, warp->index, clock->busy);
    return simt_pipeline_now(block->pipeline, warp->index);
}

/* A warp loads what another block stored at that time. What the block does from here on comes
 * behind it: also what its other warps do, which may learn of it by ways that nobody follows. */
static void wait_until(const struct simt_warp *warp, uint64_t cycles) {
    struct simt_block *block = warp->block;
    struct simt_block_clock *clock = block->clock;
    if (cycles <= clock->waited) {
        return;
    }
    clock->waited = cycles;
    if (machine_since(clock) >= LEAST_NEWS) {
        look_at_units(block);
        clock->base = clock->busy;
        clock->from = *clock->own;
    }
    clock->base = later(clock->base, cycles);
    clock->busy = later(clock->busy, cycles);
    simt_pipeline_wait_for_block(block->pipeline, cycles);
}

static struct simt_store_time store_at(const struct simt_warp *warp) {
    return (struct simt_store_time){.cycles = time_of_store(warp), .block = warp->block->order};
}

/* Bytes that a request's lanes reach, from its first address on, where these lie side by side. */
static size_t bytes_together(const struct simt_request *request) {
    switch ((enum simt_shape)request->pattern->shape) {
    case SIMT_SHAPE_SAME:
        return request->bytes;
    case SIMT_SHAPE_CONTIGUOUS:
        return (size_t)SIMT_LANES * request->bytes;
    default:
        return 0;
    }
}

static uint64_t address_of(const struct simt_request *request, uint32_t lane) {
    return request->first + (uint64_t)(int64_t)request->relative[lane];
}

static void note_stores(const struct simt_request *request) {
    struct simt_store_times *times = request->warp->block->clock->all->times;
    const struct simt_store_time store = store_at(request->warp);
    size_t together = bytes_together(request);
    if (together > 0) {
        simt_store_times_note(times, request->first, together, &store);
        return;
    }
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        simt_store_times_note(times, address_of(request, simt_first_lane(rest)), request->bytes,
                              &store);
    }
}

static uint64_t latest_of(const struct simt_request *request) {
    const struct simt_block *block = request->warp->block;
    struct simt_store_times *times = block->clock->all->times;
    size_t together = bytes_together(request);
    uint64_t latest = 0;
    if (together > 0) {
        return simt_store_times_latest(times, request->first, together, block->order);
    }
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint64_t address = address_of(request, simt_first_lane(rest));
        latest =
            later(latest, simt_store_times_latest(times, address, request->bytes, block->order));
    }
    return latest;
}

void simt_block_clock_request(const struct simt_request *request, bool in_l1) {
    struct simt_warp *warp = request->warp;
    const struct simt_alone *alone = &warp->block->clock->all->alone;
    bool updates = request->kind == SIMT_ATOMIC;
    if (request->kind == SIMT_READ) {
        uint32_t cycles = in_l1 ? alone->l1_latency : alone->l2_latency;
        warp->load_cycles = cycles > warp->load_cycles ? cycles : warp->load_cycles;
        wait_until(warp, latest_of(request));
    } else if (!updates || request->places != NULL) { /* else simt_block_clock_update() */
        note_stores(request);
    }
}

void simt_block_clock_update(const struct simt_request *request, uint32_t lane,
                             enum simt_update how) {
    struct simt_warp *warp = request->warp;
    const struct simt_block_clocks *all = warp->block->clock->all;
    uint64_t address = address_of(request, lane);
    uint32_t bytes = request->bytes;
    if ((request->instruction->timing & SIMT_TIMING_USED) != 0) {
        warp->load_cycles = all->alone.l2_latency;
        wait_until(warp, simt_store_times_latest(all->times, address, bytes, warp->block->order));
    }
    if (how == SIMT_UPDATE_CHANGES) {
        const struct simt_store_time store = store_at(warp);
        simt_store_times_note(all->times, address, bytes, &store);
    }
}

void simt_block_clock_end(struct simt_block *block) {
    struct simt_block_clock *clock = block->clock;
    if (clock->waited == 0) {
        return;
    }
    look_at_units(block);
    uint64_t end = later(clock->busy, simt_pipeline_last(block->pipeline));
    clock->all->latest = later(clock->all->latest, end);
}

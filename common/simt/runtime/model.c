#include "common/simt/runtime/model.h"

/** Nanoseconds before the work itself begins; round figures of current GPUs. */
static const double LAUNCH_OVERHEAD = 2500;
static const double GRAPH_NODE_OVERHEAD = 1300;
static const double COPY_OVERHEAD = 4000;

enum { ISSUE_PER_CLOCK = 4, SECTOR_BYTES = 32 };

/* Cycles of all multiprocessors that have a block, in one nanosecond. */
static double cycles_per_nanosecond(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double used = (double)gpu->multiprocessors;
    if ((double)cost->blocks < used) {
        used = (double)cost->blocks;
    }
    return used * gpu->clock_khz / 1e6;
}

static double issue_nanoseconds(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    uint64_t instructions = 0;
    for (int i = 0; i < SIMT_CLASS_COUNT; i++) {
        instructions += cost->counters->instructions[i];
    }
    double rate = ISSUE_PER_CLOCK * cycles_per_nanosecond(gpu, cost);
    return rate > 0 ? (double)instructions / rate : 0;
}

static double shared_nanoseconds(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    const struct simt_counters *counters = cost->counters;
    uint64_t wavefronts = counters->shared_load_wavefronts + counters->shared_store_wavefronts;
    double rate = cycles_per_nanosecond(gpu, cost);
    return rate > 0 ? (double)wavefronts / rate : 0;
}

static double largest(double a, double b) {
    return a > b ? a : b;
}

static double launch_nanoseconds(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    const struct simt_counters *counters = cost->counters;
    double sectors = (double)(counters->global_load_sectors + counters->global_store_sectors +
                              counters->local_sectors);
    double memory = SECTOR_BYTES * sectors / gpu->bandwidth;
    double issue = issue_nanoseconds(gpu, cost);
    double overhead = cost->graph ? GRAPH_NODE_OVERHEAD : LAUNCH_OVERHEAD;
    double shared = shared_nanoseconds(gpu, cost);
    return overhead + largest(largest(issue, memory), shared);
}

double simt_model_advance(double *clock, const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double overhead = cost->graph ? GRAPH_NODE_OVERHEAD : COPY_OVERHEAD;
    double bytes = (double)cost->bytes;
    double time = 0;
    switch (cost->kind) {
    case SIMT_COST_LAUNCH:
        time = launch_nanoseconds(gpu, cost);
        break;
    case SIMT_COST_BUS_COPY:
        time = overhead + bytes / gpu->bus;
        break;
    case SIMT_COST_DEVICE_COPY:
        time = overhead + 2 * bytes / gpu->bandwidth;
        break;
    case SIMT_COST_SET:
        time = overhead + bytes / gpu->bandwidth;
        break;
    }
    *clock += time;
    return time;
}

#include "common/simt/runtime/gpu/model.h"

#include <math.h>

/** Nanoseconds before the work itself begins; measured on an H200. */
static const double LAUNCH_OVERHEAD = 3500;
static const double GRAPH_NODE_OVERHEAD = 100;
static const double COPY_OVERHEAD = 3500;
static const double PAGEABLE_OVERHEAD = 8000;
static const double DEVICE_OVERHEAD = 4500; /* copies and sets within the device */

/** Share of the datasheet's bandwidth that a copy reaches: 4257 of 4800 GB/s on an H200. */
static const double BANDWIDTH_REACHED = 0.887;
/** Bytes a nanosecond at which the host copies pageable memory to and from pinned memory. */
static const double HOST_COPY = 23;

/* Fitted on the 18 kernels of calibration/kernels.cu. */
static const double L2_REQUEST_BYTES = 100;  /* L2 takes a request for less as long as for these */
static const double MEMORY_UNDER_LOAD = 1.8; /* latency of device memory when it is busy */
static const double BLOCK_CYCLES = 800;      /* of a warp's start and end */
/* Fitted on histogram_global: lanes of atomics on one line of L2, a nanosecond. */
static const double ATOMICS_OF_A_LINE = 1.35;

enum {
    LANES = 32,
    SCHEDULERS = 4,
    LINE_BYTES = 128,
    SECTOR_BYTES = 32,
    SPECIAL_LANES = 16,
    FILL_BYTES = 64, /* from L2 into L1, a cycle and multiprocessor */
    L1_LATENCY = 40, /* cycles */
    ROUNDS = 100     /* of the iteration for a queueing network: far more than it needs */
};

enum {
    ISSUE = SIMT_STATION_ISSUE,
    L1 = SIMT_STATION_L1,
    FLOAT = SIMT_STATION_FLOAT,
    DOUBLE = SIMT_STATION_DOUBLE,
    SPECIAL = SIMT_STATION_SPECIAL,
    TENSOR = SIMT_STATION_TENSOR,
    L2 = SIMT_STATION_L2,
    MEMORY = SIMT_STATION_MEMORY,
    ATOMICS = SIMT_STATION_ATOMICS,
    STATIONS = SIMT_STATION_COUNT
};

/** A launch as a closed queueing network, seen from the busiest multiprocessor. */
struct network {
    double demand[STATIONS]; /**< cycles that a warp needs of each unit */
    double chain, loads;     /**< cycles in which a warp needs none: it waits for its own results */
    double warps;            /**< of a block */
    double together;         /**< warps that move as one, as barriers make them */
};

static double least(double a, double b) {
    return a < b ? a : b;
}

static double largest(double a, double b) {
    return a > b ? a : b;
}

static double share(double part, double whole) {
    return whole > 0 ? least(part / whole, 1) : 0;
}

static double clock_of(const struct simt_gpu *gpu) {
    return gpu->clock_khz / 1e6; /* cycles a nanosecond */
}

/** Multiprocessors that have a block. */
static double processors_used(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    return least((double)gpu->multiprocessors, (double)cost->blocks);
}

static double missed_sectors(const struct simt_counters *c) {
    return largest((double)c->global_load_sectors - (double)c->l1_hit_sectors, 0);
}

/** Cycles of all multiprocessors' L1 and shared memory together. */
static double l1_cycles(const struct simt_gpu *gpu, const struct simt_counters *c) {
    double local_lines = (double)c->local_sectors * SECTOR_BYTES / LINE_BYTES;
    double wavefronts = (double)c->shared_load_wavefronts + (double)c->shared_store_wavefronts;
    double passes = (double)c->global_lines + local_lines + wavefronts + (double)c->atomic_serial;
    return passes * LINE_BYTES / gpu->l1_bytes_per_clock +
           missed_sectors(c) * SECTOR_BYTES / FILL_BYTES;
}

/** What the tensor cores did: more operations than the other units could have done. */
static double tensor_flops(const struct simt_counters *c) {
    double others =
        2.0 * LANES *
        (double)(c->instructions[SIMT_CLASS_FLOAT] + c->instructions[SIMT_CLASS_DOUBLE] +
                 c->instructions[SIMT_CLASS_SPECIAL]);
    return c->instructions[SIMT_CLASS_TENSOR] > 0 ? largest((double)c->flops - others, 0) : 0;
}

static double l2_nanoseconds(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    const struct simt_counters *c = cost->counters;
    double sectors = (double)c->l2_sectors + (double)c->local_sectors;
    double asked = (double)c->global_load_sectors + (double)c->global_store_sectors;
    double requests = (double)c->global_lines * share((double)c->l2_sectors, asked);
    double port = FILL_BYTES * clock_of(gpu) * processors_used(gpu, cost);
    double bytes = largest(sectors * SECTOR_BYTES, requests * L2_REQUEST_BYTES);
    return largest(bytes / gpu->l2_bandwidth, sectors * SECTOR_BYTES / port);
}

/** Nanoseconds of all used multiprocessors become cycles of one for a warp. */
static double cycles_a_warp(const struct simt_gpu *gpu, const struct simt_cost *cost, double warps,
                            double nanoseconds) {
    return nanoseconds * clock_of(gpu) * processors_used(gpu, cost) / warps;
}

static void set_demands(struct network *n, const struct simt_gpu *gpu,
                        const struct simt_cost *cost) {
    const struct simt_counters *c = cost->counters;
    const uint64_t *of = c->instructions;
    double warps = n->warps * (double)cost->blocks;
    double special = (double)of[SIMT_CLASS_SPECIAL] + (double)of[SIMT_CLASS_CONVERT] / 2;
    double memory = (double)c->dram_bytes / (gpu->bandwidth * BANDWIDTH_REACHED);
    double atomics = (double)c->atomic_hottest / ATOMICS_OF_A_LINE;
    double lanes = gpu->float_lanes;
    n->demand[ISSUE] = (double)c->machine_instructions / SCHEDULERS / warps;
    n->demand[L1] = l1_cycles(gpu, c) / warps;
    n->demand[FLOAT] = (double)of[SIMT_CLASS_FLOAT] * (LANES / lanes - 1.0 / SCHEDULERS) / warps;
    n->demand[DOUBLE] = (double)of[SIMT_CLASS_DOUBLE] * LANES * gpu->double_ratio / lanes / warps;
    n->demand[SPECIAL] = special * LANES / SPECIAL_LANES / warps;
    n->demand[TENSOR] = tensor_flops(c) / gpu->tensor_flops / warps;
    n->demand[L2] = cycles_a_warp(gpu, cost, warps, l2_nanoseconds(gpu, cost));
    n->demand[MEMORY] = cycles_a_warp(gpu, cost, warps, memory);
    n->demand[ATOMICS] = cycles_a_warp(gpu, cost, warps, atomics);
}

/** Cycles of a load, as many of them as hit L1, L2 or neither. */
static double load_latency(const struct simt_gpu *gpu, const struct simt_counters *c) {
    double in_l1 = share((double)c->l1_hit_sectors, (double)c->global_load_sectors);
    double in_memory = share((double)c->dram_bytes, (double)c->l2_sectors * SECTOR_BYTES);
    double beyond =
        (1 - in_memory) * gpu->l2_latency + in_memory * gpu->memory_latency * MEMORY_UNDER_LOAD;
    return in_l1 * L1_LATENCY + (1 - in_l1) * beyond;
}

static void set_wait(struct network *n, const struct simt_gpu *gpu, const struct simt_counters *c) {
    double followed = c->followed_warps > 0 ? (double)c->followed_warps : 1;
    double chain = (double)c->chain_cycles / followed; /* its own issue is part of it */
    n->chain = largest(chain - n->demand[ISSUE], 0);
    n->loads = (double)c->chain_loads / followed * load_latency(gpu, c);
}

/**
 * @brief Mean value analysis, Schweitzer's approximation.
 * @param blocks resident on the multiprocessor
 * @param stay   (STATIONS) receives the cycles of a round at each unit
 * @return cycles in which one warp comes round, over the warps that go round at a time
 */
static double cycles_between_warps(const struct network *n, double blocks, double stay[STATIONS]) {
    double customers = blocks * n->warps / n->together;
    double queue[STATIONS] = {0};
    double round = 0;
    for (int i = 0; i < ROUNDS; i++) {
        round = BLOCK_CYCLES + n->chain + n->loads;
        for (int s = 0; s < STATIONS; s++) {
            double others = queue[s] * largest(customers - 1, 0) / customers;
            stay[s] = n->demand[s] * n->together * (1 + others);
            round += stay[s];
        }
        for (int s = 0; s < STATIONS; s++) {
            queue[s] = customers * stay[s] / round;
        }
    }
    return round / (blocks * n->warps);
}

static struct network network_of(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    struct network n = {.warps = ceil((cost->threads > 0 ? cost->threads : 1.0) / LANES),
                        .together = 1};
    if (cost->counters->barriers > 0) {
        n.together = sqrt(n.warps);
    }
    set_demands(&n, gpu, cost);
    set_wait(&n, gpu, cost->counters);
    return n;
}

/** Blocks of the busiest multiprocessor run in full waves and a last one. */
struct waves {
    double blocks, resident, full, rest;
};

static struct waves waves_of(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    struct waves w = {.blocks = ceil((double)cost->blocks / gpu->multiprocessors)};
    w.resident = least(cost->resident > 0 ? cost->resident : 1, w.blocks);
    w.full = floor(w.blocks / w.resident);
    w.rest = w.blocks - w.full * w.resident;
    return w;
}

static double run_nanoseconds(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    const struct network n = network_of(gpu, cost);
    const struct waves w = waves_of(gpu, cost);
    double stay[STATIONS];
    double cycles = w.full * w.resident * n.warps * cycles_between_warps(&n, w.resident, stay);
    if (w.rest > 0) {
        cycles += w.rest * n.warps * cycles_between_warps(&n, w.rest, stay);
    }
    return cycles / clock_of(gpu);
}

static double bus_nanoseconds(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double bytes = (double)cost->bytes;
    double bus = bytes / gpu->bus;
    return cost->pageable ? PAGEABLE_OVERHEAD + bus + bytes / HOST_COPY : COPY_OVERHEAD + bus;
}

static double nanoseconds_of(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double memory = (double)cost->bytes / (gpu->bandwidth * BANDWIDTH_REACHED);
    double overhead = cost->graph ? GRAPH_NODE_OVERHEAD : DEVICE_OVERHEAD;
    switch (cost->kind) {
    case SIMT_COST_LAUNCH:
        overhead = cost->graph ? GRAPH_NODE_OVERHEAD : LAUNCH_OVERHEAD;
        return cost->blocks > 0 ? overhead + run_nanoseconds(gpu, cost) : overhead;
    case SIMT_COST_BUS_COPY:
        return bus_nanoseconds(gpu, cost);
    case SIMT_COST_DEVICE_COPY: /* read and written */
        return overhead + 2 * memory;
    case SIMT_COST_SET:
        return overhead + memory;
    }
    return 0;
}

/** Adds the rounds of @p times batches of @p blocks, each warp's time counted. */
static void add_rounds(struct simt_explanation *e, const struct network *n, double times,
                       double blocks) {
    double stay[STATIONS];
    if (times * blocks > 0) {
        (void)cycles_between_warps(n, blocks, stay);
        for (int s = 0; s < STATIONS; s++) {
            e->stay[s] += times * blocks * stay[s];
        }
        e->chain += times * blocks * n->chain;
        e->loads += times * blocks * n->loads;
        e->block += times * blocks * BLOCK_CYCLES;
    }
}

static void make_shares(struct simt_explanation *e) {
    double all = e->chain + e->loads + e->block;
    for (int s = 0; s < STATIONS; s++) {
        all += e->stay[s];
    }
    for (int s = 0; s < STATIONS; s++) {
        e->stay[s] = share(e->stay[s], all);
    }
    e->chain = share(e->chain, all);
    e->loads = share(e->loads, all);
    e->block = share(e->block, all);
}

void simt_model_explain(struct simt_explanation *e, const struct simt_gpu *gpu,
                        const struct simt_cost *cost) {
    const struct network n = network_of(gpu, cost);
    const struct waves w = waves_of(gpu, cost);
    double run = run_nanoseconds(gpu, cost);
    double stay[STATIONS];
    *e = (struct simt_explanation){.nanoseconds = nanoseconds_of(gpu, cost),
                                   .blocks = (uint64_t)w.blocks,
                                   .resident = (uint32_t)least(w.resident, SIMT_MOST_RESIDENT)};
    e->overhead = e->nanoseconds - run;
    for (uint32_t b = 0; b < e->resident; b++) {
        double blocks = b + 1;
        e->batch[b] = blocks * n.warps * cycles_between_warps(&n, blocks, stay) / clock_of(gpu);
    }
    for (int s = 0; s < STATIONS; s++) {
        e->busy[s] = share(n.demand[s] * n.warps * w.blocks, run * clock_of(gpu));
    }
    add_rounds(e, &n, w.full, w.resident);
    add_rounds(e, &n, 1, w.rest);
    make_shares(e);
}

void simt_model_limits(struct simt_limits *limits, const struct simt_gpu *gpu) {
    double tensor = (double)gpu->tensor_flops * gpu->multiprocessors * gpu->clock_khz * 1e3;
    *limits = (struct simt_limits){
        .tensor_flops = gpu->major >= 8 ? tensor : 0.0, /* bf16 came with 8.0 */
        .memory = gpu->bandwidth * BANDWIDTH_REACHED * 1e9,
        .l2 = gpu->l2_bandwidth * 1e9,
        .bus = 1e9 / (1.0 / gpu->bus + 1.0 / HOST_COPY),
    };
}

/** From here on a unit counts as the limit; below, warps mostly wait for themselves. */
static const double BUSY = 0.5;

static enum simt_unit unit_of(enum simt_station station) {
    static const enum simt_unit UNITS[STATIONS] = {
        [ISSUE] = SIMT_UNIT_ISSUE,   [L1] = SIMT_UNIT_L1,           [FLOAT] = SIMT_UNIT_FLOAT,
        [DOUBLE] = SIMT_UNIT_DOUBLE, [SPECIAL] = SIMT_UNIT_SPECIAL, [TENSOR] = SIMT_UNIT_TENSOR,
        [L2] = SIMT_UNIT_L2,         [MEMORY] = SIMT_UNIT_MEMORY,   [ATOMICS] = SIMT_UNIT_ATOMICS};
    return UNITS[station];
}

/** Shares of the busiest multiprocessor's time in which each unit works. */
static void set_shares(struct simt_profile *profile, const struct simt_gpu *gpu,
                       const struct simt_cost *cost) {
    struct network n = {.warps = ceil((cost->threads > 0 ? cost->threads : 1.0) / LANES)};
    double warps = ceil((double)cost->blocks / gpu->multiprocessors) * n.warps;
    double cycles = (profile->nanoseconds - profile->overhead) * clock_of(gpu);
    set_demands(&n, gpu, cost);
    /* The network has only what goes beyond issue. */
    n.demand[FLOAT] = (double)cost->counters->instructions[SIMT_CLASS_FLOAT] * LANES /
                      gpu->float_lanes / (n.warps * (double)cost->blocks);
    for (int s = 0; s < STATIONS; s++) {
        profile->share[unit_of((enum simt_station)s)] = share(n.demand[s] * warps, cycles);
    }
}

void simt_model_profile(struct simt_profile *profile, const struct simt_gpu *gpu,
                        const struct simt_cost *cost, double nanoseconds) {
    profile->nanoseconds = nanoseconds;
    profile->overhead = cost->graph ? GRAPH_NODE_OVERHEAD : LAUNCH_OVERHEAD;
    profile->unit = SIMT_UNIT_LAUNCH;
    if (cost->blocks == 0) {
        return;
    }
    set_shares(profile, gpu, cost);
    if (nanoseconds < 2 * profile->overhead) {
        return;
    }
    profile->unit = SIMT_UNIT_LATENCY;
    double most = BUSY;
    for (uint32_t u = 0; u < SIMT_UNIT_COUNT; u++) {
        if (profile->share[u] >= most) {
            most = profile->share[u];
            profile->unit = u;
        }
    }
}

double simt_model_advance(double *clock, const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double time = nanoseconds_of(gpu, cost);
    *clock += time;
    return time;
}

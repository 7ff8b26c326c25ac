#include "common/simt/runtime/gpu/model.h"

#include <math.h>
#include <stdlib.h>

#include "common/simt/memory/tensor_flops.h"

/** Nanoseconds before the work itself begins; measured on an H200. */
static const double LAUNCH_OVERHEAD = 3500;
static const double GRAPH_OVERHEAD = 800;
static const double FIRST_GRAPH_OVERHEAD = 2400; /* nothing before it hides its launch */
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
/* Fitted on the 12 kernels of calibration/priced_kernels.cu. */
static const double CONSTANT_CYCLES = 2.1; /* of each further address that a warp reads at a time */
static const double INT4_OF_HOPPER = 11;   /* fp16's time; they are made of other instructions */
/* Fitted on histogram_global: lanes of atomics on one line of L2, a nanosecond. */
static const double ATOMICS_OF_A_LINE = 1.35;

/** Blocks are taken for alike where it makes no more of a difference than this. */
static const double EVEN = 0.02;
/** So near a number of multiprocessors is not worth placing blocks once more. */
static const double CLOSE_ENOUGH = 0.01;
/** A multiprocessor that has blocks for no more of the time counts as idle. */
static const double IDLE = 0.1;

/* Between the shared memories of a cluster's blocks, bytes a cycle and multiprocessor: the two
 * multiprocessors of a pair (TPC) have a way of their own, what leaves the pair shares one. Fitted
 * on `hopper peers`. */
static const double PAIR_BYTES = 16, FAR_BYTES = 8.5;

enum {
    LANES = 32,
    SCHEDULERS = 4,
    LINE_BYTES = 128,
    SECTOR_BYTES = 32,
    SPECIAL_LANES = 16,
    FILL_BYTES = 64, /* from L2 into L1, a cycle and multiprocessor */
    L1_LATENCY = 40  /* cycles */
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

static double missed_sectors(const struct simt_counters *c) {
    return largest((double)c->global_load_sectors - (double)c->l1_hit_sectors, 0);
}

/** Cycles of a shared memory for a pass of what other blocks ask it for: lanes that meet in a bank
 * come one after the other. Fitted on `hopper conflicts`. */
static const double SERVED_PASS = 1, SERVED_ATOMIC = 2.6;

/** Cycles of what goes to the shared memory of other blocks, one more a request; or of what they
 * ask this one for. */
static double peer_cycles(const struct simt_counters *c) {
    double far = (double)c->peer_far_sectors, pair = (double)c->peer_sectors - far;
    double bytes = far > 0 ? FAR_BYTES : PAIR_BYTES;
    double asks = (double)c->peer_requests + (pair / PAIR_BYTES + far / FAR_BYTES) * SECTOR_BYTES;
    double passes = SERVED_PASS * (double)c->peer_served_passes +
                    SERVED_ATOMIC * (double)c->peer_served_atomics;
    double served = (double)c->peer_served_sectors * SECTOR_BYTES / bytes;
    return largest(asks, largest(served, passes));
}

/** Accesses to local memory for want of registers: a line of each warp. */
static double spills_of(const struct simt_counters *c) {
    return (double)c->spills / 256;
}

/** Cycles of all multiprocessors' L1 and shared memory together. */
static double l1_cycles(const struct simt_gpu *gpu, const struct simt_counters *c) {
    double local_lines = (double)c->local_sectors * SECTOR_BYTES / LINE_BYTES;
    double wavefronts = (double)c->shared_load_wavefronts + (double)c->shared_store_wavefronts;
    double passes = (double)c->global_lines + local_lines + wavefronts + (double)c->atomic_serial +
                    CONSTANT_CYCLES * (double)c->constant_serial + spills_of(c);
    return passes * LINE_BYTES / gpu->l1_bytes_per_clock + peer_cycles(c) +
           missed_sectors(c) * SECTOR_BYTES / FILL_BYTES;
}

/** Counts of blocks that are taken for alike: of a class, or of the launch. */
struct alike {
    const struct simt_counters *counters;
    double blocks;
    double threads; /* of a block */
};

/** Multiprocessors among which each unit of the whole GPU is divided. */
struct sharers {
    double l2, memory, atomics;
};

static double warps_of(const struct alike *alike) {
    return ceil((alike->threads > 0 ? alike->threads : 1.0) / LANES);
}

/** Warps of a block that would have as much to do as its longest: idle ones do not count. */
static double busy_warps(const struct alike *alike) {
    double machine = (double)alike->counters->machine_instructions;
    double longest = (double)alike->counters->longest_warps;
    double warps = warps_of(alike);
    return longest > 0 ? largest(least(machine / longest, warps), 1) : warps;
}

/** Cycles that a multiprocessor takes of L2, of which it gets its share; and no more than its port
 * lets through. */
static double l2_cycles(const struct simt_gpu *gpu, const struct simt_counters *c, double sharers) {
    double sectors = (double)c->l2_sectors + (double)c->local_sectors;
    double asked = (double)c->global_load_sectors + (double)c->global_store_sectors;
    double requests = (double)c->global_lines * share((double)c->l2_sectors, asked);
    double bytes = largest(sectors * SECTOR_BYTES, requests * L2_REQUEST_BYTES);
    return largest(bytes / gpu->l2_bandwidth * clock_of(gpu) * sharers,
                   sectors * SECTOR_BYTES / FILL_BYTES);
}

static double float_cycles(const struct simt_gpu *gpu, const struct simt_counters *c) {
    return (double)c->instructions[SIMT_CLASS_FLOAT] * LANES / gpu->float_lanes;
}

/** Operations of doubles that tensor cores do in a cycle: on an A100 twice those of the other
 * units. Elsewhere these units do them, or Hopper's tensor cores at their speed: the shape m8n8k4,
 * which was measured; larger shapes may be faster. */
static double double_products(const struct simt_gpu *gpu) {
    double others = 2.0 * gpu->float_lanes / gpu->double_ratio;
    return gpu->major == 8 && gpu->minor == 0 ? 2.0 * others : others;
}

/** How long tensor cores take for an operation of a format, to one of fp16. Since Hopper they have
 * no units for int4. */
static double times_of_fp16(const struct simt_gpu *gpu, enum simt_tensor_format format) {
    switch (format) {
    case SIMT_TENSOR_TF32:
        return 2.0;
    case SIMT_TENSOR_F64:
        return gpu->tensor_flops / double_products(gpu);
    case SIMT_TENSOR_FP8:
    case SIMT_TENSOR_INT8:
        return 0.5;
    case SIMT_TENSOR_INT4:
        return gpu->major < 9 ? 0.25 : INT4_OF_HOPPER;
    default:
        return 1.0;
    }
}

/** Cycles of all multiprocessors' tensor cores together. */
static double tensor_cycles(const struct simt_gpu *gpu, const struct simt_counters *c) {
    double floats = 0, integers = 0; /* as many operations of fp16 take as long */
    for (int n = 0; n < SIMT_TENSOR_FORMATS; n++) {
        enum simt_tensor_format format = (enum simt_tensor_format)n;
        double *sum = simt_tensor_is_integer(format) ? &integers : &floats;
        *sum += (double)c->tensor_operations[n] * times_of_fp16(gpu, format);
    }
    double all = simt_tensor_float_operations(c);
    double longer = all > 0 ? floats / all : 1;
    return (simt_tensor_flops(c) * longer + integers) / gpu->tensor_flops;
}

/** Cycles of the units that all these blocks take; `atomics`: share of the launch's. */
static void set_cycles(double cycles[STATIONS], const struct simt_gpu *gpu,
                       const struct simt_counters *c, const struct sharers *sharers) {
    const uint64_t *of = c->instructions;
    double special = (double)of[SIMT_CLASS_SPECIAL] + (double)of[SIMT_CLASS_CONVERT] / 2;
    double memory = (double)c->dram_bytes / (gpu->bandwidth * BANDWIDTH_REACHED);
    double atomics = (double)c->atomic_hottest / ATOMICS_OF_A_LINE;
    double lanes = gpu->float_lanes;
    cycles[ISSUE] = ((double)c->machine_instructions + spills_of(c)) / SCHEDULERS;
    cycles[L1] = l1_cycles(gpu, c);
    cycles[FLOAT] = float_cycles(gpu, c) - (double)of[SIMT_CLASS_FLOAT] / SCHEDULERS;
    cycles[DOUBLE] = (double)of[SIMT_CLASS_DOUBLE] * LANES * gpu->double_ratio / lanes;
    cycles[SPECIAL] = special * LANES / SPECIAL_LANES;
    cycles[TENSOR] = tensor_cycles(gpu, c);
    cycles[L2] = l2_cycles(gpu, c, sharers->l2);
    cycles[MEMORY] = memory * clock_of(gpu) * sharers->memory;
    cycles[ATOMICS] = atomics * clock_of(gpu) * sharers->atomics;
}

/** Cycles of a load, as many of them as hit L1, L2 or neither. */
static double load_latency(const struct simt_gpu *gpu, const struct simt_counters *c) {
    double in_l1 = share((double)c->l1_hit_sectors, (double)c->global_load_sectors);
    double in_memory = share((double)c->dram_bytes, (double)c->l2_sectors * SECTOR_BYTES);
    double beyond =
        (1 - in_memory) * gpu->l2_latency + in_memory * gpu->memory_latency * MEMORY_UNDER_LOAD;
    return in_l1 * L1_LATENCY + (1 - in_l1) * beyond;
}

static double ratio(double part, double whole, double otherwise) {
    return whole > 0 ? part / whole : otherwise;
}

/**
 * @brief How much longer the chains of followed warps are, each weighted with its own length, than
 * on average: n if one of n warps alone has a chain, 1 if all have the same.
 *
 * A block waits for the one that waits longest, whatever the others do meanwhile.
 */
static double spread_of(const struct simt_counters *c) {
    double sum = (double)c->chain_cycles + (double)c->chain_loads * SIMT_LOAD_NOMINAL;
    double squares = 256.0 * (double)c->chain_squares * (double)c->followed_warps;
    return largest(ratio(squares, sum * sum, 1), 1);
}

/** The chain of waiting of a block's longest warp: cycles and loads. */
struct chain {
    double cycles, loads;
};

/**
 * @brief From the warps of these blocks that were followed, as long as the longest is than they
 * are.
 *
 * Where none was, or only such as have much less to do, their instructions wait as those of the
 * whole launch; and their loads as often, all of them if no load was followed at all.
 */
static struct chain chain_of(const struct alike *alike, const struct simt_counters *launch) {
    const struct simt_counters *c = alike->counters;
    double machine = (double)c->machine_instructions / alike->blocks / busy_warps(alike);
    double followed = ratio((double)c->followed_machine, (double)c->followed_warps, 0);
    if (followed > 0 && 2 * followed >= machine) {
        double longer = largest(machine / followed, spread_of(c));
        return (struct chain){.cycles =
                                  (double)c->chain_cycles / (double)c->followed_warps * longer,
                              .loads = (double)c->chain_loads / (double)c->followed_warps * longer};
    }
    double loads =
        (double)c->global_load_requests + (double)c->local_requests + (double)c->atomic_requests;
    double waiting = ratio((double)launch->chain_loads, (double)launch->followed_loads, 1);
    double cycles = ratio((double)launch->chain_cycles, (double)launch->followed_machine, 1);
    return (struct chain){.cycles = machine * cycles,
                          .loads = loads / alike->blocks / busy_warps(alike) * least(waiting, 1)};
}

/** Operations a clock of wgmma to those of mma. */
static const double WGMMA_TO_MMA = 4096.0 / 2560.0;
/* Fitted on twelve kernels of calibration/hopper. */
static const double PIPELINE_CYCLES = 3000; /* start and end of a block with barriers and copies */
static const double COPIES_OF_L2 = 1.4; /* L2 takes as much longer for bulk copies than for loads */

/** Lines of global memory that threads reach themselves, each a cycle of L1; not those of copies.
 */
static double own_lines(const struct simt_counters *c) {
    return largest((double)c->global_lines - (double)c->bulk_bytes / LINE_BYTES, 0);
}

/**
 * @brief A block whose warps copy, multiply and store beside each other (memory/pipeline.h): one
 *        customer, which takes as long as its last warp, or as the unit that it keeps busy longest.
 */
static struct simt_need need_of_pipeline(const struct simt_gpu *gpu, const struct alike *alike,
                                         const struct sharers *sharers) {
    struct simt_counters c = *alike->counters;
    struct simt_need need = {.warps = 1, .together = 1};
    double cycles[STATIONS];
    int busiest = 0;
    double last = (double)c.pipelined_cycles / (double)c.pipelined_blocks;
    set_cycles(cycles, gpu, &c, sharers);
    cycles[TENSOR] /= WGMMA_TO_MMA;
    cycles[L2] *= COPIES_OF_L2;
    for (int s = 0; s < STATIONS; s++) {
        busiest = cycles[s] > cycles[busiest] ? s : busiest;
    }
    need.demand[busiest] = cycles[busiest] / alike->blocks;
    need.wait[SIMT_LATENCY_BLOCK] = BLOCK_CYCLES + PIPELINE_CYCLES;
    need.wait[SIMT_LATENCY_CHAIN] =
        largest(last + own_lines(&c) / alike->blocks - need.demand[busiest], 0);
    return need;
}

static struct simt_need need_of(const struct simt_gpu *gpu, const struct alike *alike,
                                const struct simt_counters *launch, const struct sharers *sharers) {
    if (alike->counters->pipelined_blocks > 0) {
        return need_of_pipeline(gpu, alike, sharers);
    }
    struct simt_need need = {.warps = busy_warps(alike), .together = 1};
    struct chain chain = chain_of(alike, launch);
    double cycles[STATIONS];
    if (alike->counters->barriers > 0) {
        need.together = sqrt(need.warps);
    }
    set_cycles(cycles, gpu, alike->counters, sharers);
    for (int s = 0; s < STATIONS; s++) {
        need.demand[s] = cycles[s] / alike->blocks / need.warps;
    }
    need.wait[SIMT_LATENCY_BLOCK] = BLOCK_CYCLES;
    need.wait[SIMT_LATENCY_CHAIN] = largest(chain.cycles - need.demand[ISSUE], 0);
    need.wait[SIMT_LATENCY_LOADS] = chain.loads * load_latency(gpu, alike->counters);
    return need;
}

/** Cycles of the unit that a running block takes most of, where all of L2 is its own. The rest of
 * the model makes it longer: other blocks, latencies, device memory. */
static double busiest_cycles(const void *of, const struct simt_counters *counters) {
    const struct simt_gpu *gpu = of;
    const struct sharers alone = {1, 1, 1};
    struct simt_counters c = *counters;
    double cycles[STATIONS], most = 0;
    c.l2_sectors -= c.l1_hit_sectors < c.l2_sectors ? c.l1_hit_sectors : c.l2_sectors;
    c.dram_bytes = c.atomic_hottest = 0; /* of a whole launch alone they are known */
    set_cycles(cycles, gpu, &c, &alone);
    cycles[TENSOR] /= gpu->major >= 9 ? WGMMA_TO_MMA : 1;
    for (int s = 0; s < STATIONS; s++) {
        most = largest(most, cycles[s]);
    }
    return most;
}

struct simt_alone simt_model_alone(const struct simt_gpu *gpu) {
    return (struct simt_alone){.cycles = busiest_cycles,
                               .gpu = gpu,
                               .l1_latency = L1_LATENCY,
                               .l2_latency = (uint32_t)gpu->l2_latency};
}

static double bus_nanoseconds(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double bytes = (double)cost->bytes;
    double bus = bytes / gpu->bus;
    return cost->pageable ? PAGEABLE_OVERHEAD + bus + bytes / HOST_COPY : COPY_OVERHEAD + bus;
}

static double launch_overhead(const struct simt_cost *cost) {
    return cost->graph ? GRAPH_NODE_OVERHEAD : LAUNCH_OVERHEAD;
}

static double nanoseconds_of(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double memory = (double)cost->bytes / (gpu->bandwidth * BANDWIDTH_REACHED);
    double overhead = cost->graph ? GRAPH_NODE_OVERHEAD : DEVICE_OVERHEAD;
    struct simt_explanation e;
    switch (cost->kind) {
    case SIMT_COST_LAUNCH:
        simt_model_explain(&e, gpu, cost, NULL);
        return e.nanoseconds;
    case SIMT_COST_GRAPH:
        return cost->first ? FIRST_GRAPH_OVERHEAD : GRAPH_OVERHEAD;
    case SIMT_COST_BUS_COPY:
        return bus_nanoseconds(gpu, cost);
    case SIMT_COST_DEVICE_COPY: /* read and written */
        return overhead + 2 * memory;
    case SIMT_COST_SET:
        return overhead + memory;
    }
    return 0;
}

/** A launch as it is placed: what its blocks need, in their order. */
struct plan {
    struct simt_need *needs; /* (classes) */
    size_t classes;
    struct simt_need even;        /* of the mean block */
    struct simt_block_span whole; /* all blocks, alike */
    struct simt_blocks blocks;
};

/** Whether it matters that blocks differ: one that is longer than the mean could end that much
 * later than all are done otherwise. */
static bool is_uneven(const struct plan *plan, const struct simt_cost *cost) {
    const struct simt_block_costs *costs = cost->costs;
    double places =
        least((double)plan->blocks.processors * plan->blocks.slots, (double)cost->blocks);
    double longest = 0, sum = 0;
    for (size_t n = 0; n < plan->classes; n++) {
        double cycles = simt_batch_cycles(&plan->needs[n], plan->blocks.slots);
        longest = largest(longest, cycles);
        sum += cycles * (double)costs->classes[n].blocks;
    }
    return longest - sum / (double)cost->blocks > EVEN * sum / places;
}

static void make_plan(struct plan *plan, const struct simt_gpu *gpu, const struct simt_cost *cost,
                      const struct sharers *sharers) {
    const struct simt_block_costs *costs = cost->costs;
    struct alike alike = {cost->counters, (double)cost->blocks, cost->threads};
    double slots = least(cost->resident > 0 ? cost->resident : 1, SIMT_MOST_RESIDENT);
    plan->even = need_of(gpu, &alike, cost->counters, sharers);
    plan->whole = (struct simt_block_span){.blocks = cost->blocks};
    plan->blocks = (struct simt_blocks){.needs = &plan->even,
                                        .spans = &plan->whole,
                                        .span_count = 1,
                                        .processors = (uint32_t)gpu->multiprocessors,
                                        .slots = (uint32_t)slots};
    for (size_t n = 0; n < plan->classes; n++) {
        alike.counters = &costs->classes[n].sum;
        alike.blocks = (double)costs->classes[n].blocks;
        plan->needs[n] = need_of(gpu, &alike, cost->counters, sharers);
    }
    if (plan->classes > 1 && is_uneven(plan, cost)) {
        plan->blocks.needs = plan->needs;
        plan->blocks.spans = costs->spans;
        plan->blocks.span_count = costs->span_count;
        plan->blocks.ahead = (uint32_t)gpu->served_ahead; /* alike, it would make no difference */
    }
}

/** Among how many multiprocessors a unit is divided, as seen from the one that uses it most. */
static double sharers_of(const struct simt_placement *placement, int station, double otherwise) {
    double all = 0, most = 0;
    for (size_t n = 0; n < placement->count; n++) {
        double work = placement->lanes[n].work[station];
        all += work * placement->lanes[n].processors;
        most = largest(most, work);
    }
    return ratio(all, most, otherwise);
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= CLOSE_ENOUGH * b;
}

/** Places the blocks; where units of the whole GPU turn out to be divided among fewer
 * multiprocessors than have a block, again. @return false: out of memory */
static bool place(struct simt_placement *placement, struct plan *plan, const struct simt_gpu *gpu,
                  const struct simt_cost *cost, bool periods) {
    double used = least((double)gpu->multiprocessors, (double)cost->blocks);
    const struct sharers first = {used, used, used};
    make_plan(plan, gpu, cost, &first);
    if (!simt_place(placement, &plan->blocks, periods)) {
        return false;
    }
    const struct sharers found = {sharers_of(placement, L2, used),
                                  sharers_of(placement, MEMORY, used),
                                  sharers_of(placement, ATOMICS, used)};
    if (is_near(found.l2, used) && is_near(found.memory, used) && is_near(found.atomics, used)) {
        return true;
    }
    simt_placement_free(placement);
    make_plan(plan, gpu, cost, &found);
    return simt_place(placement, &plan->blocks, periods);
}

/** Shares of the time of the warps of the multiprocessor that ends last. */
static void set_stay(struct simt_explanation *e, const struct simt_lane *lane) {
    double all = 0;
    for (int s = 0; s < STATIONS; s++) {
        all += lane->stay[s];
    }
    for (int w = 0; w < SIMT_LATENCY_COUNT; w++) {
        all += lane->wait[w];
    }
    for (int s = 0; s < STATIONS; s++) {
        e->stay[s] = share(lane->stay[s], all);
    }
    e->block = share(lane->wait[SIMT_LATENCY_BLOCK], all);
    e->chain = share(lane->wait[SIMT_LATENCY_CHAIN], all);
    e->loads = share(lane->wait[SIMT_LATENCY_LOADS], all);
}

static void explain_lane(struct simt_explanation *e, const struct simt_gpu *gpu,
                         const struct simt_cost *cost, const struct simt_lane *lane, double end) {
    const struct simt_counters *c = cost->counters;
    for (int s = 0; s < STATIONS; s++) {
        e->busy[s] = share(lane->work[s], end);
    }
    /* The network has only what goes beyond issue. */
    double all = share(float_cycles(gpu, c) * SCHEDULERS, (double)c->machine_instructions);
    e->busy[FLOAT] = largest(e->busy[FLOAT], share(all * lane->work[ISSUE], end));
    e->blocks = lane->blocks;
    set_stay(e, lane);
}

/** How the others do beside the multiprocessor that ends last. */
static void explain_others(struct simt_explanation *e, const struct simt_gpu *gpu,
                           const struct simt_placement *placement, double end) {
    double all = 0;
    for (size_t n = 0; n < placement->count; n++) {
        const struct simt_lane *lane = &placement->lanes[n];
        all += lane->end * lane->processors;
        e->processors += lane->end > IDLE * end ? lane->processors : 0;
    }
    e->even = share(all, end * gpu->multiprocessors);
}

/** One block after the other: what a launch takes where there is no memory to place them. */
static double alone_cycles(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    const struct sharers one = {1, 1, 1};
    const struct alike alike = {cost->counters, (double)cost->blocks, cost->threads};
    const struct simt_need need = need_of(gpu, &alike, cost->counters, &one);
    return (double)cost->blocks * simt_batch_cycles(&need, 1);
}

/** No launch is over before its longest chain of blocks that wait for each other. */
static double end_of(const struct simt_cost *cost, const struct simt_lane *last) {
    double waited = cost->waited > 0 ? (double)cost->waited + BLOCK_CYCLES : 0;
    return largest(last->end, waited);
}

void simt_model_explain(struct simt_explanation *e, const struct simt_gpu *gpu,
                        const struct simt_cost *cost, struct simt_placement *placement) {
    struct simt_placement own = {.count = 0};
    struct simt_placement *used = placement != NULL ? placement : &own;
    struct plan plan = {.classes = cost->costs != NULL ? cost->costs->class_count : 0};
    *e = (struct simt_explanation){.overhead = launch_overhead(cost)};
    e->nanoseconds = e->overhead;
    *used = own;
    if (cost->blocks == 0) {
        return;
    }
    plan.needs = calloc(plan.classes + 1, sizeof *plan.needs);
    if (plan.needs != NULL && place(used, &plan, gpu, cost, placement != NULL)) {
        const struct simt_lane *last = simt_placement_last(used);
        double end = end_of(cost, last);
        e->nanoseconds += end / clock_of(gpu);
        e->resident =
            (uint32_t)least(plan.blocks.slots, ceil((double)cost->blocks / gpu->multiprocessors));
        e->waiting = 1 - share(last->end, end);
        explain_lane(e, gpu, cost, last, end);
        explain_others(e, gpu, used, end);
    } else {
        e->nanoseconds += alone_cycles(gpu, cost) / clock_of(gpu);
    }
    free(plan.needs);
    simt_placement_free(&own);
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

void simt_model_profile(struct simt_profile *profile, const struct simt_explanation *e) {
    profile->nanoseconds = e->nanoseconds;
    profile->overhead = e->overhead;
    profile->unit = SIMT_UNIT_LAUNCH;
    if (e->blocks == 0) {
        return;
    }
    profile->busy = e->processors;
    profile->even = e->even;
    for (int s = 0; s < STATIONS; s++) {
        profile->share[unit_of((enum simt_station)s)] = e->busy[s];
    }
    profile->share[SIMT_UNIT_BLOCKS] = e->waiting;
    if (e->nanoseconds < 2 * e->overhead) {
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

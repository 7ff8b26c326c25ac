/* What must hold of modelled time on every GPU of the table, whatever its constants are. */
#include "common/simt/runtime/gpu/model.h"

#include <stddef.h>

#include "common/testing/testing.h"

static const char *const GPUS[] = {"t4",      "l4",   "rtx3060", "rtx3090", "rtx4090",
                                   "rtx5090", "a100", "h100",    "h200",    "b200"};
enum { GPU_COUNT = sizeof GPUS / sizeof *GPUS };

static void on_each_gpu(void (*test)(const struct simt_gpu *gpu)) {
    for (int g = 0; g < GPU_COUNT; g++) {
        const struct simt_gpu *gpu = simt_gpu_find(GPUS[g]);
        if (gpu == NULL) {
            TEST_FAIL("no GPU %s", GPUS[g]);
            return;
        }
        test(gpu);
    }
}

/** A test that runs on each of the GPUs, which its body sees as `gpu`. */
#define GPU_TEST(name)                                   \
    static void body_##name(const struct simt_gpu *gpu); \
    C_TEST(model, name) {                                \
        on_each_gpu(body_##name);                        \
    }                                                    \
    static void body_##name(const struct simt_gpu *gpu)

static double time_of(const struct simt_gpu *gpu, const struct simt_cost *cost) {
    double clock = 100;
    double time = simt_model_advance(&clock, gpu, cost);
    EXPECT_NEAR(100 + time, clock, 1e-6);
    return time;
}

/* Like a copy of 16 Mi floats: every block has 8 warps, 8 blocks fit. */
static struct simt_counters copy_counters(void) {
    struct simt_counters counters = {
        .global_load_requests = 1 << 19,
        .global_load_sectors = 1 << 21,
        .global_store_requests = 1 << 19,
        .global_store_sectors = 1 << 21,
        .global_lines = 1 << 20,
        .l2_sectors = 1 << 22,
        .dram_bytes = 1 << 27,
        .machine_instructions = 1 << 23,
        .followed_warps = 100,
        .followed_machine = 1600,
        .chain_cycles = 4000,
        .chain_loads = 100,
    };
    counters.instructions[SIMT_CLASS_INTEGER] = 1 << 21;
    counters.instructions[SIMT_CLASS_GLOBAL] = 1 << 20;
    return counters;
}

static struct simt_cost launch_of(const struct simt_counters *counters) {
    return (struct simt_cost){.kind = SIMT_COST_LAUNCH,
                              .blocks = 1 << 16,
                              .threads = 256,
                              .resident = 4,
                              .counters = counters};
}

GPU_TEST(copies_stay_within_their_bandwidth) {
    enum { BYTES = 1 << 28 };
    struct simt_cost copy = {.kind = SIMT_COST_BUS_COPY, .bytes = BYTES};
    double pinned = time_of(gpu, &copy);
    copy.pageable = true;
    double pageable = time_of(gpu, &copy);
    copy.kind = SIMT_COST_DEVICE_COPY;
    double device = time_of(gpu, &copy);
    copy.kind = SIMT_COST_SET;
    double set = time_of(gpu, &copy);
    EXPECT_TRUE(pinned >= BYTES / gpu->bus && pinned < 1.05 * BYTES / gpu->bus);
    EXPECT_TRUE(pageable > pinned);
    EXPECT_TRUE(device >= 2.0 * BYTES / gpu->bandwidth);
    EXPECT_TRUE(device < 2.5 * BYTES / gpu->bandwidth);
    EXPECT_TRUE(set >= BYTES / gpu->bandwidth && set < device);
}

GPU_TEST(small_copies_take_time_too) {
    struct simt_cost none = {.kind = SIMT_COST_BUS_COPY, .bytes = 0};
    struct simt_cost some = {.kind = SIMT_COST_BUS_COPY, .bytes = 4096};
    EXPECT_TRUE(time_of(gpu, &none) > 1000);
    EXPECT_TRUE(time_of(gpu, &some) < 2 * time_of(gpu, &none));
}

C_TEST(model, graphs_launch_cheaper) {
    struct simt_counters none = {0};
    struct simt_cost cost = {.kind = SIMT_COST_LAUNCH, .blocks = 1, .counters = &none};
    const struct simt_gpu *gpu = simt_gpu_find("h100");
    double alone = time_of(gpu, &cost);
    cost.graph = true;
    EXPECT_TRUE(time_of(gpu, &cost) < alone / 2);
}

GPU_TEST(launching_a_graph_takes_time_beside_its_nodes) {
    struct simt_counters none = {0};
    struct simt_cost kernel = {.kind = SIMT_COST_LAUNCH, .blocks = 1, .counters = &none};
    struct simt_cost graph = {.kind = SIMT_COST_GRAPH};
    double alone = time_of(gpu, &kernel);
    kernel.graph = true;
    double own = time_of(gpu, &graph), node = time_of(gpu, &kernel);
    EXPECT_TRUE(own > node && own + node < alone);
    graph.first = true;
    EXPECT_TRUE(time_of(gpu, &graph) > own && time_of(gpu, &graph) + node < alone);
}

/* What an H200 took for graphs of empty kernels, in us: in a row, and for one between two events,
 * less the 1.3 of these (MODEL.md). */
C_TEST(model, graphs_take_what_an_h200_takes) {
    static const struct {
        double kernels, in_a_row, alone;
    } measured[] = {{1, 1.4, 2.9},  {2, 2.1, 3.6},    {5, 4.0, 5.5},
                    {10, 6.2, 7.6}, {20, 11.3, 12.7}, {100, 51.6, 52.8}};
    const struct simt_gpu *gpu = simt_gpu_find("h200");
    struct simt_counters none = {0};
    const struct simt_cost kernel = {
        .kind = SIMT_COST_LAUNCH, .graph = true, .blocks = 1, .counters = &none};
    const struct simt_cost behind = {.kind = SIMT_COST_GRAPH};
    const struct simt_cost first = {.kind = SIMT_COST_GRAPH, .first = true};
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        double nodes = measured[i].kernels * time_of(gpu, &kernel);
        EXPECT_NEAR(measured[i].in_a_row, 1e-3 * (nodes + time_of(gpu, &behind)), 0.75);
        EXPECT_NEAR(measured[i].alone, 1e-3 * (nodes + time_of(gpu, &first)), 0.75);
    }
}

/* Blocks whose warps wait for mbarriers have shared memory to pay like others. */
GPU_TEST(atomics_take_time_beside_bulk_copies) {
    struct simt_counters counters = {.pipelined_blocks = 1, .pipelined_cycles = 1000};
    const struct simt_cost cost = {
        .kind = SIMT_COST_LAUNCH, .blocks = 1, .threads = 256, .counters = &counters};
    double none = time_of(gpu, &cost);
    counters.atomic_serial = 100000;
    EXPECT_TRUE(time_of(gpu, &cost) > 2 * none);
}

/* Counters of cost; more of any makes a kernel no faster, and much more of it slower. */
static const struct {
    const char *name;
    size_t place;
    uint64_t much;
} COSTS[] = {
#define COST(field, much) \
    { #field, offsetof(struct simt_counters, field), much }
    COST(global_load_sectors, 1 << 26), /* from device memory */
    COST(global_lines, 1 << 26),
    COST(dram_bytes, (uint64_t)1 << 33),
    COST(local_sectors, 1 << 28),
    COST(shared_load_wavefronts, 1 << 27),
    COST(constant_serial, 1 << 27),
    COST(spills, (uint64_t)1 << 36),
    COST(shared_store_wavefronts, 1 << 27),
    COST(machine_instructions, 1 << 29),
    COST(atomic_serial, 1 << 27),
    COST(atomic_hottest, 1 << 24),
    COST(chain_cycles, 100 << 20),
    COST(chain_loads, 100 << 12),
    COST(instructions[SIMT_CLASS_FLOAT], 1 << 29),
    COST(instructions[SIMT_CLASS_DOUBLE], 1 << 28),
    COST(instructions[SIMT_CLASS_SPECIAL], 1 << 28),
#undef COST
};

static double time_with_more(const struct simt_gpu *gpu, size_t place, uint64_t more) {
    struct simt_counters counters = copy_counters();
    struct simt_cost cost = launch_of(&counters);
    uint64_t *counter = (uint64_t *)(void *)((char *)&counters + place);
    *counter += more;
    counters.followed_machine =
        counters.followed_warps * counters.machine_instructions / (8 * cost.blocks);
    if (place == offsetof(struct simt_counters, global_load_sectors)) {
        counters.l2_sectors += more;
        counters.dram_bytes += 32 * more;
    }
    return time_of(gpu, &cost);
}

/* A T4 and an A100 do fp32 at half their rate of issue; on the others issue is the limit. */
static bool matters(const struct simt_gpu *gpu, size_t place) {
    return place != offsetof(struct simt_counters, instructions[SIMT_CLASS_FLOAT]) ||
           gpu->float_lanes < 128;
}

static void expect_slower(const struct simt_gpu *gpu, const char *name, size_t place,
                          uint64_t much) {
    double first = time_with_more(gpu, place, 0);
    double before = first;
    for (uint64_t more = much / 1024; more <= much; more *= 2) {
        double now = time_with_more(gpu, place, more);
        if (now < before * (1 - 1e-6)) {
            TEST_FAIL("%s: %s + %llu: %.1f ns, with less %.1f", gpu->key, name,
                      (unsigned long long)more, now, before);
        }
        before = now;
    }
    if (matters(gpu, place) && before < 1.5 * first) {
        TEST_FAIL("%s: much more %s makes no difference: %.1f ns, %.1f", gpu->key, name, before,
                  first);
    }
}

GPU_TEST(more_work_is_never_faster) {
    for (size_t n = 0; n < sizeof COSTS / sizeof *COSTS; n++) {
        expect_slower(gpu, COSTS[n].name, COSTS[n].place, COSTS[n].much);
    }
}

GPU_TEST(hits_in_l1_are_never_slower) {
    double before = 1e30;
    for (uint64_t hits = 0; hits <= 1 << 21; hits += 1 << 18) {
        struct simt_counters counters = copy_counters();
        struct simt_cost cost = launch_of(&counters);
        counters.l1_hit_sectors = hits;
        counters.l2_sectors -= hits;
        counters.dram_bytes -= 32 * hits;
        double now = time_of(gpu, &cost);
        EXPECT_TRUE(now <= before * (1 + 1e-6));
        before = now;
    }
}

GPU_TEST(more_resident_blocks_hide_more) {
    double before = 1e30;
    for (uint32_t resident = 1; resident <= 8; resident *= 2) {
        struct simt_counters counters = copy_counters();
        struct simt_cost cost = launch_of(&counters);
        cost.resident = resident;
        double now = time_of(gpu, &cost);
        EXPECT_TRUE(now < before);
        before = now;
    }
}

GPU_TEST(memory_is_the_limit_of_what_moves_much) {
    struct simt_counters counters = copy_counters();
    struct simt_cost cost = launch_of(&counters);
    counters.dram_bytes = (uint64_t)1 << 32;
    double least = (double)counters.dram_bytes / gpu->bandwidth;
    double time = time_of(gpu, &cost);
    EXPECT_TRUE(time > least && time < 1.5 * least);
}

GPU_TEST(arithmetic_has_the_rate_of_its_unit) {
    struct simt_counters counters = {0};
    struct simt_cost cost = launch_of(&counters);
    counters.instructions[SIMT_CLASS_DOUBLE] = counters.machine_instructions = 1 << 28;
    double lanes = (double)gpu->float_lanes / gpu->double_ratio;
    double least = 32.0 * (1 << 28) / lanes / gpu->multiprocessors / (gpu->clock_khz / 1e6);
    double time = time_of(gpu, &cost);
    EXPECT_TRUE(time > least && time < 1.2 * least);
}

static uint32_t unit_of(const struct simt_gpu *gpu, const struct simt_cost *cost,
                        struct simt_profile *profile) {
    struct simt_explanation explanation;
    *profile = (struct simt_profile){.modelled = true};
    simt_model_explain(&explanation, gpu, cost, NULL);
    simt_model_profile(profile, &explanation);
    return profile->unit;
}

GPU_TEST(names_the_unit_that_limits) {
    static const struct {
        size_t place;
        uint64_t much;
        enum simt_unit unit;
    } units[] = {
        {offsetof(struct simt_counters, dram_bytes), (uint64_t)1 << 33, SIMT_UNIT_MEMORY},
        {offsetof(struct simt_counters, shared_load_wavefronts), 1 << 28, SIMT_UNIT_L1},
        {offsetof(struct simt_counters, machine_instructions), 1 << 30, SIMT_UNIT_ISSUE},
        {offsetof(struct simt_counters, atomic_hottest), 1 << 26, SIMT_UNIT_ATOMICS},
        {offsetof(struct simt_counters, instructions[SIMT_CLASS_DOUBLE]), 1 << 28,
         SIMT_UNIT_DOUBLE},
        {offsetof(struct simt_counters, instructions[SIMT_CLASS_SPECIAL]), 1 << 28,
         SIMT_UNIT_SPECIAL},
        {offsetof(struct simt_counters, chain_loads), (uint64_t)100 << 20, SIMT_UNIT_LATENCY},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct simt_counters counters = copy_counters();
        struct simt_cost cost = launch_of(&counters);
        struct simt_profile profile;
        *(uint64_t *)(void *)((char *)&counters + units[i].place) += units[i].much;
        EXPECT_INT_EQ(units[i].unit, unit_of(gpu, &cost, &profile));
        for (int u = 0; u < SIMT_UNIT_COUNT; u++) {
            EXPECT_TRUE(profile.share[u] >= 0 && profile.share[u] <= 1);
        }
    }
}

/* A chain of blocks that wait for each other bounds the time from below, and does nothing else. */
GPU_TEST(waits_for_the_longest_chain_of_blocks) {
    struct simt_counters counters = copy_counters();
    struct simt_cost cost = launch_of(&counters);
    struct simt_profile profile;
    double without = time_of(gpu, &cost);
    uint32_t unit = unit_of(gpu, &cost, &profile);
    cost.waited = 1000;
    EXPECT_NEAR(without, time_of(gpu, &cost), 1e-9);
    EXPECT_INT_EQ(unit, unit_of(gpu, &cost, &profile));
    cost.waited = 1000000000;
    EXPECT_TRUE(time_of(gpu, &cost) > (double)cost.waited / gpu->clock_khz * 1e6);
    EXPECT_TRUE(time_of(gpu, &cost) < 1.001 * (double)cost.waited / gpu->clock_khz * 1e6);
    EXPECT_INT_EQ(SIMT_UNIT_BLOCKS, unit_of(gpu, &cost, &profile));
    EXPECT_TRUE(profile.share[SIMT_UNIT_MEMORY] < 0.1);
}

/* So that a chain of one block is never longer than the block is in the model. */
GPU_TEST(a_block_alone_takes_no_longer_than_its_launch) {
    const struct simt_alone alone = simt_model_alone(gpu);
    for (size_t n = 0; n < sizeof(struct simt_counters) / sizeof(uint64_t); n++) {
        struct simt_counters counters = copy_counters();
        ((uint64_t *)(void *)&counters)[n] += 1 << 20;
        struct simt_cost cost = launch_of(&counters);
        cost.blocks = 1;
        cost.graph = true;
        double cycles = alone.cycles(alone.gpu, &counters);
        EXPECT_TRUE(cycles > 0 && cycles * 1e6 / gpu->clock_khz <= time_of(gpu, &cost));
    }
}

GPU_TEST(tells_the_launch_from_its_work) {
    struct simt_counters none = {0};
    struct simt_cost cost = launch_of(&none);
    struct simt_profile profile;
    cost.blocks = 1;
    EXPECT_INT_EQ(SIMT_UNIT_LAUNCH, unit_of(gpu, &cost, &profile));
    EXPECT_TRUE(profile.nanoseconds > profile.overhead && profile.overhead > 0);
    cost.blocks = 0;
    EXPECT_INT_EQ(SIMT_UNIT_LAUNCH, unit_of(gpu, &cost, &profile));
}

/* Blocks that do not fill the GPU once take as long as those that do. */
GPU_TEST(few_blocks_leave_multiprocessors_idle) {
    uint64_t all = (uint64_t)gpu->multiprocessors;
    struct simt_counters counters = {.machine_instructions = all << 20,
                                     .shared_load_wavefronts = all << 20};
    struct simt_cost cost = launch_of(&counters);
    cost.blocks = all;
    double full = time_of(gpu, &cost);
    cost.blocks = all / 2; /* the same work by half of the blocks */
    double half = time_of(gpu, &cost);
    EXPECT_TRUE(half > 1.8 * full && half < 2.2 * full);
    cost.blocks = all + 1; /* one multiprocessor gets two of slightly smaller blocks */
    cost.resident = 1;
    double tail = time_of(gpu, &cost);
    EXPECT_TRUE(tail > 1.7 * full && tail < 2 * full);
}

GPU_TEST(empty_counters_are_no_trouble) {
    struct simt_counters none = {0};
    struct simt_cost cost = {.kind = SIMT_COST_LAUNCH, .counters = &none};
    for (uint64_t blocks = 0; blocks < 3; blocks++) {
        cost.blocks = blocks;
        double time = time_of(gpu, &cost);
        EXPECT_TRUE(time > 0 && time < 20000);
    }
}

/* A block of eight warps with as much to do, of which 1 in 16 blocks has followed warps. */
static struct simt_counters busy_block(void) {
    return (struct simt_counters){.machine_instructions = 80000,
                                  .longest_warps = 10000,
                                  .global_load_requests = 8000,
                                  .global_load_sectors = 32000,
                                  .global_lines = 8000,
                                  .l2_sectors = 32000,
                                  .dram_bytes = 1024000,
                                  .followed_warps = 1,
                                  .followed_machine = 10000,
                                  .followed_loads = 1000,
                                  .chain_cycles = 20000,
                                  .chain_loads = 250};
}

static struct simt_counters idle_block(void) {
    return (struct simt_counters){.machine_instructions = 80,
                                  .longest_warps = 10,
                                  .followed_warps = 1,
                                  .followed_machine = 10,
                                  .chain_cycles = 50};
}

/* Time of a launch with `busy` busy blocks and `idle` idle ones behind them. */
static double time_beside(const struct simt_gpu *gpu, uint64_t busy, uint64_t idle,
                          const struct simt_counters *block) {
    struct simt_counters all = {0};
    struct simt_block_costs costs;
    struct simt_cost cost = launch_of(&all);
    cost.blocks = busy + idle;
    cost.costs = &costs;
    if (!simt_block_costs_begin(&costs, cost.blocks)) {
        TEST_FAIL("out of memory");
        return 0;
    }
    for (uint64_t b = 0; b < cost.blocks; b++) {
        struct simt_counters own = b < busy ? *block : idle_block();
        EXPECT_TRUE(simt_block_costs_note(&costs, b, &own));
        simt_counters_add(&all, &own);
    }
    simt_block_costs_sort(&costs);
    double time = time_of(gpu, &cost);
    simt_block_costs_free(&costs);
    return time;
}

GPU_TEST(idle_blocks_hide_no_work) {
    const struct simt_counters block = busy_block();
    double alone = time_beside(gpu, 20, 0, &block);
    double beside = time_beside(gpu, 20, 3000, &block);
    EXPECT_TRUE(beside > 0.98 * alone && beside < 1.3 * alone);
}

/* Whether one of the busy blocks was followed decides little: else they are taken to wait for
 * loads as all that were followed, or for each. */
GPU_TEST(blocks_that_nobody_followed_are_no_bargain) {
    struct simt_counters block = busy_block();
    double followed = time_beside(gpu, 20, 3000, &block);
    block.followed_warps = block.followed_machine = block.followed_loads = 0;
    block.chain_cycles = block.chain_loads = 0;
    EXPECT_TRUE(time_beside(gpu, 20, 3000, &block) >= followed);
}

/* 64 bytes a cycle and multiprocessor at most, however fast memory is. */
GPU_TEST(few_multiprocessors_do_not_draw_all_bandwidth) {
    struct simt_counters block = busy_block();
    block.global_load_sectors = block.l2_sectors = 1 << 22;
    block.global_lines = 1 << 20;
    block.dram_bytes = (uint64_t)32 << 22;
    double least = (double)block.dram_bytes / 64 / (gpu->clock_khz / 1e6);
    double one = time_beside(gpu, 1, 3000, &block);
    EXPECT_TRUE(one > least && one < 5 * least);
    double four = time_beside(gpu, 4, 3000, &block);
    EXPECT_TRUE(four < 2.5 * one);
}

/* Blocks in which one warp of eight works have the time of that warp. */
GPU_TEST(idle_warps_hide_no_work) {
    struct simt_counters counters = {.machine_instructions = 1 << 24,
                                     .followed_warps = 64,
                                     .followed_machine = 64 << 15,
                                     .chain_cycles = 64 << 17};
    struct simt_cost cost = launch_of(&counters);
    cost.blocks = 64;
    counters.longest_warps = 1 << 21; /* all eight work */
    double all = time_of(gpu, &cost);
    counters.longest_warps = 1 << 24;
    EXPECT_TRUE(time_of(gpu, &cost) > 4 * all);
}

/* One warp of eight waits for loads; that the others compute as many instructions meanwhile does
 * not make it wait less. */
GPU_TEST(busy_warps_hide_no_waiting) {
    struct simt_counters counters = {.machine_instructions = 1 << 20,
                                     .longest_warps = 1 << 17,
                                     .followed_warps = 64,
                                     .followed_machine = 1 << 17,
                                     .chain_loads = 8 * 1024,
                                     .chain_squares = 8ull * 1024 * 1024 * 500 * 500 / 256};
    struct simt_cost cost = launch_of(&counters);
    cost.blocks = 64;
    double hidden = time_of(gpu, &cost);
    counters.chain_loads = 64 * 1024; /* all eight wait as long */
    counters.chain_squares *= 8;
    EXPECT_NEAR(time_of(gpu, &cost), hidden, 0.02 * hidden);
}

/* A kernel that does little but multiply matrices of a format. */
static double time_of_products(const struct simt_gpu *gpu, enum simt_tensor_format format) {
    const uint64_t operations = (uint64_t)1 << 44;
    struct simt_counters counters = copy_counters();
    struct simt_cost cost = launch_of(&counters);
    bool integer = format == SIMT_TENSOR_INT8 || format == SIMT_TENSOR_INT4;
    counters.tensor_operations[format] = operations;
    counters.flops = integer ? 0 : operations;
    counters.instructions[SIMT_CLASS_TENSOR] = operations / 4096;
    return time_of(gpu, &cost);
}

GPU_TEST(products_take_as_long_as_their_format_does) {
    double half = time_of_products(gpu, SIMT_TENSOR_F16);
    double doubles = time_of_products(gpu, SIMT_TENSOR_F64);
    EXPECT_NEAR(1, time_of_products(gpu, SIMT_TENSOR_BF16) / half, 1e-9);
    EXPECT_NEAR(2, time_of_products(gpu, SIMT_TENSOR_TF32) / half, 0.02);
    EXPECT_NEAR(0.5, time_of_products(gpu, SIMT_TENSOR_INT8) / half, 0.02);
    EXPECT_NEAR(0.5, time_of_products(gpu, SIMT_TENSOR_FP8) / half, 0.02);
    EXPECT_NEAR(gpu->major < 9 ? 0.25 : 11, time_of_products(gpu, SIMT_TENSOR_INT4) / half, 0.2);
    EXPECT_TRUE(doubles > 15 * half); /* 19.5 of 312 TFLOP/s on an A100 */
}

C_TEST(model, knows_its_gpus) {
    char keys[128];
    EXPECT_STR_EQ("t4, l4, rtx3060, rtx3090, rtx4090, rtx5090, a100, h100, h200, b200",
                  simt_gpu_keys(keys, sizeof keys));
    EXPECT_TRUE(simt_gpu_find("h20") == NULL);
    EXPECT_TRUE(simt_gpu_find("") == NULL);
    for (int g = 0; g < GPU_COUNT; g++) {
        const struct simt_gpu *gpu = simt_gpu_find(GPUS[g]);
        ASSERT_TRUE(gpu != NULL);
        EXPECT_TRUE(gpu->float_lanes % 32 == 0 && gpu->float_lanes <= 128);
        EXPECT_TRUE(gpu->l2_bandwidth > gpu->bandwidth);
        EXPECT_TRUE(gpu->bandwidth > gpu->bus);
        EXPECT_TRUE(gpu->memory_latency > gpu->l2_latency && gpu->l2_latency > 100);
        EXPECT_TRUE(gpu->tensor_flops > 2 * gpu->float_lanes);
        EXPECT_TRUE(gpu->l1_bytes_per_clock == 64 || gpu->l1_bytes_per_clock == 128);
        EXPECT_TRUE(gpu->shared_optin <= gpu->shared_per_multiprocessor);
        EXPECT_TRUE(gpu->shared_per_multiprocessor <= gpu->l1_and_shared);
    }
}

GPU_TEST(explanations_add_up) {
    const struct simt_counters counters = copy_counters();
    struct simt_cost launch = launch_of(&counters);
    launch.blocks =
        (uint64_t)gpu->multiprocessors * 10; /* two full waves of four blocks, and two */
    struct simt_explanation e;
    struct simt_placement placement;
    simt_model_explain(&e, gpu, &launch, &placement);
    double all = e.chain + e.loads + e.block;
    for (int s = 0; s < SIMT_STATION_COUNT; s++) {
        all += e.stay[s];
        EXPECT_TRUE(e.busy[s] >= 0 && e.busy[s] <= 1);
    }
    EXPECT_NEAR(1, all, 1e-9);
    EXPECT_INT_EQ(10, e.blocks);
    EXPECT_INT_EQ(4, e.resident);
    EXPECT_NEAR(time_of(gpu, &launch), e.nanoseconds, 1e-6);
    ASSERT_TRUE(placement.count == 1 && placement.lanes[0].period_count == 3);
    const struct simt_period *periods = placement.lanes[0].periods;
    EXPECT_INT_EQ(gpu->multiprocessors, placement.lanes[0].processors);
    EXPECT_INT_EQ(4, periods[0].blocks);
    EXPECT_INT_EQ(2, periods[2].blocks);
    EXPECT_NEAR(2 * periods[0].end, periods[1].end, 1e-6 * periods[1].end);
    EXPECT_NEAR((e.nanoseconds - e.overhead) * gpu->clock_khz / 1e6, periods[2].end,
                1e-6 * periods[2].end);
    simt_placement_free(&placement);
}

#include "common/simt/runtime/model.h"
#include "common/testing/testing.h"

static double time_of(const char *gpu, const struct simt_cost *cost) {
    double clock = 100;
    double time = simt_model_advance(&clock, simt_gpu_find(gpu), cost);
    EXPECT_NEAR(100 + time, clock, 1e-9);
    return time;
}

C_TEST(model, copies_take_bytes_over_bandwidth) {
    struct simt_cost small = {.kind = SIMT_COST_BUS_COPY, .bytes = 0};
    struct simt_cost large = {.kind = SIMT_COST_BUS_COPY, .bytes = 550000000};
    EXPECT_NEAR(1e7, time_of("h200", &large) - time_of("h200", &small), 1e-3);
    large.kind = small.kind = SIMT_COST_DEVICE_COPY; /* read and written */
    EXPECT_NEAR(2 * 550000000 / 4800.0, time_of("h200", &large) - time_of("h200", &small), 1e-3);
    large.kind = small.kind = SIMT_COST_SET;
    EXPECT_NEAR(550000000 / 320.0, time_of("t4", &large) - time_of("t4", &small), 1e-3);
}

C_TEST(model, bank_conflicts_take_their_time) {
    const struct simt_gpu *gpu = simt_gpu_find("a100");
    ASSERT_TRUE(gpu != NULL);
    struct simt_counters counters = {.shared_load_wavefronts = 108ull * 1410000,
                                     .shared_store_wavefronts = 108ull * 1410000};
    struct simt_cost cost = {.kind = SIMT_COST_LAUNCH, .blocks = 1000, .counters = &counters};
    double clock = 0.0;
    double all = simt_model_advance(&clock, gpu, &cost); /* a wavefront a cycle on 108 SMs */
    EXPECT_NEAR(2e6, all, 1e4);
    cost.blocks = 54; /* half of them have a block */
    EXPECT_NEAR(4e6, simt_model_advance(&clock, gpu, &cost), 1e4);
}

C_TEST(model, launches_take_the_longer_of_issue_and_memory) {
    struct simt_counters none = {0};
    struct simt_counters busy = {0};
    struct simt_cost cost = {.kind = SIMT_COST_LAUNCH, .blocks = 1000, .counters = &none};
    double overhead = time_of("a100", &cost);
    cost.counters = &busy;
    busy.instructions[SIMT_CLASS_FLOAT] = 108ull * 4 * 1410 * 1000; /* one millisecond of all SMs */
    EXPECT_NEAR(1e6, time_of("a100", &cost) - overhead, 1e-3);
    cost.blocks = 54; /* half of them idle */
    EXPECT_NEAR(2e6, time_of("a100", &cost) - overhead, 1e-3);
    busy.global_load_sectors = 2039ull * 1000000 / 32 * 3; /* three milliseconds of memory */
    EXPECT_NEAR(3e6, time_of("a100", &cost) - overhead, 1);
}

C_TEST(model, graphs_launch_cheaper) {
    struct simt_counters none = {0};
    struct simt_cost cost = {.kind = SIMT_COST_LAUNCH, .blocks = 1, .counters = &none};
    double alone = time_of("h100", &cost);
    cost.graph = true;
    EXPECT_TRUE(time_of("h100", &cost) < alone);
}

C_TEST(model, knows_its_gpus) {
    char keys[128];
    EXPECT_STR_EQ("t4, rtx4090, a100, h100, h200", simt_gpu_keys(keys, sizeof keys));
    EXPECT_TRUE(simt_gpu_find("h20") == NULL);
    EXPECT_TRUE(simt_gpu_find("") == NULL);
}

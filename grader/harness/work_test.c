/* Least times on a made-up GPU, by hand. */
#include "grader/harness/work.h"

#include <math.h>

#include "common/testing/testing.h"

#define EXACT 1e-12

/* 1 ms is 1e9 FLOPs in fp32, 1e10 on tensor cores, 1e8 bytes read, 5e7 copied, 1e9 from L2. */
static const struct device_limits gpu = {.fp32_flops = 1e12,
                                         .tensor_flops = 1e13,
                                         .read = 1e11,
                                         .copy = 5e10,
                                         .l2 = 1e12,
                                         .bus = 1e10,
                                         .call_ms = 0.01,
                                         .event_ms = 0.004,
                                         .launch_ms = 0.003,
                                         .node_ms = 0.001,
                                         .l2_bytes = 1000000};

C_TEST(work, the_slowest_unit_counts) {
    static const struct {
        struct work work;
        double fixed_ms, ideal_ms;
        const char *limit;
    } cases[] = {
        {{.fp32_flops = 2e9, .read_bytes = 1e8}, 0.01, 2.0, "the fp32 units' speed"},
        {{.fp32_flops = 2e9, .read_bytes = 3e8}, 0.01, 3.0, "the memory's speed"},
        {{.tensor_flops = 4e10, .fp32_flops = 1e9}, 0.01, 4.0, "the tensor cores' speed"},
        {{.read_bytes = 5e7, .written_bytes = 5e7}, 0.01, 2.0, "the memory's speed"},
        {{.read_bytes = 1e6, .warm = true}, 0.01, 0.001, "the L2 cache's speed"},
        {{.read_bytes = 1e6}, 0.01, 0.01, "the memory's speed"},
        {{.read_bytes = 1e8, .warm = true}, 0.01, 1.0, "the memory's speed"},
        {{.read_bytes = 1e8, .between_events = true}, 0.004, 1.0, "the memory's speed"},
        {{.read_bytes = 1e6, .launches = 11}, 0.01, 0.04, "launches in a row"},
        {{.read_bytes = 1e6, .launches = 11, .graph = true}, 0.01, 0.02, "the memory's speed"},
        {{.read_bytes = 1e6, .bus_bytes = 1e7}, 0.01, 1.01, "the bus's speed"},
        {{.fp32_flops = 1e9, .launches = 2, .times = 5}, 0.01, 5.027, "the fp32 units' speed"},
        {{.fp32_flops = 1e9, .launches = 2, .times = 5, .waits = true},
         0.05,
         5.015,
         "the fp32 units' speed"},
        {{.fp32_flops = 1e9, .launches = 2, .rest_ms = 7.0}, 7.0, 1.006, "the fp32 units' speed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct least_time least = work_least_time(&cases[i].work, &gpu);
        EXPECT_NEAR(cases[i].fixed_ms, least.fixed_ms, EXACT);
        EXPECT_NEAR(cases[i].ideal_ms, least.ideal_ms, EXACT);
        EXPECT_STR_EQ(cases[i].limit, least.limit);
    }
}

C_TEST(work, shares_and_what_they_allow) {
    const struct least_time least = {1.0, 2.0, "the memory's speed", false, false};
    EXPECT_NEAR(5.0, least_time_allowed(&least, 0.5), EXACT);
    EXPECT_NEAR(0.5, least_time_share(&least, 5.0), EXACT);
    EXPECT_NEAR(1.0, least_time_share(&least, 3.0), EXACT);
    EXPECT_TRUE(isinf(least_time_share(&least, 1.0))); /* faster than an empty call */
    EXPECT_TRUE(!(least_time_share(&least, INFINITY) > 0.0));
}

C_TEST(work, one_after_the_other) {
    const struct least_time a = {1.0, 2.0, "a", false, true}, b = {1.0, 3.0, "b", true, false};
    struct least_time sum = least_time_sum(a, b);
    EXPECT_NEAR(1.0, sum.fixed_ms, EXACT);
    EXPECT_NEAR(5.0, sum.ideal_ms, EXACT);
    EXPECT_STR_EQ("b", sum.limit);
    EXPECT_TRUE(sum.disturbed && !sum.throttled);
}

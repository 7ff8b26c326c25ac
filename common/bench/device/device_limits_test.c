/* On what the program was linked with: simt, or a GPU where there is one. */
#include "common/bench/device/device_limits.h"

#include "common/device/device.h"
#include "common/testing/testing.h"

C_TEST(limits, stand_in_the_order_of_the_hardware) {
    struct device_properties gpu;
    struct device_limits limits;
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    ASSERT_OK(device_properties(&gpu, NULL));
    ASSERT_OK(device_limits(&limits, &error));
    EXPECT_INT_EQ(gpu.modelled, limits.modelled);
    EXPECT_INT_EQ(gpu.l2_bytes, limits.l2_bytes);
    EXPECT_TRUE(limits.fp32_flops > 0.3 * gpu.peak_flops);
    EXPECT_TRUE(limits.fp32_flops < 1.1 * gpu.peak_flops);
    EXPECT_TRUE(gpu.code >= 80 ? limits.tensor_flops > limits.fp32_flops
                               : limits.tensor_flops == 0.0);
    EXPECT_TRUE(limits.read > 0.3 * gpu.memory_bandwidth);
    EXPECT_TRUE(limits.read <= gpu.memory_bandwidth);
    EXPECT_TRUE(limits.copy > 0.3 * gpu.memory_bandwidth);
    EXPECT_TRUE(limits.copy <= gpu.memory_bandwidth);
    EXPECT_TRUE(limits.l2 > limits.read);
    EXPECT_TRUE(limits.flops_spread >= 1.0);
    EXPECT_TRUE(limits.read_spread >= 1.0);
    EXPECT_TRUE(limits.bus > 0.0 && limits.bus < limits.copy);
}

/* A launch that need not be waited for is cheaper than one that is, a node of a graph cheaper
 * still. */
C_TEST(limits, launches) {
    struct device_limits limits;
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    ASSERT_OK(device_limits(&limits, &error));
    EXPECT_TRUE(limits.node_ms > 0.0);
    EXPECT_TRUE(limits.node_ms < limits.launch_ms);
    EXPECT_TRUE(limits.launch_ms <= limits.call_ms);
    EXPECT_TRUE(limits.event_ms <= limits.call_ms);
    EXPECT_TRUE(limits.call_spread >= 1.0);
}

/* What gemm16() says on simt's T4, which has neither bf16's products nor cp.async. */
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/tensor_cores.h"

C_TEST(gemm16, says_that_the_GPU_is_too_old) {
    struct device_properties gpu;
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(device_properties(&gpu, &error));
    if (gpu.code >= 80) {
        TEST_SKIP("%s is no GPU of before 2020", gpu.name);
    }
    void *memory = NULL;
    ASSERT_OK(device_alloc(&memory, 1024, &error));
    const struct gemm16_problem problem = {.dtype = NN_F16,
                                           .out_dtype = NN_F16,
                                           .M = 8,
                                           .N = 8,
                                           .K = 8,
                                           .in = memory,
                                           .weight = memory,
                                           .out = (char *)memory + 512};
    EXPECT_STATUS(STATUS_UNSUPPORTED, gemm16(&problem, NULL, NULL, &error));
    EXPECT_STR_EQ(
        "gemm16: code for compute capability 8.0 or more is needed, this GPU runs code for 7.x",
        error.message);
    device_free(memory);
}

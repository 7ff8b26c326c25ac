#include "common/bazel/cuda_smoke/smoke.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "common/testing/testing.h"

C_TEST(cuda_smoke, runtime_is_of_the_version_it_was_built_with) {
    int version = 0;
    EXPECT_INT_EQ(cudaSuccess, cudaRuntimeGetVersion(&version));
    printf("CUDA runtime %d.%d\n", version / 1000, version % 1000 / 10);
    EXPECT_INT_EQ(13, version / 1000);
    EXPECT_INT_EQ(CUDART_VERSION / 10, version / 10);
}

C_TEST(cuda_smoke, a_launch_writes_its_value_or_says_why_not) {
    int devices = 0;
    int seen = cudaGetDeviceCount(&devices);
    int value = -1;
    int error = smoke_launch(&value);
    printf("%d devices, launch: %s\n", devices, cudaGetErrorName(error));
    if (seen == cudaSuccess && devices > 0) {
        EXPECT_INT_EQ(cudaSuccess, error);
        EXPECT_INT_EQ(SMOKE_VALUE, value);
        return;
    }
    EXPECT_TRUE(error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice);
    EXPECT_INT_EQ(seen, error);
    EXPECT_INT_EQ(-1, value);
}

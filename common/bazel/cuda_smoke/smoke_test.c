#include "common/bazel/cuda_smoke/smoke.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "common/testing/testing.h"

/** More than one block, and not a multiple of the block size. */
enum { N = 1000 };

C_TEST(cuda_smoke, runtime_is_of_the_version_it_was_built_with) {
    int version = 0;
    EXPECT_INT_EQ(cudaSuccess, cudaRuntimeGetVersion(&version));
    printf("CUDA runtime %d.%d\n", version / 1000, version % 1000 / 10);
    EXPECT_INT_EQ(13, version / 1000);
    EXPECT_INT_EQ(CUDART_VERSION / 10, version / 10);
}

/** Whether there is a device; simt always has one. */
static bool has_device(void) {
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
#if SMOKE_ON_SIMT
    EXPECT_INT_EQ(cudaSuccess, error);
    EXPECT_INT_EQ(1, devices);
#endif
    return error == cudaSuccess && devices > 0;
}

C_TEST(cuda_smoke, a_kernel_computes) {
    static float x[N], y[N];
    int arch = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    int error = smoke_axpy(x, y, N, &arch);
    if (!has_device()) {
        printf("no GPU: %s\n", cudaGetErrorName(error));
        EXPECT_TRUE(error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice);
        EXPECT_INT_EQ(0, arch);
        EXPECT_INT_EQ(1, y[N - 1]);
        return;
    }
    EXPECT_INT_EQ(cudaSuccess, error);
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        wrong += y[i] != 1.0f + SMOKE_FACTOR * (float)i;
    }
    EXPECT_INT_EQ(0, wrong);
}

C_TEST(cuda_smoke, code_is_for_this_device_or_an_older_one) {
    struct cudaDeviceProp device;
    float x = 1.0f, y = 0.0f;
    int arch = 0;
    if (!has_device()) {
        TEST_SKIP("no GPU here");
    }
    EXPECT_INT_EQ(cudaSuccess, cudaGetDeviceProperties(&device, 0));
    EXPECT_INT_EQ(cudaSuccess, smoke_axpy(&x, &y, 1, &arch));
    int capability = 100 * device.major + 10 * device.minor;
    printf("%s: compute capability %d.%d, code for %d.%d\n", device.name, device.major,
           device.minor, arch / 100, arch % 100 / 10);
    EXPECT_TRUE(arch >= 750);
    EXPECT_TRUE(arch <= capability);
#if SMOKE_ON_SIMT
    EXPECT_INT_EQ(SMOKE_CAPABILITY, capability);
#endif
}

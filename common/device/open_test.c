/* device_open() on fake machines: each failure has one clear message that says what to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/device/testdata/fake_runtime.h"
#include "common/testing/testing.h"

static const struct fake_machine good = {
    .count = 1, .driver = 13000, .runtime = 13000, .major = 9, .minor = 0};

/* Opens on `machine`; the message must contain each of the texts, up to the first NULL. */
static void expect_refusal(const struct fake_machine *machine, const char *const *texts) {
    struct error error = {0};
    fake_machine_set(machine);
    EXPECT_STATUS(STATUS_NO_DEVICE, device_open(&error));
    EXPECT_TRUE(strchr(error.message, '\n') == NULL);
    EXPECT_TRUE(fake_errors_taken() > 0);
    for (; *texts != NULL; texts++) {
        if (strstr(error.message, *texts) == NULL) {
            TEST_FAIL("'%s' is not in: %s", *texts, error.message);
        }
    }
    printf("%s\n", error.message);
}

#define EXPECT_REFUSAL(machine, ...) \
    expect_refusal(&(machine), (const char *const[]){__VA_ARGS__, NULL})

C_TEST(open, takes_a_good_machine) {
    struct device_properties gpu;
    fake_machine_set(&good);
    EXPECT_OK(device_open(NULL));
    EXPECT_OK(device_properties(&gpu, NULL));
    EXPECT_STR_EQ("Fake GPU", gpu.name);
    EXPECT_STR_EQ("Fake GPU", gpu.record_name);
    EXPECT_TRUE(!gpu.modelled);
    EXPECT_INT_EQ(13000, gpu.driver);
    EXPECT_INT_EQ(0, gpu.memory_clock_khz);
    EXPECT_NEAR(0.0, gpu.memory_bandwidth, 0.0);
    /* 10 multiprocessors of 128 lanes, two operations, 1 GHz. */
    EXPECT_NEAR(2560e9, gpu.peak_flops, 1.0);
}

C_TEST(open, counts_the_lanes_of_each_generation) {
    static const struct {
        int major, minor, lanes;
    } rows[] = {{7, 5, 64}, {8, 0, 64}, {8, 6, 128}, {8, 9, 128}, {9, 0, 128}, {12, 0, 128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake_machine machine = good;
        struct device_properties gpu;
        machine.major = rows[i].major;
        machine.minor = rows[i].minor;
        fake_machine_set(&machine);
        EXPECT_OK(device_properties(&gpu, NULL));
        EXPECT_NEAR(2.0 * 10 * rows[i].lanes * 1e9, gpu.peak_flops, 1.0);
    }
}

C_TEST(open, no_driver) {
    struct fake_machine machine = good;
    machine.count = 0;
    machine.driver = 0;
    machine.count_error = cudaErrorInsufficientDriver;
    EXPECT_REFUSAL(machine, "no NVIDIA driver here", "--config=simt");
    machine.count_error = cudaErrorNoDevice;
    EXPECT_REFUSAL(machine, "no NVIDIA driver here", "--config=simt");
}

C_TEST(open, driver_older_than_the_runtime) {
    struct fake_machine machine = good;
    machine.driver = 12040;
    machine.count_error = cudaErrorInsufficientDriver;
    EXPECT_REFUSAL(machine, "driver is too old", "it is for CUDA 12.4", "CUDA 13.0",
                   "update the driver");
}

C_TEST(open, no_gpu) {
    struct fake_machine machine = good;
    unsetenv("CUDA_VISIBLE_DEVICES");
    machine.count_error = cudaErrorNoDevice;
    EXPECT_REFUSAL(machine, "driver but no GPU", "nvidia-smi", "--config=simt");
    machine.count_error = cudaSuccess;
    machine.count = 0;
    EXPECT_REFUSAL(machine, "driver but no GPU");
}

C_TEST(open, gpu_hidden_by_the_environment) {
    struct fake_machine machine = good;
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    machine.count_error = cudaErrorNoDevice;
    EXPECT_REFUSAL(machine, "CUDA_VISIBLE_DEVICES is '7'", "unset it");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

C_TEST(open, gpu_that_does_not_start) {
    struct fake_machine machine = good;
    machine.count_error = cudaErrorSystemNotReady;
    EXPECT_REFUSAL(machine, "system not yet initialized", "nvidia-smi");
    machine.count_error = cudaSuccess;
    machine.set_error = cudaErrorDevicesUnavailable;
    EXPECT_REFUSAL(machine, "the GPU cannot be used");
}

C_TEST(open, gpu_whose_memory_is_taken) {
    struct fake_machine machine = good;
    machine.set_error = cudaErrorMemoryAllocation;
    EXPECT_REFUSAL(machine, "too little free memory to start", "end the other programs on it",
                   "nvidia-smi");
}

C_TEST(open, no_code_for_this_gpu) {
    struct fake_machine machine = good;
    machine.major = 10;
    machine.minor = 3;
    machine.probe_error = cudaErrorNoKernelImageForDevice;
    EXPECT_REFUSAL(machine, "no code for Fake GPU, compute capability 10.3", "--config=gpu",
                   "--@rules_cuda//cuda:archs=compute_103:sm_103");
    machine.probe_error = cudaErrorUnsupportedPtxVersion;
    EXPECT_REFUSAL(machine, "compute capability 10.3", "cudaErrorUnsupportedPtxVersion");
}

C_TEST(open, gpu_older_than_the_toolkit) {
    struct fake_machine machine = good;
    machine.major = 7;
    machine.probe_error = cudaErrorNoKernelImageForDevice;
    EXPECT_REFUSAL(machine, "Fake GPU is too old", "7.0", "at least 7.5");
}

C_TEST(open, a_first_kernel_that_fails) {
    struct fake_machine machine = good;
    struct error error = {0};
    machine.probe_error = cudaErrorECCUncorrectable;
    fake_machine_set(&machine);
    EXPECT_ERROR_CONTAINS(STATUS_DEVICE, "a first kernel on the GPU: ", device_open(&error));
    machine.probe_error = cudaErrorNoKernelImageForDevice;
    machine.properties_error = cudaErrorUnknown;
    fake_machine_set(&machine);
    EXPECT_STATUS(STATUS_NO_DEVICE, device_open(&error));
}

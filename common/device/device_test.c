/* The device layer on the runtime that the program was linked with: simt's, or a GPU's. */
#include "common/device/device.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/testdata/test_kernels.h"
#include "common/testing/testing.h"

/* Opens the device, or skips the test: a program built for a GPU may run on a machine without. */
#define OPEN_OR_SKIP()                               \
    do {                                             \
        struct error open_error = {0};               \
        if (device_open(&open_error) != STATUS_OK) { \
            TEST_SKIP("%s", open_error.message);     \
        }                                            \
    } while (0)

static void expect_text(const char *text, const struct error *error) {
    if (strstr(error->message, text) == NULL) {
        TEST_FAIL("'%s' is not in: %s", text, error->message);
    }
}

C_TEST(device, properties_are_those_of_a_gpu) {
    OPEN_OR_SKIP();
    struct device_properties gpu;
    ASSERT_OK(device_properties(&gpu, NULL));
    printf("%s: %s, compute capability %d.%d, %d multiprocessors, %d kHz, %.1f TFLOP/s, %.0f "
           "GB/s\n",
           gpu.record_name, gpu.name, gpu.major, gpu.minor, gpu.multiprocessors, gpu.clock_khz,
           1e-12 * gpu.peak_flops, 1e-9 * gpu.memory_bandwidth);
    EXPECT_TRUE(gpu.name[0] != '\0');
    EXPECT_TRUE(10 * gpu.major + gpu.minor >= 75);
    EXPECT_TRUE(gpu.multiprocessors > 0 && gpu.clock_khz > 0);
    EXPECT_TRUE(gpu.memory_bytes > (size_t)1 << 30 && gpu.l2_bytes >= (size_t)1 << 20);
    EXPECT_TRUE(gpu.shared_bytes >= 48 * 1024);
    EXPECT_TRUE(gpu.peak_flops > 1e12 && gpu.peak_flops < 1e15);
    EXPECT_TRUE(gpu.runtime >= 13000);
    EXPECT_INT_EQ(gpu.modelled, strncmp(gpu.record_name, "simt:", 5) == 0);
    EXPECT_INT_EQ(gpu.modelled, gpu.driver == 0);
}

C_TEST(device, the_emulated_h200_has_its_figures) {
    OPEN_OR_SKIP();
    struct device_properties gpu;
    ASSERT_OK(device_properties(&gpu, NULL));
    if (strcmp(gpu.record_name, "simt:h200") != 0) {
        TEST_SKIP("this is %s", gpu.record_name);
    }
    EXPECT_STR_EQ("NVIDIA H200", gpu.name);
    EXPECT_NEAR(66.9e12, gpu.peak_flops, 0.1e12);
    EXPECT_NEAR(4.81e12, gpu.memory_bandwidth, 0.01e12);
}

C_TEST(device, memory_goes_there_and_back) {
    OPEN_OR_SKIP();
    enum { COUNT = 1000 };
    float host[COUNT], back[COUNT];
    void *first = NULL, *second = NULL;
    device_stream stream = NULL;
    struct device_traffic before = device_traffic();
    ASSERT_OK(device_stream_create(&stream, NULL));
    ASSERT_OK(device_alloc(&first, sizeof host, NULL));
    ASSERT_OK(device_alloc(&second, sizeof host, NULL));
    EXPECT_INT_EQ(0, (uintptr_t)first % 256);
    for (int i = 0; i < COUNT; i++) {
        host[i] = (float)i;
    }
    EXPECT_OK(device_write(first, host, sizeof host, stream, NULL));
    EXPECT_OK(device_copy(second, first, sizeof host, stream, NULL));
    EXPECT_OK(device_set(first, 0, sizeof host, stream, NULL));
    test_add(second, 0.5f, COUNT, 128, stream);
    EXPECT_OK(device_launched("add", NULL));
    EXPECT_OK(device_read(back, second, sizeof back, stream, NULL));
    for (int i = 0; i < COUNT; i++) {
        EXPECT_NEAR(i + 0.5, back[i], 0.0);
    }
    EXPECT_OK(device_read(back, first, sizeof back, stream, NULL));
    EXPECT_NEAR(0.0, back[COUNT - 1], 0.0);
    device_free(first);
    device_free(second);
    device_stream_destroy(stream);
    struct device_traffic after = device_traffic();
    EXPECT_INT_EQ(1, after.copies_to_device - before.copies_to_device);
    EXPECT_INT_EQ(sizeof host, after.bytes_to_device - before.bytes_to_device);
    EXPECT_INT_EQ(2, after.copies_to_host - before.copies_to_host);
    EXPECT_INT_EQ(2 * sizeof host, after.bytes_to_host - before.bytes_to_host);
    EXPECT_INT_EQ(2, after.allocations - before.allocations);
    EXPECT_NEAR(0.0, after.copy_seconds - before.copy_seconds, 0.0);
}

C_TEST(device, tracing_times_copies_but_not_kernels) {
    OPEN_OR_SKIP();
    enum { BYTES = 8 << 20 };
    char *host = calloc(1, BYTES);
    void *x = NULL;
    ASSERT_TRUE(host != NULL);
    ASSERT_OK(device_alloc(&x, BYTES, NULL));
    EXPECT_OK(device_write(x, host, BYTES, NULL, NULL));
    device_trace(true);
    struct device_traffic before = device_traffic();
    double start = device_now();
    for (int i = 0; i < 3; i++) {
        test_add(x, 1.0f, BYTES / sizeof(float), 256, NULL);
    }
    double kernels = device_now() - start;
    struct device_traffic between = device_traffic();
    EXPECT_OK(device_write(x, host, BYTES, NULL, NULL));
    EXPECT_OK(device_read(host, x, BYTES, NULL, NULL));
    device_trace(false);
    double all = device_now() - start;
    struct device_traffic after = device_traffic();
    double copies = after.copy_seconds - between.copy_seconds;
    EXPECT_NEAR(0.0, between.copy_seconds - before.copy_seconds, 0.0);
    EXPECT_TRUE(kernels > 1e-6);
    /* 16 MiB at 500 GB/s at most. */
    EXPECT_TRUE(copies > 3e-5 && copies <= all - kernels + 2e-9);
    EXPECT_OK(device_write(x, host, BYTES, NULL, NULL));
    EXPECT_NEAR(after.copy_seconds, device_traffic().copy_seconds, 0.0);
    device_free(x);
    free(host);
}

C_TEST(device, pinned_memory_is_free_again_after_a_write) {
    OPEN_OR_SKIP();
    enum { COUNT = 1 << 20 };
    void *pinned = NULL, *memory = NULL;
    ASSERT_OK(device_alloc_host(&pinned, COUNT, NULL));
    ASSERT_OK(device_alloc(&memory, COUNT, NULL));
    memset(pinned, 1, COUNT);
    EXPECT_OK(device_write(memory, pinned, COUNT, NULL, NULL));
    memset(pinned, 2, COUNT);
    EXPECT_OK(device_read(pinned, memory, COUNT, NULL, NULL));
    EXPECT_INT_EQ(1, ((unsigned char *)pinned)[0]);
    EXPECT_INT_EQ(1, ((unsigned char *)pinned)[COUNT - 1]);
    device_free(memory);
    device_free_host(pinned);
}

C_TEST(device, nothing_is_allowed) {
    OPEN_OR_SKIP();
    void *memory = (void *)1;
    struct device_traffic before = device_traffic();
    EXPECT_OK(device_alloc(&memory, 0, NULL));
    EXPECT_TRUE(memory == NULL);
    memory = (void *)1;
    EXPECT_OK(device_alloc_host(&memory, 0, NULL));
    EXPECT_TRUE(memory == NULL);
    EXPECT_OK(device_write(NULL, NULL, 0, NULL, NULL));
    EXPECT_OK(device_read(NULL, NULL, 0, NULL, NULL));
    EXPECT_OK(device_copy(NULL, NULL, 0, NULL, NULL));
    EXPECT_OK(device_set(NULL, 0, 0, NULL, NULL));
    device_free(NULL);
    device_free_host(NULL);
    device_stream_destroy(NULL);
    device_event_destroy(NULL);
    struct device_traffic after = device_traffic();
    EXPECT_INT_EQ(0, memcmp(&before, &after, sizeof before));
}

C_TEST(device, more_memory_than_there_is) {
    OPEN_OR_SKIP();
    struct device_properties gpu;
    void *memory = NULL;
    struct error error = {0};
    char bytes[64];
    ASSERT_OK(device_properties(&gpu, NULL));
    size_t much = gpu.memory_bytes + 1;
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, device_alloc(&memory, much, &error));
    EXPECT_TRUE(memory == NULL);
    snprintf(bytes, sizeof bytes, "out of GPU memory: %zu bytes asked for, ", much);
    expect_text(bytes, &error);
    expect_text("bytes are free; use a smaller size", &error);
    printf("%s\n", error.message);
    /* The next call must not report that error again. */
    EXPECT_OK(device_launched("nothing", NULL));
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, device_alloc(&memory, SIZE_MAX, &error));
}

C_TEST(device, bad_pointers) {
    OPEN_OR_SKIP();
    char host[16] = {0};
    void *nowhere = (void *)16;
    struct error error = {0};
    struct device_traffic before = device_traffic();
    EXPECT_STATUS(STATUS_DEVICE, device_write(nowhere, host, sizeof host, NULL, &error));
    expect_text("copying 16 bytes to the GPU, to 0x10: invalid argument (cudaErrorInvalidValue)",
                &error);
    EXPECT_STATUS(STATUS_DEVICE, device_read(host, nowhere, sizeof host, NULL, &error));
    expect_text("copying 16 bytes from the GPU, from 0x10: invalid argument", &error);
    EXPECT_STATUS(STATUS_DEVICE, device_set(nowhere, 0, 16, NULL, &error));
    expect_text("setting 16 bytes on the GPU: invalid argument", &error);
    device_free(nowhere);
    EXPECT_OK(device_launched("nothing", NULL));
    struct device_traffic after = device_traffic();
    EXPECT_INT_EQ(0, memcmp(&before, &after, sizeof before));
}

C_TEST(device, events_measure_what_lies_between) {
    OPEN_OR_SKIP();
    enum { BYTES = 4 << 20 };
    void *x = NULL;
    device_event start = NULL, stop = NULL;
    double all = -1.0, none = -1.0;
    ASSERT_OK(device_alloc(&x, BYTES, NULL));
    ASSERT_OK(device_set(x, 0, BYTES, NULL, NULL));
    ASSERT_OK(device_event_create(&start, NULL));
    ASSERT_OK(device_event_create(&stop, NULL));
    EXPECT_OK(device_event_record(start, NULL, NULL));
    test_add(x, 1.0f, BYTES / sizeof(float), 256, NULL);
    EXPECT_OK(device_event_record(stop, NULL, NULL));
    EXPECT_OK(device_event_elapsed(start, stop, &all, NULL));
    EXPECT_OK(device_event_elapsed(start, start, &none, NULL));
    EXPECT_TRUE(all > 1e-4 && all < 1e3);
    EXPECT_NEAR(0.0, none, 0.0);
    device_event_destroy(start);
    device_event_destroy(stop);
    device_free(x);
}

C_TEST(device, events_out_of_order) {
    OPEN_OR_SKIP();
    enum { BYTES = 1 << 20 };
    void *x = NULL;
    device_event first = NULL, second = NULL;
    struct error error = {0};
    double ms = -1.0;
    ASSERT_OK(device_alloc(&x, BYTES, NULL));
    ASSERT_OK(device_event_create(&first, NULL));
    ASSERT_OK(device_event_create(&second, NULL));
    EXPECT_OK(device_event_record(first, NULL, NULL));
    EXPECT_STATUS(STATUS_DEVICE, device_event_elapsed(first, second, &ms, &error));
    expect_text("two events that were not both recorded", &error);
    EXPECT_OK(device_set(x, 0, BYTES, NULL, NULL));
    EXPECT_OK(device_event_record(second, NULL, NULL));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, device_event_elapsed(second, first, &ms, &error));
    expect_text("the second was recorded first", &error);
    EXPECT_NEAR(0.0, ms, 0.0);
    device_event_destroy(first);
    device_event_destroy(second);
    device_free(x);
}

C_TEST(device, a_launch_that_cannot_be) {
    OPEN_OR_SKIP();
    void *x = NULL;
    struct error error = {0};
    ASSERT_OK(device_alloc(&x, 4, NULL));
    test_add(x, 1.0f, 1, 2048, NULL);
    EXPECT_STATUS(STATUS_DEVICE, device_launched("add", &error));
    expect_text("launching add: ", &error);
    expect_text("cudaErrorInvalid", &error);
    printf("%s\n", error.message);
    EXPECT_OK(device_launched("add", NULL));
    EXPECT_OK(device_synchronize(NULL, NULL));
    device_free(x);
}

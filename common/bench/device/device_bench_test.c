/* Timing on what the program was linked with: simt, or a GPU where there is one. */
#include "common/bench/device/device_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/bench/device/device_kernels.h"
#include "common/bench/device/device_peaks.h"
#include "common/testing/testing.h"

enum { BYTES = 4 << 20 };

/* A copy that counts its calls, and fails at a chosen one. */
struct copy {
    void *from, *to;
    int calls, fail_at;
};

static enum status run_copy(void *argument, device_stream stream, struct error *error) {
    struct copy *copy = argument;
    if (++copy->calls == copy->fail_at) {
        return error_set(error, STATUS_UNSUPPORTED, "call %d", copy->calls);
    }
    return device_stream_copy(copy->to, copy->from, BYTES, stream, error);
}

static enum status copy_create(struct copy *copy) {
    *copy = (struct copy){0};
    enum status status = device_alloc(&copy->from, BYTES, NULL);
    if (status == STATUS_OK) {
        status = device_alloc(&copy->to, BYTES, NULL);
    }
    return status == STATUS_OK ? device_set(copy->from, 0, BYTES, NULL, NULL) : status;
}

static void copy_free(struct copy *copy) {
    device_free(copy->from);
    device_free(copy->to);
}

struct fixture {
    struct device_properties gpu;
    struct copy copy;
};

/* A test with a fixture `f`; skipped where there is no device. */
#define COPY_TEST(suite, name)                           \
    static void body_##name(struct fixture *);           \
    C_TEST(suite, name) {                                \
        struct fixture opened;                           \
        struct error start_error = {0};                  \
        if (device_open(&start_error) != STATUS_OK) {    \
            TEST_SKIP("%s", start_error.message);        \
        }                                                \
        ASSERT_OK(device_properties(&opened.gpu, NULL)); \
        ASSERT_OK(copy_create(&opened.copy));            \
        body_##name(&opened);                            \
        copy_free(&opened.copy);                         \
    }                                                    \
    static void body_##name(struct fixture *f)

COPY_TEST(device_bench, times_a_copy) {
    struct bench_timing timing;
    char text[256];
    struct device_bench_options options = device_bench_defaults();
    options.min_seconds = 0.01;
    EXPECT_OK(device_bench_run(&options, run_copy, &f->copy, NULL, &timing, NULL));
    printf("%s: %.4f ms, %d runs, %.0f MHz\n", device_bench_headline(&f->gpu, text, sizeof text),
           timing.median_ms, timing.runs, timing.clock_mhz);
    /* 8 MiB cross no memory of today in under a microsecond. */
    EXPECT_TRUE(timing.min_ms > 1e-3 && timing.max_ms < 1e3);
    EXPECT_TRUE(timing.min_ms <= timing.median_ms && timing.median_ms <= timing.max_ms);
    if (f->gpu.modelled) {
        EXPECT_INT_EQ(1, timing.runs);
        EXPECT_INT_EQ(2, f->copy.calls);
        EXPECT_NEAR(0.0, timing.clock_mhz, 0.0);
        EXPECT_TRUE(strstr(text, "modelled for ") == text && strstr(text, "measured") == NULL);
    } else {
        EXPECT_TRUE(timing.runs >= options.min_runs && f->copy.calls > timing.runs);
        EXPECT_TRUE(timing.clock_mhz > 100.0 && timing.clock_mhz < 1.05e-3 * f->gpu.clock_khz);
        EXPECT_TRUE(strstr(text, "measured on ") == text && strstr(text, "modelled") == NULL);
    }
}

COPY_TEST(device_bench, a_modelled_time_is_the_same_every_time) {
    struct bench_timing first, second;
    struct device_bench_options options = device_bench_defaults();
    options.min_seconds = 0.0;
    EXPECT_OK(device_bench_run(&options, run_copy, &f->copy, NULL, &first, NULL));
    EXPECT_OK(device_bench_run(&options, run_copy, &f->copy, NULL, &second, NULL));
    if (f->gpu.modelled) {
        EXPECT_NEAR(first.median_ms, second.median_ms, 1e-6 * first.median_ms);
    }
}

COPY_TEST(device_bench, a_flushed_cache_never_helps) {
    struct bench_timing warm, cold;
    struct device_bench_options options = device_bench_defaults();
    options.min_seconds = 0.02;
    EXPECT_OK(device_bench_run(&options, run_copy, &f->copy, NULL, &warm, NULL));
    options.flush_l2 = true;
    EXPECT_OK(device_bench_run(&options, run_copy, &f->copy, NULL, &cold, NULL));
    printf("8 MiB from and to memory: warm %.4f ms, cold %.4f ms\n", warm.median_ms,
           cold.median_ms);
    EXPECT_TRUE(cold.median_ms >= 0.99 * warm.median_ms);
}

/* One run at a time is timed as all of them are. */
COPY_TEST(device_bench, a_stopwatch_times_one_run) {
    struct device_stopwatch *watch;
    struct bench_timing cold;
    struct device_bench_options options = device_bench_defaults();
    double first = 0.0, second = 0.0, settled = -1.0;
    options.min_seconds = 0.02;
    options.flush_l2 = true;
    EXPECT_OK(device_bench_run(&options, run_copy, &f->copy, NULL, &cold, NULL));
    ASSERT_OK(device_stopwatch_create(&watch, true, NULL, NULL));
    EXPECT_OK(device_stopwatch_settle(watch, 0.5, &settled, NULL));
    EXPECT_OK(device_stopwatch_prepare(watch, NULL));
    EXPECT_OK(device_stopwatch_run(watch, run_copy, &f->copy, &first, NULL));
    EXPECT_OK(device_stopwatch_prepare(watch, NULL));
    f->copy.fail_at = f->copy.calls + 2;
    EXPECT_OK(device_stopwatch_run(watch, run_copy, &f->copy, &second, NULL));
    EXPECT_STATUS(STATUS_UNSUPPORTED,
                  device_stopwatch_run(watch, run_copy, &f->copy, &second, NULL));
    device_stopwatch_free(watch);
    device_stopwatch_free(NULL);
    EXPECT_TRUE(settled >= 0.0);
    EXPECT_TRUE(first > 0.0 && (!f->gpu.modelled || fabs(first - cold.median_ms) < 1e-6 * first));
    EXPECT_TRUE(second > 0.0 && (!f->gpu.modelled || fabs(second - first) < 1e-6 * first));
}

COPY_TEST(device_bench, passes_failures_on) {
    struct bench_timing timing;
    struct error error = {0};
    struct device_bench_options options = device_bench_defaults();
    options.warmup = 1;
    options.warmup_seconds = 0.0;
    f->copy.fail_at = 1;
    EXPECT_STATUS(STATUS_UNSUPPORTED,
                  device_bench_run(&options, run_copy, &f->copy, NULL, &timing, &error));
    f->copy.calls = 0;
    f->copy.fail_at = 2;
    EXPECT_STATUS(STATUS_UNSUPPORTED,
                  device_bench_run(&options, run_copy, &f->copy, NULL, &timing, &error));
    EXPECT_STR_EQ("call 2", error.message);
    EXPECT_NEAR(0.0, timing.median_ms, 0.0);
    options.max_runs = options.min_runs - 1;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  device_bench_run(&options, run_copy, &f->copy, NULL, &timing, &error));
}

C_TEST(device_bench, records_name_the_gpu) {
    struct device_properties gpu = {.name = "NVIDIA H200",
                                    .record_name = "simt:h200",
                                    .modelled = true,
                                    .clock_khz = 1980000,
                                    .runtime = 13000};
    char text[256];
    struct bench_gpu record = bench_gpu_of(&gpu);
    EXPECT_STR_EQ("simt:h200", record.name);
    EXPECT_TRUE(record.modelled);
    EXPECT_NEAR(1980.0, record.mhz, 1e-9);
    EXPECT_STR_EQ("modelled for NVIDIA H200 (simt:h200): no GPU was timed",
                  device_bench_headline(&gpu, text, sizeof text));
    gpu.modelled = false;
    gpu.driver = 13010;
    EXPECT_STR_EQ("measured on NVIDIA H200 (1980 MHz, driver for CUDA 13.1)",
                  device_bench_headline(&gpu, text, sizeof text));
}

COPY_TEST(device_peaks, are_near_what_clocks_and_widths_allow) {
    struct roofline roofs;
    double spread = 0.0;
    EXPECT_OK(device_peaks(&roofs, &spread, NULL));
    EXPECT_TRUE(f->gpu.modelled ? spread == 1.0 : spread >= 1.0);
    printf("%.1f TFLOP/s of %.1f, %.0f GB/s of %.0f\n", 1e-12 * roofs.flops_per_s,
           1e-12 * f->gpu.peak_flops, 1e-9 * roofs.bytes_per_s, 1e-9 * f->gpu.memory_bandwidth);
    EXPECT_INT_EQ(f->gpu.modelled, roofs.modelled);
    if (f->gpu.modelled) {
        EXPECT_NEAR(f->gpu.peak_flops, roofs.flops_per_s, 0.0);
        EXPECT_NEAR(f->gpu.memory_bandwidth, roofs.bytes_per_s, 0.0);
    } else {
        EXPECT_TRUE(roofs.flops_per_s > 0.5 * f->gpu.peak_flops);
        EXPECT_TRUE(roofs.flops_per_s < 1.02 * f->gpu.peak_flops);
        EXPECT_TRUE(roofs.bytes_per_s > 0.5 * f->gpu.memory_bandwidth);
        EXPECT_TRUE(roofs.bytes_per_s < 1.02 * f->gpu.memory_bandwidth);
    }
}

/* Memory of zeros but for one -1: the thread that reads it has that sum, and says so. */
static bool reads(void *memory, float *sink, size_t bytes, enum device_read_shape shape,
                  size_t at) {
    const float one = -1.0f;
    float found = 0.0f;
    char *place = (char *)memory + at;
    EXPECT_OK(device_set(memory, 0, bytes + 16, NULL, NULL));
    EXPECT_OK(device_set(sink, 0, sizeof *sink, NULL, NULL));
    EXPECT_OK(device_write(place, &one, sizeof one, NULL, NULL));
    EXPECT_OK(device_stream_read(sink, memory, bytes, shape, 1, NULL, NULL));
    EXPECT_OK(device_read(&found, sink, sizeof found, NULL, NULL));
    return found == one;
}

C_TEST(device_kernels, a_read_reads_all_of_the_memory) {
    const size_t tile = DEVICE_READ_TILE_BYTES, bytes = 19 * tile; /* two waves and a part */
    void *memory;
    float *sink;
    if (device_open(NULL) != STATUS_OK) {
        TEST_SKIP("no GPU");
    }
    ASSERT_OK(device_alloc(&memory, bytes + 16, NULL));
    ASSERT_OK(device_alloc((void **)&sink, sizeof *sink, NULL));
    for (int s = 0; s < DEVICE_READ_SHAPES; s++) {
        enum device_read_shape shape = (enum device_read_shape)s;
        const size_t inside[] = {0, 4, tile - 4, tile + 4096, 8 * tile, 17 * tile + 40, bytes - 4};
        for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
            EXPECT_TRUE(reads(memory, sink, bytes, shape, inside[i]));
        }
        EXPECT_TRUE(!reads(memory, sink, bytes, shape, bytes));
        EXPECT_OK(device_stream_read(sink, memory, tile - 16, shape, 1, NULL, NULL));
    }
    device_free(memory);
    device_free(sink);
}

COPY_TEST(device_peaks, reading_alone_is_near_what_the_width_allows) {
    double speed = 0.0, spread = 0.0;
    EXPECT_OK(device_read_bandwidth(&speed, &spread, NULL));
    EXPECT_TRUE(f->gpu.modelled ? spread == 1.0 : spread >= 1.0);
    printf("read alone: %.0f GB/s of %.0f\n", 1e-9 * speed, 1e-9 * f->gpu.memory_bandwidth);
    EXPECT_TRUE(speed > 0.6 * f->gpu.memory_bandwidth);
    EXPECT_TRUE(speed < 1.02 * f->gpu.memory_bandwidth);
}

/* Runs on simt or on a GPU, whichever the program is linked with. */
#include "common/bench/device/layer_reads.h"

#include <stdint.h>
#include <stdio.h>

#include "common/bench/device/device_kernels.h"
#include "common/bench/device/device_peaks.h"
#include "common/device/device.h"
#include "common/testing/testing.h"

enum { TILE = 32 << 10 };

C_TEST(layer_reads, bytes_are_whole_tiles_of_all_layers) {
    EXPECT_INT_EQ(TILE, DEVICE_READ_TILE_BYTES);
    EXPECT_INT_EQ(3 * TILE, layer_reads_bytes(&(struct layer_reads){3, 1, 0}));
    EXPECT_INT_EQ(5 * 3 * TILE, layer_reads_bytes(&(struct layer_reads){5, TILE + 1, TILE}));
    EXPECT_INT_EQ(0, layer_reads_bytes(&(struct layer_reads){0, TILE, TILE}));
    EXPECT_INT_EQ(0, layer_reads_bytes(&(struct layer_reads){4, 0, 0}));
    EXPECT_INT_EQ(0, layer_reads_bytes(&(struct layer_reads){2, SIZE_MAX, 1}));
    EXPECT_INT_EQ(0, layer_reads_bytes(&(struct layer_reads){SIZE_MAX, TILE, 0}));
}

C_TEST(layer_reads, nothing_to_read_is_an_error) {
    struct error error = {0};
    struct bench_timing timing;
    ASSERT_OK(device_open(&error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  layer_reads_time(&(struct layer_reads){4, 0, 0}, &timing, &error));
    EXPECT_STR_EQ("reading 4 layers of 0 weight bytes and 0 cache bytes: the sum must be at least "
                  "1 byte and fit size_t",
                  error.message);
}

static double time_of(struct layer_reads reads) {
    struct error error = {0};
    struct bench_timing timing = {0};
    EXPECT_OK(layer_reads_time(&reads, &timing, &error));
    EXPECT_TRUE(timing.runs >= 1 && timing.min_ms > 0.0);
    return timing.median_ms;
}

/* 4 MiB of keys and 8 of weights a layer: eight layers of both are more than an L2 cache holds. */
C_TEST(layer_reads, more_bytes_and_more_launches_take_longer) {
    const size_t some = 128 * TILE;
    struct error error = {0};
    struct device_properties gpu;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_properties(&gpu, &error));
    double one = time_of((struct layer_reads){1, 0, 8 * some});
    double split = time_of((struct layer_reads){8, 0, some});
    double both = time_of((struct layer_reads){8, 2 * some, some});
    printf("one launch %.4f ms, 8 launches %.4f ms, with weights between %.4f ms\n", one, split,
           both);
    EXPECT_TRUE(split > one);
    EXPECT_TRUE(both > split);
    if (gpu.modelled) { /* no byte arrives faster than the modelled memory sends it */
        EXPECT_TRUE(1e-3 * both > 24.0 * (double)some / gpu.memory_bandwidth);
    }
}

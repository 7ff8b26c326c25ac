/* Benches as on a GPU, whose device is the worker's own: rehearsed on simt. */
#include <math.h>

#include "common/bench/bench.h"
#include "common/bench/device/device_bench.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "grader/isolation/test_calls.h"

/* "Made up" is what has the grader leave the device to the worker. */
const struct remote_program remote_program = {
    {"bench_test_worker", "bench_test_worker"}, REMOTE_MADE_UP_GPU, NULL};

enum { BYTES = 1 << 20 };

/* A copy of one side's, on a stream of its own that is gone afterwards. */
static double bench_copy(enum remote_side side) {
    const struct device_bench_options options = {.min_runs = 5, .max_runs = 5};
    struct copy_call call = {.bytes = BYTES};
    device_stream stream = NULL;
    struct bench_timing timing = {.median_ms = (double)NAN};
    struct error error = {0};
    EXPECT_OK(remote_open_side(side, &error));
    EXPECT_OK(device_stream_create(&stream, &error));
    call.stream = stream;
    EXPECT_OK(device_alloc(&call.from, BYTES, &error));
    EXPECT_OK(device_alloc(&call.to, BYTES, &error));
    EXPECT_OK(device_set(call.from, 1, BYTES, stream, &error));
    EXPECT_OK(remote_bench(&options, "copy", &call, sizeof call, stream, &timing, &error));
    EXPECT_STR_EQ("", error.message);
    device_free(call.from);
    device_free(call.to);
    device_stream_destroy(stream);
    return timing.median_ms;
}

/* The baseline's own time is taken as it is: simt's model, the same each time. */
C_TEST(bench, of_a_device_of_the_workers_own) {
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    double own = bench_copy(REMOTE_BASELINE);
    EXPECT_TRUE(own > 0.0);
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(bench_copy(REMOTE_SUBJECT) >= 0.98 * own);
        EXPECT_NEAR(own, bench_copy(REMOTE_BASELINE), 0.02 * own);
    }
}

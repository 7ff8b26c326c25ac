/*
 * Shared accesses are counted as ptxas joins them: requests, and wavefronts of the joined width.
 */
#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

/* Of one warp; loads and stores as the machine code has them, see testdata/joined.cu. */
static const struct {
    const char *kernel;
    uint32_t loads, load_wavefronts, stores;
} rows[] = {
    {"first_three", 1, 2, 1},    {"last_three", 1, 2, 1},     {"with_a_hole", 1, 2, 1},
    {"dynamic", 1, 2, 1},        {"rows_of_20", 1, 2, 1},     {"five", 2, 3, 1},
    {"rows_of_18", 2, 2, 1},     {"middle", 2, 2, 1},         {"apart", 2, 2, 1},
    {"unaligned", 2, 2, 1},      {"barrier", 2, 2, 1},        {"store_between", 2, 2, 2},
    {"is_volatile", 2, 2, 1},    {"behind_another", 5, 5, 2}, {"shuffle", 1, 1, 1},
    {"global_between", 1, 1, 1}, {"store_four", 1, 1, 1},     {"store_three", 1, 1, 2},
    {"halves", 4, 4, 1},
};

/* Bounds only: what the kernels compute means nothing, and some read what nothing has written. */
static bool run(struct launch_testing *t, const char *kernel, const void *parameters) {
    const struct simt_launch launch = {
        .module = t->module,
        .kernel = kernel,
        .grid = {1, 1, 1},
        .threads = {32, 1, 1},
        .dynamic_shared_bytes = 256,
        .parameters = parameters,
        .check = SIMT_CHECK_BOUNDS,
        .host_threads = 1,
    };
    struct error error = {0};
    EXPECT_OK(simt_launch_run(&launch, &t->counters, &t->fault, &error));
    return t->fault.kind == SIMT_FAULT_NONE;
}

C_TEST(join, counts_what_the_assembler_joins) {
    struct launch_testing t;
    ASSERT_TRUE(launch_testing_open(&t, JOINED_PTX));
    struct {
        uint64_t out;
        int32_t n, m;
    } parameters = {launch_testing_upload(&t, NULL, sizeof(float[32])), 2, 5};
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        if (!run(&t, rows[n].kernel, &parameters)) {
            TEST_FAIL("%s: %s", rows[n].kernel, t.fault.text);
        }
        if (rows[n].loads != t.counters.shared_load_requests ||
            rows[n].load_wavefronts != t.counters.shared_load_wavefronts ||
            rows[n].stores != t.counters.shared_store_requests) {
            TEST_FAIL("%s: %llu loads in %llu wavefronts, %llu stores; expected %u, %u, %u",
                      rows[n].kernel, (unsigned long long)t.counters.shared_load_requests,
                      (unsigned long long)t.counters.shared_load_wavefronts,
                      (unsigned long long)t.counters.shared_store_requests, rows[n].loads,
                      rows[n].load_wavefronts, rows[n].stores);
        }
    }
    launch_testing_close(&t);
}

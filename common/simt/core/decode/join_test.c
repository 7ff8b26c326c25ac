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

LAUNCH_TEST(join, counts_what_the_assembler_joins, JOINED_PTX) {
    struct {
        uint64_t out;
        int32_t n, m;
    } parameters = {launch_testing_upload(t, NULL, sizeof(float[32])), 2, 5};
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        /* Bounds only: what the kernels compute means nothing, and some read what nothing has
         * written. */
        if (!launch_testing_run(t, LAUNCH(.kernel = rows[n].kernel, .threads = {32}, .shared = 256,
                                          .parameters = &parameters, .bounds_only = true))) {
            TEST_FAIL("%s: %s", rows[n].kernel, t->fault.text);
        }
        if (rows[n].loads != t->counters.shared_load_requests ||
            rows[n].load_wavefronts != t->counters.shared_load_wavefronts ||
            rows[n].stores != t->counters.shared_store_requests) {
            TEST_FAIL("%s: %llu loads in %llu wavefronts, %llu stores; expected %u, %u, %u",
                      rows[n].kernel, (unsigned long long)t->counters.shared_load_requests,
                      (unsigned long long)t->counters.shared_load_wavefronts,
                      (unsigned long long)t->counters.shared_store_requests, rows[n].loads,
                      rows[n].load_wavefronts, rows[n].stores);
        }
    }
}

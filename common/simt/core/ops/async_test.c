/* Asynchronous copies, barriers of all kinds, grids that meet, and the heap of kernels. */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { THREADS = 64 };

/* Runs a kernel of 64 threads whose only result is an int a thread. @return the results or NULL */
static const int *run(struct launch_testing *t, const char *kernel, const void *parameters,
                      uint64_t out) {
    return launch_testing_block_clean(t, kernel, THREADS, parameters)
               ? launch_testing_result(t, out)
               : NULL;
}

/* As run(), for kernels with no other parameter than the results. */
static const int *run_plain(struct launch_testing *t, const char *kernel) {
    uint64_t out = launch_testing_upload(t, NULL, 96 * sizeof(int));
    return run(t, kernel, &out, out);
}

static void expect_fault(struct launch_testing *t, const char *kernel, uint32_t threads,
                         enum simt_fault_kind kind, const char *words) {
    uint64_t out = launch_testing_upload(t, NULL, 96 * sizeof(int));
    EXPECT_TRUE(!launch_testing_run(
        t, LAUNCH(.kernel = kernel, .threads = {threads}, .parameters = &out, .limit = 50000)));
    EXPECT_INT_EQ(kind, t->fault.kind);
    if (strstr(t->fault.text, words) == NULL) {
        TEST_FAIL("%s: no \"%s\" in: %s", kernel, words, t->fault.text);
    }
}

/* Byte i of thread t's 16 in tile n, as cp.async leaves it. */
static int copied(const unsigned char *in, const int *sizes, int n, int t, int i) {
    const unsigned char *from = in + 16 * t;
    switch (n) {
    case 0:
        return i < 4 ? from[i] : 1;
    case 1:
        return i < 8 ? 1 : from[i - 8 + 8];
    case 2:
        return from[i];
    case 3:
        return i < sizes[t] ? from[i] : 0;
    default:
        return t % 3 != 0 ? 0 : from[i];
    }
}

LAUNCH_TEST(async, copies_of_all_sizes, ASYNC_PTX) {
    unsigned char in[THREADS * 16];
    int sizes[THREADS];
    for (int i = 0; i < THREADS * 16; i++) {
        in[i] = (unsigned char)(i * 7 + 5);
        sizes[i / 16] = i / 16 * 5 % 17;
    }
    struct {
        uint64_t in, sizes, out;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, sizes, sizeof sizes),
                    launch_testing_upload(t, NULL, 5 * sizeof in)};
    const unsigned char *got = (const void *)run(t, "copies", &parameters, parameters.out);
    for (int i = 0; got != NULL && i < 5 * THREADS * 16; i++) {
        int thread = i / 16 % THREADS ^ 33;
        EXPECT_INT_EQ(copied(in, sizes, i / 1024, thread, i % 16), got[i]);
    }
}

LAUNCH_TEST(async, copies_in_a_pipeline, ASYNC_PTX) {
    enum { STEPS = 5 };
    int in[STEPS * THREADS];
    for (int i = 0; i < STEPS * THREADS; i++) {
        in[i] = i * i;
    }
    struct {
        uint64_t in, out;
        int steps;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, NULL, sizeof in), STEPS};
    const int *got = run(t, "pipelined", &parameters, parameters.out);
    for (int i = 0; got != NULL && i < STEPS * THREADS; i++) {
        EXPECT_INT_EQ(in[i / THREADS * THREADS + (i + 1) % THREADS], got[i]);
    }
    /* Whole lines of 128 bytes come in and go out: 4 sectors a warp. */
    EXPECT_INT_EQ(STEPS * 2 * 4, t->counters.global_load_sectors);
}

LAUNCH_TEST(async, copies_that_another_warp_reads_without_a_barrier_race, ASYNC_PTX) {
    int in[THREADS];
    for (int i = 0; i < THREADS; i++) {
        in[i] = i + 1;
    }
    struct {
        uint64_t in, out;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, NULL, sizeof in)};
    EXPECT_TRUE(!launch_testing_block(t, "copies_unseen", THREADS, &parameters));
    EXPECT_TRUE(t->fault.kind == SIMT_FAULT_SHARED_RACE ||
                t->fault.kind == SIMT_FAULT_UNINITIALISED);
}

LAUNCH_TEST(async, an_arrival_that_stands_for_copies, ASYNC_PTX) {
    int in[THREADS];
    for (int i = 0; i < THREADS; i++) {
        in[i] = 5 * i;
    }
    struct {
        uint64_t in, out;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, NULL, sizeof in)};
    const int *got = run(t, "copies_arrive", &parameters, parameters.out);
    for (int i = 0; got != NULL && i < THREADS; i++) {
        EXPECT_INT_EQ(in[63 - i], got[i]);
    }
}

LAUNCH_TEST(async, a_warp_that_produces_and_one_that_consumes, ASYNC_PTX) {
    enum { STEPS = 40 };
    int in[STEPS * 32];
    for (int i = 0; i < STEPS * 32; i++) {
        in[i] = 3 * i + 1;
    }
    struct {
        uint64_t in, out;
        int steps;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, NULL, sizeof in), STEPS};
    const int *got = run(t, "producer_consumer", &parameters, parameters.out);
    for (int i = 0; got != NULL && i < STEPS * 32; i++) {
        EXPECT_INT_EQ(in[i / 32 * 32 + 31 - i % 32], got[i]);
    }
}

LAUNCH_TEST(async, lanes_that_wait_for_a_lane_of_their_warp, ASYNC_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 32 * sizeof(int));
    if (launch_testing_block_clean(t, "lanes_wait", 32, &out)) {
        const int *got = launch_testing_result(t, out);
        for (int i = 0; i < 31; i++) {
            EXPECT_INT_EQ(1000 + i, got[i]);
        }
        EXPECT_INT_EQ(-1, got[31]);
    }
}

LAUNCH_TEST(async, what_an_mbarrier_counts, ASYNC_PTX) {
    /* Five arrivals a phase, four once one has dropped out. */
    static const unsigned want[11] = {5,    /* missing before the first arrival */
                                      4,    /* before two more */
                                      2,    /* before the one that drops out */
                                      0, 1, /* the phase is not over, then it is */
                                      1,    /* so says the state of the last arrival */
                                      4,    /* the next phase: four */
                                      1,    /* one left, with 48 bytes */
                                      0, 0, /* no arrival is missing, but bytes are */
                                      1};
    uint64_t out = launch_testing_upload(t, NULL, sizeof want);
    if (launch_testing_block_clean(t, "counting", 1, &out)) {
        const unsigned *got = launch_testing_result(t, out);
        for (int i = 0; i < 11; i++) {
            EXPECT_INT_EQ(want[i], got[i]);
        }
    }
}

LAUNCH_TEST(async, phases_of_the_cxx_barrier, ASYNC_PTX) {
    enum { STEPS = 6 };
    int values[2][THREADS];
    for (int i = 0; i < THREADS; i++) {
        values[0][i] = i;
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < THREADS; i++) {
            values[(step + 1) & 1][i] = values[step & 1][i] + values[step & 1][(i + 1) % THREADS];
        }
    }
    struct {
        uint64_t out;
        int steps;
    } parameters = {launch_testing_upload(t, NULL, THREADS * sizeof(int)), STEPS};
    const int *got = run(t, "phases", &parameters, parameters.out);
    for (int i = 0; got != NULL && i < THREADS; i++) {
        EXPECT_INT_EQ(values[STEPS & 1][i], got[i]);
    }
}

LAUNCH_TEST(async, misused_mbarriers, ASYNC_PTX) {
    expect_fault(t, "arrives_too_often", 32, SIMT_FAULT_BARRIER, "more often than it expects");
    expect_fault(t, "waits_for_ever", 64, SIMT_FAULT_ENDLESS, "without an end");
}

LAUNCH_TEST(async, barriers_that_count_and_vote, ASYNC_PTX) {
    uint64_t out;
    out = launch_testing_upload(t, NULL, 96 * sizeof(int));
    /* 96 threads; 75, so that the last warp is not full; and 64, of which none is number 70. */
    static const struct {
        uint32_t threads;
        int count, not_all, some;
    } blocks[] = {{96, 32, 0, 1}, {75, 25, 0, 1}, {64, 22, 1, 0}};
    for (size_t n = 0; n < 3; n++) {
        if (launch_testing_block_clean(t, "votes_of_a_block", blocks[n].threads, &out)) {
            const int *got = launch_testing_result(t, out);
            int want = blocks[n].count * 16 + 8 + blocks[n].not_all * 4 + blocks[n].some * 2;
            for (uint32_t i = 0; i < blocks[n].threads; i++) {
                EXPECT_INT_EQ(want, got[i]);
            }
        }
    }
}

LAUNCH_TEST(async, a_barrier_that_one_warp_does_not_wait_at, ASYNC_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 96 * sizeof(int));
    if (launch_testing_block_clean(t, "named", 96, &out)) {
        const int *got = launch_testing_result(t, out);
        for (int i = 0; i < 32; i++) {
            EXPECT_INT_EQ(1, got[i]);
            EXPECT_INT_EQ(3 * (31 - i), got[32 + i]);
            EXPECT_INT_EQ(2, got[64 + i]);
        }
    }
}

LAUNCH_TEST(async, a_barrier_reached_from_two_sides, ASYNC_PTX) {
    const int *got = run_plain(t, "from_two_sides");
    for (int i = 0; got != NULL && i < THREADS; i++) {
        int next = (i + 1) % THREADS;
        EXPECT_INT_EQ(i % 2 == 0 ? -next : 2 * next, got[i]);
    }
}

/* --- grids --- */

enum { BLOCKS = 7, GRID_THREADS = BLOCKS * THREADS, GRID_STEPS = 5 };

static bool run_grid(struct launch_testing *t, bool cooperative, uint64_t values) {
    struct {
        uint64_t values;
        int steps;
    } parameters = {values, GRID_STEPS};
    return launch_testing_run(t,
                              LAUNCH(.kernel = "grid_steps", .grid = {BLOCKS}, .threads = {THREADS},
                                     .parameters = &parameters, .cooperative = cooperative));
}

LAUNCH_TEST(async, a_grid_whose_blocks_meet, ASYNC_PTX) {
    static int values[2][GRID_THREADS];
    size_t used, used_after, total;
    for (int i = 0; i < GRID_THREADS; i++) {
        values[0][i] = i;
    }
    uint64_t device = launch_testing_upload(t, values, sizeof values);
    simt_memory_usage(t->memory, &used, &total);
    bool clean = run_grid(t, true, device);
    if (!clean) {
        TEST_FAIL("%s", t->fault.text);
    }
    simt_memory_usage(t->memory, &used_after, &total);
    EXPECT_INT_EQ(used, used_after);
    for (int step = 0; step < GRID_STEPS; step++) {
        for (int i = 0; i < GRID_THREADS; i++) {
            values[(step + 1) & 1][i] =
                values[step & 1][i] + values[step & 1][(i + 33) % GRID_THREADS];
        }
    }
    EXPECT_INT_EQ(
        0, memcmp(values[GRID_STEPS & 1],
                  (const int *)launch_testing_result(t, device) + (GRID_STEPS & 1) * GRID_THREADS,
                  sizeof values[0]));
    EXPECT_TRUE(!run_grid(t, false, device)); /* an ordinary launch has no workspace */
}

/* --- launches that begin before another ends --- */

LAUNCH_TEST(async, programmatic_dependent_launches_run_in_order, ASYNC_PTX) {
    enum { GRIDS = 3, COUNT = GRIDS * THREADS };
    static const char *const kernels[] = {"doubles_after_wait", "doubles_after_synchronize",
                                          "doubles_after_wait"};
    int values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = i - 7;
    }
    uint64_t out = launch_testing_upload(t, values, sizeof values);
    bool clean = true;
    for (size_t n = 0; n < sizeof kernels / sizeof *kernels; n++) {
        clean = clean && launch_testing_run_clean(t, LAUNCH(.kernel = kernels[n], .grid = {GRIDS},
                                                            .threads = {THREADS},
                                                            .parameters = &out, .host_threads = 2));
    }
    const int *got = launch_testing_result(t, out);
    for (int i = 0; clean && i < COUNT; i++) {
        EXPECT_INT_EQ(8 * (i - 7), got[i]);
    }
    EXPECT_TRUE(clean);
}

/* --- the heap --- */

LAUNCH_TEST(async, malloc_and_free_in_a_kernel, ASYNC_PTX) {
    enum { LENGTH = 10, HEAP_BLOCKS = 3 };
    struct {
        uint64_t out;
        int length;
    } parameters = {launch_testing_upload(t, NULL, HEAP_BLOCKS * THREADS * sizeof(int)), LENGTH};
    if (launch_testing_run_clean(t, LAUNCH(.kernel = "heap", .grid = {HEAP_BLOCKS},
                                           .threads = {THREADS}, .parameters = &parameters,
                                           .host_threads = 4))) {
        const int *got = launch_testing_result(t, parameters.out);
        for (int i = 0; i < HEAP_BLOCKS * THREADS; i++) {
            EXPECT_INT_EQ(LENGTH * (LENGTH - 1) / 2 + LENGTH * i, got[i]);
        }
    }
    uint64_t out = launch_testing_upload(t, NULL, 3 * sizeof(int));
    if (launch_testing_block_clean(t, "heap_is_full", 1, &out)) {
        const int *got = launch_testing_result(t, out);
        EXPECT_INT_EQ(1, got[0]);
        EXPECT_INT_EQ(1, got[1]);
        EXPECT_INT_EQ(1, got[2]);
    }
}

LAUNCH_TEST(async, misused_heap, ASYNC_PTX) {
    expect_fault(t, "frees_twice", 1, SIMT_FAULT_FREED, "freed before");
    expect_fault(t, "uses_what_it_freed", 1, SIMT_FAULT_FREED, "freed");
}

/* How long blocks take that wait for blocks of their launch: what the model of time learns of it.
 */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { BLOCKS = 32, THREADS = 64, STEPS = 1000, L1_LATENCY = 40, L2_LATENCY = 260, WORDS = 32768 };

/* A multiply-add waits four cycles for the one before it; nvcc unrolls the loop by four, and each
 * turn has a branch. Looking at a flag takes a load. */
enum { WORK = 4 * STEPS, LONGEST_WORK = 6 * STEPS, HOP = 2 * L2_LATENCY + 100 };

/* A GPU that is slow in nothing but issue and shared memory. */
static double busiest(const void *gpu, const struct simt_counters *c) {
    double issue = (double)c->machine_instructions / 4;
    double wavefronts = (double)c->shared_store_wavefronts + (double)c->shared_load_wavefronts;
    (void)gpu;
    return issue > wavefronts ? issue : wavefronts;
}

static const struct simt_alone alone = {
    .cycles = busiest, .l1_latency = L1_LATENCY, .l2_latency = L2_LATENCY};

/* What a launch leaves. */
struct outcome {
    uint64_t waited;
    struct simt_counters counters;
};

static struct outcome play(const char *kernel, const struct testing_launch *shape) {
    static const uint32_t zeros[WORDS];
    struct launch_testing t;
    struct outcome outcome = {.waited = UINT64_MAX};
    struct {
        uint64_t flags, data;
        int steps;
    } parameters = {.steps = STEPS};
    if (launch_testing_open(&t, WAITING_PTX)) {
        struct testing_launch launch = *shape;
        parameters.flags = launch_testing_upload(&t, zeros, sizeof zeros);
        parameters.data = launch_testing_upload(&t, zeros, sizeof zeros);
        launch.kernel = kernel;
        launch.parameters = &parameters;
        launch.waited = &outcome.waited;
        launch_testing_run_clean(&t, &launch);
        outcome.counters = t.counters;
    }
    launch_testing_close(&t);
    return outcome;
}

static uint64_t waited(const char *kernel, uint32_t blocks, uint32_t threads) {
    return play(kernel, LAUNCH(.grid = {blocks}, .threads = {threads}, .alone = &alone,
                               .shared = 4096, .bounds_only = true))
        .waited;
}

static void expect_between(const char *kernel, uint64_t least, uint64_t found, uint64_t most) {
    if (found < least || found > most) {
        TEST_FAIL("%s: %llu cycles, wanted %llu to %llu", kernel, (unsigned long long)found,
                  (unsigned long long)least, (unsigned long long)most);
    }
}

/* `times` blocks one behind the other. */
static void expect_chain(const char *kernel, uint32_t blocks, uint32_t threads, uint64_t times) {
    expect_between(kernel, times * WORK, waited(kernel, blocks, threads),
                   times * (LONGEST_WORK + HOP));
}

C_TEST(block_clock, a_chain_of_blocks_takes_as_long_as_all_of_them) {
    expect_chain("in_a_chain", BLOCKS, THREADS, BLOCKS);
    expect_chain("in_a_chain", 2, THREADS, 2);
}

/* Of 32 warps four issue at a time: eight cycles for each multiply-add, and as many for the loop.
 */
C_TEST(block_clock, many_warps_of_a_block_share_its_units) {
    expect_between("in_a_chain", (uint64_t)BLOCKS * 8 * STEPS, waited("in_a_chain", BLOCKS, 1024),
                   (uint64_t)BLOCKS * (16 * STEPS + HOP));
}

C_TEST(block_clock, however_the_flag_is_stored_and_looked_at) {
    expect_chain("looks_once", BLOCKS, THREADS, BLOCKS);
    expect_chain("asks_by_atomics", BLOCKS, THREADS, BLOCKS);
    expect_chain("asks_by_counting", BLOCKS, THREADS, BLOCKS);
}

C_TEST(block_clock, the_whole_block_waits_whichever_warp_looks) {
    expect_chain("tells_another_warp", BLOCKS, THREADS, BLOCKS);
}

C_TEST(block_clock, a_flag_that_is_stored_again_is_not_older) {
    expect_chain("stored_again", 2 * BLOCKS, THREADS, BLOCKS);
}

/* Shared memory takes each store 32 times: half as long as the work before, or as long. */
C_TEST(block_clock, what_comes_behind_is_not_hidden_by_what_came_before) {
    uint64_t found = waited("busy_before", BLOCKS, 32);
    expect_between("busy_before", WORK + BLOCKS * (STEPS / 8 * 31), found,
                   LONGEST_WORK + BLOCKS * (STEPS / 8 * 32 + HOP));
}

C_TEST(block_clock, blocks_apart_do_not_wait) {
    EXPECT_INT_EQ(0, waited("apart", BLOCKS, THREADS));
    EXPECT_INT_EQ(0, waited("in_a_chain", 1, THREADS));
}

/* All have worked at the same time when the last one adds: one work, and 32 sums that wait for
 * loads. */
C_TEST(block_clock, a_sum_by_the_last_block_is_not_charged_for_the_others) {
    expect_between("the_last_one_adds", WORK, waited("the_last_one_adds", BLOCKS, THREADS),
                   LONGEST_WORK + HOP + BLOCKS * L2_LATENCY);
}

/* Blocks of one part work at the same time, also where a block finds that others of its own part
 * have been counted. */
C_TEST(block_clock, blocks_that_count_do_not_wait_for_each_other) {
    expect_between("parts_by_a_counter", BLOCKS / 4 * WORK,
                   waited("parts_by_a_counter", BLOCKS, THREADS),
                   BLOCKS / 4 * (LONGEST_WORK + HOP));
}

/* Places of a list may be taken in any order. */
C_TEST(block_clock, who_only_counts_does_not_wait) {
    EXPECT_INT_EQ(0, waited("takes_places", BLOCKS, THREADS));
}

/* Of blocks that take turns only the turns follow each other. */
C_TEST(block_clock, turns_follow_each_other_but_not_the_work_before) {
    expect_between("add_in_turn", WORK + BLOCKS * L2_LATENCY,
                   waited("add_in_turn", BLOCKS, THREADS), LONGEST_WORK + BLOCKS * 2 * HOP);
}

/* Full checks, several host threads, and samples of them do not change it. */
C_TEST(block_clock, nothing_else_decides_about_it) {
    struct testing_launch launch = {.grid = {BLOCKS}, .threads = {THREADS}, .alone = &alone};
    struct outcome full = play("in_a_chain", &launch);
    EXPECT_TRUE(full.waited > 0);
    for (int threads = 1; threads <= 4; threads *= 2) {
        launch.host_threads = threads;
        EXPECT_INT_EQ(full.waited, play("in_a_chain", &launch).waited);
    }
    launch.bounds_only = true;
    EXPECT_INT_EQ(full.waited, play("in_a_chain", &launch).waited);
    launch.bounds_only = false;
    launch.sampled = true;
    EXPECT_INT_EQ(full.waited, play("in_a_chain", &launch).waited);
}

/* What is counted is counted as without. */
C_TEST(block_clock, counts_stay_as_they_are) {
    static const char *const kernels[] = {"apart", "in_a_chain", "the_last_one_adds", "add_in_turn",
                                          "takes_places"};
    for (size_t n = 0; n < sizeof kernels / sizeof *kernels; n++) {
        struct testing_launch launch = {
            .grid = {BLOCKS}, .threads = {THREADS}, .bounds_only = true};
        struct outcome without = play(kernels[n], &launch);
        launch.alone = &alone;
        struct outcome with = play(kernels[n], &launch);
        EXPECT_TRUE(memcmp(&without.counters, &with.counters, sizeof with.counters) == 0);
    }
}

/* Those of a cooperative launch take turns: what they do meanwhile is counted. */
C_TEST(block_clock, cooperative_launches_have_none) {
    EXPECT_INT_EQ(0, play("in_a_chain", LAUNCH(.grid = {4}, .threads = {THREADS}, .alone = &alone,
                                               .cooperative = true))
                         .waited);
}

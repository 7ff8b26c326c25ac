/* What a launch finds, counts and leaves in memory does not depend on the number of host threads.
 */
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { BLOCKS = 48, REPEATS = 20, STEPS = 400, BYTES = 4 * BLOCKS };

/* What came of a launch. */
struct outcome {
    char *message;
    unsigned char first[BYTES], second[BYTES]; /* the two buffers */
    struct simt_counters counters;
};

/* Runs KERNEL(buffer, out, steps). @param zeros the first buffer holds zeros; else nothing wrote it
 */
static bool play(const char *kernel, bool zeros, int host_threads, struct outcome *outcome) {
    static const unsigned char nothing[BYTES];
    struct launch_testing t;
    *outcome = (struct outcome){.message = NULL};
    if (!launch_testing_open(&t, TIMING_PTX)) {
        return false;
    }
    struct {
        uint64_t buffer, out;
        int steps;
    } parameters = {launch_testing_upload(&t, zeros ? nothing : NULL, BYTES),
                    launch_testing_upload(&t, nothing, BYTES), STEPS};
    if (launch_testing_run(&t, LAUNCH(.kernel = kernel, .grid = {BLOCKS}, .threads = {32},
                                      .parameters = &parameters, .host_threads = host_threads))) {
        memcpy(outcome->first, launch_testing_result(&t, parameters.buffer), BYTES);
        memcpy(outcome->second, launch_testing_result(&t, parameters.out), BYTES);
    }
    outcome->message = launch_testing_message(&t.fault);
    outcome->counters = t.counters;
    launch_testing_close(&t);
    return outcome->message != NULL;
}

static bool are_equal(const struct outcome *a, const struct outcome *b) {
    return strcmp(a->message, b->message) == 0 && memcmp(a->first, b->first, BYTES) == 0 &&
           memcmp(a->second, b->second, BYTES) == 0 &&
           memcmp(&a->counters, &b->counters, sizeof a->counters) == 0;
}

/* Always the same, and what is wanted. */
static void expect_always(const char *kernel, bool zeros, const char *words) {
    struct outcome first, again;
    if (!play(kernel, zeros, 1, &first)) {
        return;
    }
    if (strstr(first.message, words) == NULL) {
        TEST_FAIL("%s: \"%s\" is not in\n%s", kernel, words, first.message);
    }
    for (int host_threads = 1; host_threads <= 8; host_threads *= 2) {
        for (int n = 0; n < REPEATS && !test_has_failed(); n++) {
            if (play(kernel, zeros, host_threads, &again) && !are_equal(&first, &again)) {
                TEST_FAIL("%s with %d host threads: not as with one, where it was\n%s\nbut\n%s",
                          kernel, host_threads, first.message, again.message);
            }
            free(again.message);
        }
    }
    free(first.message);
}

C_TEST(host_threads, blocks_that_read_what_others_write) {
    expect_always("reads_what_a_later_block_writes", false,
                  "uninitialised: thread (0,0,0) of block (0,0,0)");
    expect_always("reads_what_a_later_block_writes", true, "of block (0,0,0) read at ");
    expect_always("reads_what_an_earlier_block_writes", true,
                  "race between blocks: thread (0,0,0) of block (8,0,0)");
}

C_TEST(host_threads, blocks_that_write_the_same) {
    expect_always("sum_of_all_blocks", true, "block (1,0,0) reads 4 bytes");
    expect_always("sum_of_all_blocks", false, "uninitialised: thread (0,0,0) of block (0,0,0)");
}

C_TEST(host_threads, blocks_whose_way_depends_on_others) {
    expect_always("index_of_another_block", true, "race between blocks");
    expect_always("flag_decides", true, "block (3,0,0) wrote");
}

C_TEST(host_threads, the_lowest_block_with_a_mistake_wins) {
    expect_always("mistake_before_a_race", true, "out of bounds: thread (0,0,0) of block (5,0,0)");
}

C_TEST(host_threads, results_that_depend_on_timing) {
    expect_always("reads_a_growing_sum", true, "no fault");
    expect_always("all_set_the_same_flag", true, "no fault");
}

C_TEST(host_threads, blocks_in_no_ones_way) {
    expect_always("bytes_side_by_side", false, "no fault");
    expect_always("bins_of_all_blocks", true, "no fault");
}

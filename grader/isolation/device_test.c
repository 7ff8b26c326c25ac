/* The functions of common/device in a graded test: they reach the worker in use. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/bench.h"
#include "common/bench/device/device_bench.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/isolation/overheads.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "grader/isolation/test_calls.h"
#include "grader/isolation/worker_process.h"

const struct remote_program remote_program = {
    {"device_test_worker", "device_test_baseline"}, REMOTE_MADE_UP_GPU, NULL};

C_TEST(device, opening_it_again_starts_anew) {
    struct error error = {0};
    struct device_properties p;
    void *memory = NULL;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(device_open(&error));
        EXPECT_INT_EQ(0, device_traffic().allocations);
        ASSERT_OK(device_alloc(&memory, 100, &error));
        EXPECT_TRUE(memory != NULL);
        EXPECT_INT_EQ(1, device_traffic().allocations);
    }
    ASSERT_OK(device_properties(&p, &error));
    EXPECT_STR_EQ("made up", p.name);
    device_free(memory);
    device_free(NULL);
}

/* More than goes through the arena at once. */
C_TEST(device, large_copies_arrive_whole) {
    enum { BYTES = SIDE_STAGING + 1003 };
    struct error error = {0};
    unsigned char *sent = malloc(BYTES), *got = calloc(1, BYTES);
    void *first = NULL, *second = NULL;
    ASSERT_TRUE(sent != NULL && got != NULL);
    for (size_t i = 0; i < BYTES; i++) {
        sent[i] = (unsigned char)(i * 2654435761u >> 24);
    }
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&first, BYTES, &error));
    ASSERT_OK(device_alloc(&second, BYTES, &error));
    EXPECT_OK(device_write(first, sent, BYTES, NULL, &error));
    EXPECT_OK(device_copy(second, first, BYTES, NULL, &error));
    EXPECT_OK(device_set(first, 7, BYTES, NULL, &error));
    EXPECT_OK(device_read(got, second, BYTES, NULL, &error));
    EXPECT_TRUE(memcmp(sent, got, BYTES) == 0);
    EXPECT_OK(device_read(got, first, BYTES, NULL, &error));
    EXPECT_TRUE(got[0] == 7 && got[BYTES - 1] == 7);
    free(sent);
    free(got);
}

/* A GPU that says of itself what is not so; the baseline's tells the truth. */
C_TEST(device, properties_are_checked) {
    static const char line[] = "your code changed what the GPU says of itself: this is no made up";
    struct error error = {0};
    setenv("WRONG_GPU", "real", 1);
    EXPECT_STATUS(STATUS_MISMATCH, device_open(&error));
    EXPECT_STR_EQ(line, error.message);
    setenv("WRONG_GPU", "peak", 1);
    EXPECT_OK(device_open(&error)); /* nothing to compare with yet */
    remote_use(REMOTE_BASELINE);
    EXPECT_STATUS(STATUS_MISMATCH, remote_open_device(&error));
    EXPECT_STR_EQ(line, error.message);
    setenv("WRONG_GPU", "short", 1);
    EXPECT_STATUS(STATUS_MISMATCH, device_open(&error));
    EXPECT_STR_EQ("the worker's device has no properties", error.message);
    unsetenv("WRONG_GPU");
    EXPECT_OK(device_open(&error));
    remote_use(REMOTE_BASELINE);
    EXPECT_OK(remote_open_device(&error));
}

C_TEST(device, times_are_numbers) {
    static const double no_times[] = {(double)NAN, (double)INFINITY, -1.0};
    struct error error = {0};
    struct made_up_call c = {.ms = 0.5};
    double ms = 0.0;
    ASSERT_OK(device_open(&error));
    EXPECT_OK(remote_call_timed("nothing", &c, sizeof c, NULL, &ms, &error));
    EXPECT_NEAR(0.5, ms, 0.0); /* modelled: the worker's */
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        c.ms = no_times[i];
        EXPECT_STATUS(STATUS_MISMATCH,
                      remote_call_timed("nothing", &c, sizeof c, NULL, &ms, &error));
        EXPECT_STR_EQ("the worker's clock gave no time", error.message);
    }
}

C_TEST(device, benches_and_launches_come_back) {
    const struct device_bench_options options = {.min_runs = 1, .max_runs = 1};
    struct bench_timing timing;
    struct error error = {0};
    struct made_up_call c = {.ms = 0.25, .launches = 3};
    size_t launches = 0;
    ASSERT_OK(device_open(&error));
    EXPECT_OK(remote_bench(&options, "nothing", &c, sizeof c, NULL, &timing, &error));
    EXPECT_TRUE(timing.median_ms >= 0.25); /* and more, where a busy machine makes messages slow */
    EXPECT_OK(remote_count_launches("nothing", &c, sizeof c, NULL, &launches, &error));
    EXPECT_INT_EQ(3, launches);
    EXPECT_STATUS(STATUS_INTERRUPTED,
                  remote_bench(&options, "crash", &c, sizeof c, NULL, &timing, &error));
    EXPECT_TRUE(isinf(timing.median_ms));
}

static double benched(enum remote_side side, double told_ms, unsigned took_us, int runs) {
    const struct device_bench_options options = {.min_runs = runs, .max_runs = runs};
    struct made_up_call c = {.ms = told_ms, .took_us = took_us};
    struct bench_timing timing;
    struct error error = {0};
    remote_use(side);
    EXPECT_OK(remote_bench(&options, "nothing", &c, sizeof c, NULL, &timing, &error));
    return timing.min_ms;
}

/* The baseline's clocks differ by 3 ms and what messages take, whatever it tells: so may another's.
   Only a machine that makes every fourth of its calls 30 ms late would let the lie pass. */
C_TEST(device, a_benchs_time_is_checked_by_the_clock_outside) {
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    ASSERT_OK(remote_open_side(REMOTE_BASELINE, &error));
    EXPECT_NEAR(1.0, benched(REMOTE_BASELINE, 1.0, 4000, 8), 0.0);
    EXPECT_NEAR(2.0, benched(REMOTE_BASELINE, 2.0, 5000, 8), 0.0);
    double honest = benched(REMOTE_SUBJECT, 10.0, 13000, 8);
    double liar = benched(REMOTE_SUBJECT, 1.0, 60000, 3);
    EXPECT_TRUE(honest >= 10.0 && honest < liar);
    EXPECT_TRUE(liar > 27.0);
}

/* Three of four stay below what is allowed, and one that was held up changes nothing. Of few the
   longest counts. */
C_TEST(device, overheads_allow_what_messages_take) {
    struct overheads o = {.count = 0};
    EXPECT_NEAR(REMOTE_MESSAGE_MS, overheads_allow(&o), 0.0);
    overheads_add(&o, 0.3);
    EXPECT_NEAR(REMOTE_MESSAGE_MS, overheads_allow(&o), 0.0);
    overheads_add(&o, 0.2);
    overheads_add(&o, 0.25);
    EXPECT_NEAR(0.4, overheads_allow(&o), 1e-12);
    o = (struct overheads){.count = 0};
    for (int i = 0; i < 8; i++) {
        overheads_add(&o, i == 3 ? 50.0 : 0.05 + 0.01 * i);
    }
    EXPECT_NEAR(0.22, overheads_allow(&o), 1e-12);
    for (int i = 0; i < 3 * OVERHEADS; i++) {
        overheads_add(&o, 0.07);
    }
    EXPECT_NEAR(0.17, overheads_allow(&o), 1e-12);
}

/* The baseline's worker is asked when the subject's has worked, and then not again. */
C_TEST(device, what_the_subject_left_is_waited_for) {
    struct error error = {0};
    struct made_up_call c = {0};
    ASSERT_OK(device_open(&error));
    ASSERT_OK(remote_open_side(REMOTE_BASELINE, &error));
    EXPECT_INT_EQ(0, device_traffic().releases);
    for (int i = 1; i < 4; i++) {
        remote_use(REMOTE_SUBJECT);
        EXPECT_OK(remote_call("nothing", &c, sizeof c, &error));
        EXPECT_INT_EQ(0, device_traffic().releases);
        remote_use(REMOTE_BASELINE);
        EXPECT_OK(remote_call("nothing", &c, sizeof c, &error));
        EXPECT_INT_EQ(i, device_traffic().releases);
    }
}

/* Cleaning up after a crash neither fails nor starts anything. */
C_TEST(device, a_lost_worker_stays_lost) {
    struct error error = {0};
    struct made_up_call c = {0};
    void *memory = NULL;
    char byte = 0;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&memory, 1, &error));
    EXPECT_STATUS(STATUS_INTERRUPTED, remote_call("crash", &c, sizeof c, &error));
    EXPECT_STATUS(STATUS_INTERRUPTED, device_write(memory, &byte, 1, NULL, &error));
    EXPECT_STATUS(STATUS_INTERRUPTED, device_read(&byte, memory, 1, NULL, &error));
    EXPECT_TRUE(isnan(device_now()));
    EXPECT_INT_EQ(0, device_traffic().allocations);
    device_free(memory);
    EXPECT_TRUE(!remote_alive());
}

C_TEST(device, events_stay_in_the_worker) {
    device_event event;
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    EXPECT_STATUS(STATUS_UNSUPPORTED, device_event_create(&event, &error));
    EXPECT_STR_EQ("the grader times in the worker", error.message);
}

/* Cases measured in rounds whose times are made up. */
#include "grader/harness/rounds_speedup.h"

#include <math.h>

#include "common/testing/testing.h"
#include "grader/thresholds.h"

/* Times of the rounds to come; the last ones are repeated. */
struct script {
    const struct round_times *times;
    int count;
    int called;
};

static struct round_times next_round(void *argument, int number) {
    struct script *script = argument;
    EXPECT_INT_EQ(script->called, number);
    script->called++;
    return script->times[number < script->count ? number : script->count - 1];
}

static struct speedup kernel_of_lab_01(void) {
    return (struct speedup){.lab = "01_cpu_matmul",
                            .subject = "labs",
                            .measure = "kernel",
                            .margin = 1.0,
                            .least = {.limit = "made-up units"}};
}

static double required(void) {
    return threshold_shares(threshold_find("01_cpu_matmul", "kernel"), false).pass;
}

C_TEST(rounds_speedup, the_fastest_of_each_side_is_the_result) {
    const struct round_times times[] = {{1.2, INFINITY, 1.5, 0, 0, 0},
                                        {1.0, 40.0, 1.4, 0, 0, 0},
                                        {1.1, 30.0, 1.3, 0, 0, 0},
                                        {1.3, INFINITY, 1.6, 0, 0, 0}};
    struct script script = {times, 4, 0};
    struct speedup speedup = kernel_of_lab_01();
    struct rounds rounds = {0};
    rounds_measure(&rounds, &speedup, next_round, &script);
    EXPECT_TRUE(script.called >= ROUNDS_LEAST);
    EXPECT_NEAR(30.0, speedup.baseline_ms, 0.0);
    EXPECT_NEAR(1.3, speedup.subject_ms, 0.0);
    EXPECT_NEAR(1.0, speedup.least.ideal_ms, 0.0);
    rounds_check(&rounds, &speedup, __FILE__, __LINE__); /* 77% of the limit passes */
}

C_TEST(rounds_speedup, more_rounds_follow_where_the_verdict_is_close) {
    const double ms = 1.0 / (0.98 * required());
    const struct round_times times[] = {{1.0, 40.0, ms, 0, 0, 0}};
    struct script script = {times, 1, 0};
    struct speedup speedup = kernel_of_lab_01();
    struct rounds rounds = {0};
    rounds_measure(&rounds, &speedup, next_round, &script);
    EXPECT_INT_EQ(ROUNDS_CLOSE, script.called);
    EXPECT_INT_EQ(VERDICT_MISSED, rounds_verdict(&rounds, required()));
}

/* A thread has all of one CPU and half of two, so the same code reaches about twice the share. */
C_TEST(rounds_speedup, one_cpu_has_shares_of_its_own) {
    const double of_two = required();
    struct speedup speedup = kernel_of_lab_01();
    speedup.baseline_ms = 1000.0;
    speedup.least.ideal_ms = 1.0;
    speedup.subject_ms = 1.0 / (1.5 * of_two);
    EXPECT_TRUE(speedup_reached(&speedup));
    speedup.one_cpu = true;
    EXPECT_TRUE(!speedup_reached(&speedup));
    speedup.subject_ms = 1.0 / (2.0 * of_two);
    EXPECT_TRUE(speedup_reached(&speedup));
}

/* Even and odd rounds are 8% apart, and the share misses by 4%. */
C_TEST(rounds_speedup, a_miss_by_less_than_the_noise_passes) {
    const double ms = 1.04 / required();
    const struct round_times times[] = {{1.0, 40.0, ms, 0, 0, 0},
                                        {1.0, 40.0, 1.08 * ms, 0, 0, 0},
                                        {1.0, 40.0, ms, 0, 0, 0},
                                        {1.0, 40.0, 1.08 * ms, 0, 0, 0},
                                        {1.0, 40.0, 1.08 * ms, 0, 0, 0}};
    struct script script = {times, 5, 0};
    struct speedup speedup = kernel_of_lab_01();
    struct rounds rounds = {0};
    rounds_measure(&rounds, &speedup, next_round, &script);
    EXPECT_INT_EQ(VERDICT_IN_NOISE, rounds_verdict(&rounds, required()));
    EXPECT_TRUE(!speedup_reached(&speedup)); /* 4% are more than NOISE */
    rounds_check(&rounds, &speedup, __FILE__, __LINE__);
}

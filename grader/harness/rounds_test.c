#include "grader/harness/rounds.h"

#include <math.h>

#include "common/testing/testing.h"

static const struct steps SHARES = {0.2, 0.4, 0.6};

/* Adds rounds of which nothing changes. */
static void add_equal(struct rounds *rounds, int count, double ideal_ms, double subject_ms) {
    for (int i = 0; i < count; i++) {
        rounds_add(rounds, ideal_ms, subject_ms);
    }
}

/* @return rounds until it is settled; round i takes ms(i) */
static int until_settled(double ideal_ms, double (*ms)(int)) {
    struct rounds rounds = {0};
    while (!rounds_settled(&rounds, &SHARES, 1.0)) {
        rounds_add(&rounds, ideal_ms, ms(rounds.count));
    }
    return rounds.count;
}

C_TEST(rounds, the_fastest_of_all_counts_on_both_sides) {
    struct rounds rounds = {0};
    EXPECT_TRUE(rounds_share(&rounds) == 0.0 && isinf(rounds_subject_ms(&rounds)));
    rounds_add(&rounds, 2.0, 9.0);
    rounds_add(&rounds, 1.0, 8.0);
    rounds_add(&rounds, 3.0, 4.0);
    EXPECT_NEAR(1.0, rounds_ideal_ms(&rounds), 0.0);
    EXPECT_NEAR(4.0, rounds_subject_ms(&rounds), 0.0);
    EXPECT_NEAR(0.25, rounds_share(&rounds), 0.0);
}

C_TEST(rounds, noise_is_how_far_even_and_odd_rounds_lie_apart) {
    struct rounds rounds = {0};
    const double ideal_ms[] = {1.00, 1.03, 1.5, 1.02}, subject_ms[] = {4.0, 9.0, 5.0, 4.2};
    for (int i = 0; i < 4; i++) {
        EXPECT_NEAR(ROUNDS_NOISE_MOST, rounds_noise(&rounds), 0.0); /* too few rounds */
        rounds_add(&rounds, ideal_ms[i], subject_ms[i]);
    }
    EXPECT_NEAR(0.02 + 0.05, rounds_noise(&rounds), 1e-12);
}

C_TEST(rounds, no_more_noise_is_believed_than_keeps_a_starter_red) {
    struct rounds rounds = {0};
    add_equal(&rounds, 3, 1.0, 10.0);
    rounds_add(&rounds, 1.0, 2.0);
    EXPECT_NEAR(ROUNDS_NOISE_MOST, rounds_noise(&rounds), 0.0);
    EXPECT_TRUE(!rounds_reach(&rounds, 1.0)); /* half of what is required */
}

C_TEST(rounds, a_miss_within_noise_passes_and_is_marked) {
    struct rounds rounds = {0};
    for (int i = 0; i < 4; i++) {
        rounds_add(&rounds, 1.0, i % 2 == 0 ? 5.0 : 5.5);
    }
    EXPECT_TRUE(rounds_reach(&rounds, 0.19) && !rounds_marked(&rounds, 0.19));
    EXPECT_TRUE(rounds_reach(&rounds, 0.215) && rounds_marked(&rounds, 0.215)); /* 7% more */
    EXPECT_TRUE(!rounds_reach(&rounds, 0.225) && !rounds_marked(&rounds, 0.225));
}

static double fast(int round) {
    (void)round;
    return 1.5;
}

static double slow(int round) {
    (void)round;
    return 10.0;
}

/* Other work on the machine ends after six rounds. */
static double disturbed(int round) {
    return round < 6 ? 10.0 : 2.0;
}

static double ever_better(int round) {
    return 100.0 * pow(0.95, round);
}

C_TEST(rounds, the_highest_step_is_certain_soon) {
    EXPECT_INT_EQ(ROUNDS_LEAST, until_settled(1.0, fast));
}

C_TEST(rounds, a_missed_step_needs_patience) {
    EXPECT_INT_EQ(ROUNDS_PATIENT, until_settled(1.0, slow));
}

C_TEST(rounds, an_improvement_asks_for_as_many_rounds_again) {
    EXPECT_INT_EQ(14, until_settled(1.0, disturbed));
}

C_TEST(rounds, there_is_an_end) {
    EXPECT_INT_EQ(ROUNDS_MOST, until_settled(1.0, ever_better));
}

C_TEST(rounds, without_good_and_gold_a_pass_is_certain_soon) {
    const struct steps pass = {0.2, 0.0, 0.0};
    struct rounds rounds = {0};
    add_equal(&rounds, ROUNDS_LEAST, 1.0, 4.5);
    EXPECT_TRUE(rounds_settled(&rounds, &pass, 1.0));
    EXPECT_TRUE(!rounds_settled(&rounds, &pass, 1.25));
}

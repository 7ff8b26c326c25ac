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
    EXPECT_INT_EQ(VERDICT_MISSED, rounds_verdict(&rounds, 1.0)); /* half of what is required */
}

C_TEST(rounds, a_miss_within_noise_passes_and_is_marked) {
    struct rounds rounds = {0};
    for (int i = 0; i < 4; i++) {
        rounds_add(&rounds, 1.0, i % 2 == 0 ? 5.0 : 5.5);
    }
    EXPECT_INT_EQ(VERDICT_REACHED, rounds_verdict(&rounds, 0.19));
    EXPECT_INT_EQ(VERDICT_IN_NOISE, rounds_verdict(&rounds, 0.215)); /* 7% more */
    EXPECT_INT_EQ(VERDICT_MISSED, rounds_verdict(&rounds, 0.225));
}

/* The share is 0.2; compared with the mean round's limit it would be 0.6. */
C_TEST(rounds, a_miss_beside_much_other_work_is_no_verdict) {
    struct rounds rounds = {0};
    EXPECT_NEAR(1.0, rounds_slowdown(&rounds), 0.0);
    for (int i = 0; i < 4; i++) {
        rounds_add(&rounds, i < 2 ? 1.0 : 5.0, 5.0);
    }
    EXPECT_NEAR(3.0, rounds_slowdown(&rounds), 1e-12);
    EXPECT_INT_EQ(VERDICT_REACHED, rounds_verdict(&rounds, 0.19));
    EXPECT_INT_EQ(VERDICT_TOO_BUSY, rounds_verdict(&rounds, 0.59));
    EXPECT_INT_EQ(VERDICT_MISSED, rounds_verdict(&rounds, 0.61));
}

C_TEST(rounds, a_little_other_work_is_no_excuse) {
    struct rounds rounds = {0};
    for (int i = 0; i < 4; i++) {
        rounds_add(&rounds, i < 2 ? 1.0 : 1.2, 5.0);
    }
    EXPECT_NEAR(1.1, rounds_slowdown(&rounds), 1e-12);
    EXPECT_INT_EQ(VERDICT_MISSED, rounds_verdict(&rounds, 0.21));
}

C_TEST(rounds, a_share_above_the_limit_is_no_verdict) {
    struct rounds rounds = {0};
    add_equal(&rounds, 4, 1.2, 1.0);
    EXPECT_INT_EQ(VERDICT_REACHED, rounds_verdict(&rounds, 0.6));
    add_equal(&rounds, 4, 1.2, 0.9);
    EXPECT_INT_EQ(VERDICT_TOO_BUSY, rounds_verdict(&rounds, 0.6));
}

/* By the clock 3.4 times the limit, as seen beside 15 programs on two cores. */
C_TEST(rounds, where_probes_waited_their_time_on_a_processor_counts) {
    struct rounds rounds = {.ran_ms = 0.9};
    add_equal(&rounds, 4, 3.4, 1.0);
    rounds_add_ran(&rounds, 1.1);
    EXPECT_TRUE(rounds_probes_waited(&rounds));
    EXPECT_NEAR(0.9, rounds_share(&rounds), 1e-12);
    EXPECT_INT_EQ(VERDICT_REACHED, rounds_verdict(&rounds, 0.75));
    rounds_add_ran(&rounds, 0.5);
    EXPECT_NEAR(0.5, rounds_share(&rounds), 1e-12);
    EXPECT_INT_EQ(VERDICT_TOO_BUSY, rounds_verdict(&rounds, 0.75));
    rounds.ran_ms = 1.3; /* even so: nobody is faster than that */
    EXPECT_INT_EQ(VERDICT_TOO_BUSY, rounds_verdict(&rounds, 0.75));
}

/* It would make the limit of a quiet machine a little harder. */
C_TEST(rounds, elsewhere_it_does_not) {
    struct rounds rounds = {.ran_ms = 0.5};
    add_equal(&rounds, 4, 1.0, 1.1);
    EXPECT_TRUE(!rounds_probes_waited(&rounds));
    EXPECT_NEAR(1.0 / 1.1, rounds_share(&rounds), 1e-12);
}

/* Threads of a submission that keep the CPUs busy between its calls gain nothing. */
C_TEST(rounds, a_subject_that_slows_the_probes_gets_no_verdict) {
    struct rounds rounds = {.before_ms = 1.0};
    EXPECT_NEAR(1.0, rounds_slowdown(&rounds), 0.0);
    add_equal(&rounds, 4, 3.0, 10.0);
    EXPECT_NEAR(0.1, rounds_share(&rounds), 1e-12);
    EXPECT_NEAR(3.0, rounds_slowdown(&rounds), 1e-12);
    EXPECT_INT_EQ(VERDICT_TOO_BUSY, rounds_verdict(&rounds, 0.2));
}

/* Nine tenths of the calls' time were waiting: alone they would have taken a tenth. */
C_TEST(rounds, calls_that_wait_for_processors_get_no_verdict) {
    struct rounds rounds = {0};
    add_equal(&rounds, 6, 1.0, 20.0);
    EXPECT_INT_EQ(VERDICT_MISSED, rounds_verdict(&rounds, 0.2));
    rounds_add_calls(&rounds, 100.0, 90.0);
    EXPECT_NEAR(10.0, rounds_slowdown(&rounds), 1e-12);
    EXPECT_INT_EQ(VERDICT_TOO_BUSY, rounds_verdict(&rounds, 0.2));
    EXPECT_INT_EQ(VERDICT_MISSED, rounds_verdict(&rounds, 0.6)); /* alone it would miss, too */
    rounds_add_calls(&rounds, 100.0, 200.0);
    EXPECT_NEAR(ROUNDS_MOST_SLOWDOWN, rounds_slowdown(&rounds), 0.0);
}

/* Milliseconds of round i, where the limit is 1 ms. */
static double fast(int round) {
    (void)round;
    return 1.5;
}

static double far_off(int round) {
    (void)round;
    return 10.0;
}

static double just_missed(int round) {
    (void)round;
    return 5.1;
}

static double beyond_the_limit(int round) {
    (void)round;
    return 0.9;
}

/* Other work on the machine ends after six rounds. */
static double freed(int round) {
    return round < 6 ? 5.1 : 2.0;
}

/* Even and odd rounds have nothing in common. */
static double scattered(int round) {
    return round % 2 == 0 ? 1.2 : 1.6;
}

C_TEST(rounds, the_highest_step_is_settled_soon) {
    EXPECT_INT_EQ(ROUNDS_LEAST, until_settled(1.0, fast));
}

C_TEST(rounds, so_is_a_miss_by_far) {
    EXPECT_INT_EQ(ROUNDS_CLEAR, until_settled(1.0, far_off));
}

C_TEST(rounds, a_close_miss_needs_patience) {
    EXPECT_INT_EQ(ROUNDS_CLOSE, until_settled(1.0, just_missed));
}

C_TEST(rounds, an_improvement_asks_for_as_many_rounds_again) {
    EXPECT_INT_EQ(14, until_settled(1.0, freed));
}

C_TEST(rounds, noise_settles_nothing_early) {
    EXPECT_INT_EQ(ROUNDS_CLOSE, until_settled(1.0, scattered));
}

C_TEST(rounds, nor_does_a_subject_beyond_the_limit) {
    EXPECT_INT_EQ(ROUNDS_CLOSE, until_settled(1.0, beyond_the_limit));
}

/* Other work ends late: until then nobody knows how fast the machine is. */
static double far_beyond_the_limit(int round) {
    (void)round;
    return 0.75;
}

C_TEST(rounds, where_nothing_is_known_it_is_tried_until_the_end) {
    EXPECT_INT_EQ(ROUNDS_MOST, until_settled(1.0, far_beyond_the_limit));
    struct rounds rounds = {0};
    while (!rounds_settled(&rounds, &SHARES, 1.0)) {
        rounds_add(&rounds, 1.0, 6.0);
        rounds_add_calls(&rounds, 6.0, 4.0);
    }
    EXPECT_INT_EQ(VERDICT_TOO_BUSY, rounds_verdict(&rounds, SHARES.pass));
    EXPECT_INT_EQ(ROUNDS_MOST, rounds.count);
}

/* Both sides get better and better; the share stays just below a step. */
C_TEST(rounds, there_is_an_end) {
    struct rounds rounds = {0};
    for (double ms = 100.0; !rounds_settled(&rounds, &SHARES, 1.0); ms *= 0.95) {
        rounds_add(&rounds, 0.19 * ms, ms);
    }
    EXPECT_INT_EQ(ROUNDS_MOST, rounds.count);
}

C_TEST(rounds, a_step_that_is_not_asked_for_is_reached) {
    const struct steps pass = {0.2, 0.0, 0.0};
    struct rounds rounds = {0};
    add_equal(&rounds, ROUNDS_LEAST, 1.0, 4.5);
    EXPECT_TRUE(rounds_settled(&rounds, &pass, 1.0));
    EXPECT_TRUE(!rounds_settled(&rounds, &pass, 1.25));
}

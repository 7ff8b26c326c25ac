#include "common/train/program/schedule.h"

#include "common/testing/testing.h"

static double rate(enum train_decay decay, uint64_t warmup, uint64_t step) {
    const struct train_schedule schedule = {decay, 2.0, warmup, 10};
    return train_schedule_rate(&schedule, step);
}

C_TEST(schedule, rises_then_falls_on_a_line) {
    static const double want[10] = {0.5,      1.0,     1.5, 2.0,     2.0,
                                    10.0 / 6, 8.0 / 6, 1.0, 4.0 / 6, 2.0 / 6};
    for (uint64_t step = 1; step <= 10; step++) {
        EXPECT_NEAR(want[step - 1], rate(TRAIN_LINEAR, 4, step), 1e-12);
    }
    EXPECT_NEAR(0.0, rate(TRAIN_LINEAR, 4, 11), 0.0);
}

C_TEST(schedule, falls_as_a_cosine) {
    EXPECT_NEAR(1.0, rate(TRAIN_COSINE, 2, 1), 1e-12);
    EXPECT_NEAR(2.0, rate(TRAIN_COSINE, 2, 3), 1e-12);
    EXPECT_NEAR(1.0, rate(TRAIN_COSINE, 2, 7), 1e-12);
    EXPECT_NEAR(1.0 + 0.70710678118654752, rate(TRAIN_COSINE, 2, 5), 1e-12);
    EXPECT_TRUE(rate(TRAIN_COSINE, 2, 10) > 0.0);
}

C_TEST(schedule, may_do_without_a_rise_and_without_a_fall) {
    EXPECT_NEAR(2.0, rate(TRAIN_LINEAR, 0, 1), 0.0);
    EXPECT_NEAR(0.2, rate(TRAIN_LINEAR, 0, 10), 1e-12);
    EXPECT_NEAR(2.0, rate(TRAIN_LINEAR, 10, 10), 0.0);
    EXPECT_NEAR(0.0, rate(TRAIN_LINEAR, 10, 11), 0.0);
}

C_TEST(schedule, reads_its_flags) {
    uint64_t steps;
    enum train_decay decay;
    struct error error = {0};
    EXPECT_OK(train_warmup_steps(0.06, 1000, &steps, &error));
    EXPECT_INT_EQ(60, steps);
    EXPECT_OK(train_warmup_steps(50, 1000, &steps, &error));
    EXPECT_INT_EQ(50, steps);
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT,
                 "--warmup 1001: from 0 to all 1000 steps, or a share of them below 1",
                 train_warmup_steps(1001, 1000, &steps, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, train_warmup_steps(-1, 1000, &steps, &error));
    EXPECT_OK(train_decay_parse("cosine", &decay, &error));
    EXPECT_STR_EQ("cosine", train_decay_name(decay));
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT, "--schedule is 'linear' or 'cosine', not 'step'",
                 train_decay_parse("step", &decay, &error));
}

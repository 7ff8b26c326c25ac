/**
 * @file metrics_test.c
 * @brief Compares metrics with cases calculated by hand.
 */
#include "common/programs/classifier/metrics.h"

#include "common/testing/testing.h"

static const double EXACT = 1e-15;

static void add(struct metrics *metrics, size_t label, size_t answer, int times) {
    for (int i = 0; i < times; i++) {
        metrics_add(metrics, label, answer);
    }
}

C_TEST(metrics, two_labels) {
    /* 6 of 8 neg right, 9 of 12 pos right. */
    struct metrics m;
    ASSERT_OK(metrics_create(&m, 2));
    add(&m, 0, 0, 6);
    add(&m, 0, 1, 2);
    add(&m, 1, 0, 3);
    add(&m, 1, 1, 9);
    EXPECT_INT_EQ(20, metrics_count(&m));
    EXPECT_NEAR(15.0 / 20.0, metrics_accuracy(&m), EXACT);
    struct metrics_label neg = metrics_of(&m, 0);
    EXPECT_NEAR(6.0 / 9.0, neg.precision, EXACT);
    EXPECT_NEAR(6.0 / 8.0, neg.recall, EXACT);
    EXPECT_NEAR(12.0 / 17.0, neg.f1, EXACT);
    EXPECT_INT_EQ(8, neg.count);
    struct metrics_label pos = metrics_of(&m, 1);
    EXPECT_NEAR(9.0 / 11.0, pos.precision, EXACT);
    EXPECT_NEAR(9.0 / 12.0, pos.recall, EXACT);
    EXPECT_NEAR(18.0 / 23.0, pos.f1, EXACT);
    EXPECT_NEAR((12.0 / 17.0 + 18.0 / 23.0) / 2.0, metrics_macro_f1(&m), EXACT);
    metrics_free(&m);
}

C_TEST(metrics, a_label_nobody_answers_counts_zero_and_one_nobody_has_not) {
    /* Label 2 is never given and never answered; 1 is given, never answered. */
    struct metrics m;
    ASSERT_OK(metrics_create(&m, 3));
    add(&m, 0, 0, 3);
    add(&m, 1, 0, 1);
    EXPECT_NEAR(0.75, metrics_accuracy(&m), EXACT);
    EXPECT_NEAR(0.75, metrics_of(&m, 0).precision, EXACT);
    EXPECT_NEAR(1.0, metrics_of(&m, 0).recall, EXACT);
    EXPECT_NEAR(6.0 / 7.0, metrics_of(&m, 0).f1, EXACT);
    EXPECT_NEAR(0.0, metrics_of(&m, 1).precision, 0.0);
    EXPECT_NEAR(0.0, metrics_of(&m, 1).recall, 0.0);
    EXPECT_NEAR(0.0, metrics_of(&m, 1).f1, 0.0);
    EXPECT_NEAR(0.0, metrics_of(&m, 2).f1, 0.0);
    EXPECT_NEAR(6.0 / 14.0, metrics_macro_f1(&m), EXACT); /* of the labels 0 and 1 */
    metrics_free(&m);
}

C_TEST(metrics, all_right_all_wrong_and_none) {
    struct metrics m;
    ASSERT_OK(metrics_create(&m, 2));
    EXPECT_NEAR(0.0, metrics_accuracy(&m), 0.0);
    EXPECT_NEAR(0.0, metrics_macro_f1(&m), 0.0);
    add(&m, 0, 0, 4);
    add(&m, 1, 1, 1);
    EXPECT_NEAR(1.0, metrics_accuracy(&m), 0.0);
    EXPECT_NEAR(1.0, metrics_macro_f1(&m), 0.0);
    metrics_free(&m);
    ASSERT_OK(metrics_create(&m, 2));
    add(&m, 0, 1, 4);
    add(&m, 1, 0, 1);
    EXPECT_NEAR(0.0, metrics_accuracy(&m), 0.0);
    EXPECT_NEAR(0.0, metrics_macro_f1(&m), 0.0);
    metrics_free(&m);
    metrics_free(&m);
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, metrics_create(&m, SIZE_MAX / 2));
}

#include "common/models/sampler.h"

#include <math.h>
#include <string.h>

#include "common/testing/testing.h"

/* Upper 24 bits of xorshift64*'s upper word, computed in exact integers by other code. */
static const struct {
    uint64_t seed;
    uint32_t bits[4];
} coins[] = {{1, {4711630, 11259814, 12177677, 5092376}},
             {42, {5688906, 13124075, 13256299, 15838407}},
             {UINT64_MAX, {16329929, 9434244, 3435669, 12932812}}};

/* With V equal probabilities and the nucleus off, the token is the coin's first digit in base V. */
C_TEST(sampler, coins_are_those_of_xorshift64star) {
    enum { V = 256 };
    for (size_t s = 0; s < sizeof coins / sizeof *coins; s++) {
        struct sampler sampler;
        ASSERT_OK(
            sampler_create(&sampler, V, &(struct llama2_sampling){1.0f, 1.0f, 0, coins[s].seed}));
        for (int i = 0; i < 4; i++) {
            float logits[V] = {0};
            EXPECT_INT_EQ(coins[s].bits[i] >> 16, sampler_next(&sampler, logits));
        }
        sampler_free(&sampler);
    }
}

C_TEST(sampler, greedy_takes_the_first_of_the_largest) {
    struct sampler sampler;
    ASSERT_OK(sampler_create(&sampler, 5, &(struct llama2_sampling){0.0f, 0.9f, 0, 1}));
    float logits[5] = {-1.0f, 3.0f, 2.0f, 3.0f, -INFINITY};
    EXPECT_INT_EQ(1, sampler_next(&sampler, logits));
    EXPECT_NEAR(3.0, logits[3], 0.0); /* greedy leaves the logits alone */
    sampler_free(&sampler);
}

/* Draws n tokens and counts them. */
static void count_draws(float temperature, float top_p, size_t top_k, const float *logits, size_t V,
                        int n, int *counts) {
    struct sampler sampler;
    ASSERT_OK(
        sampler_create(&sampler, V, &(struct llama2_sampling){temperature, top_p, top_k, 2026}));
    for (int i = 0; i < n; i++) {
        float copy[8];
        for (size_t v = 0; v < V; v++) {
            copy[v] = logits[v];
        }
        int32_t token = sampler_next(&sampler, copy);
        ASSERT_TRUE(token >= 0 && (size_t)token < V);
        counts[token]++;
    }
    sampler_free(&sampler);
}

C_TEST(sampler, temperature_one_draws_by_the_probabilities) {
    const float logits[4] = {logf(0.5f), logf(0.25f), logf(0.125f), logf(0.125f)};
    const double want[4] = {0.5, 0.25, 0.125, 0.125};
    int counts[4] = {0};
    count_draws(1.0f, 1.0f, 0, logits, 4, 40000, counts);
    for (int v = 0; v < 4; v++) { /* five standard deviations are at most 0.0125 */
        EXPECT_NEAR(want[v], counts[v] / 40000.0, 0.0125);
    }
}

C_TEST(sampler, low_temperature_sharpens) {
    const float logits[2] = {logf(0.6f), logf(0.4f)};
    int counts[2] = {0};
    count_draws(0.5f, 1.0f, 0, logits, 2, 40000, counts);
    EXPECT_NEAR(0.36 / (0.36 + 0.16), counts[0] / 40000.0, 0.0125);
}

C_TEST(sampler, nucleus_leaves_out_the_tail_and_scales_the_rest) {
    const float logits[4] = {logf(0.1f), logf(0.5f), logf(0.3f), logf(0.1f)};
    int counts[4] = {0};
    count_draws(1.0f, 0.7f, 0, logits, 4, 40000, counts);
    EXPECT_INT_EQ(0, counts[0]);
    EXPECT_INT_EQ(0, counts[3]);
    EXPECT_NEAR(0.5 / 0.8, counts[1] / 40000.0, 0.0125);
}

C_TEST(sampler, top_k_keeps_the_most_likely_and_of_equal_ones_the_first) {
    const float logits[5] = {logf(0.1f), logf(0.5f), logf(0.1f), logf(0.2f), logf(0.1f)};
    int counts[5] = {0};
    count_draws(1.0f, 1.0f, 3, logits, 5, 40000, counts);
    EXPECT_INT_EQ(0, counts[2]);
    EXPECT_INT_EQ(0, counts[4]);
    EXPECT_NEAR(0.1 / 0.8, counts[0] / 40000.0, 0.0125);
    EXPECT_NEAR(0.5 / 0.8, counts[1] / 40000.0, 0.0125);
    EXPECT_NEAR(0.2 / 0.8, counts[3] / 40000.0, 0.0125);
    int one[5] = {0};
    count_draws(1.0f, 1.0f, 1, logits, 5, 100, one);
    EXPECT_INT_EQ(100, one[1]);
}

/* top_k keeps 0.5 and 0.3, together 0.8. The first is 0.625 of them, but 0.5 of all. */
C_TEST(sampler, top_p_is_a_share_of_what_top_k_keeps) {
    const float logits[4] = {logf(0.1f), logf(0.5f), logf(0.3f), logf(0.1f)};
    int narrow[4] = {0}, wide[4] = {0};
    count_draws(1.0f, 0.6f, 2, logits, 4, 10000, narrow);
    EXPECT_INT_EQ(10000, narrow[1]);
    count_draws(1.0f, 0.65f, 2, logits, 4, 40000, wide);
    EXPECT_NEAR(0.5 / 0.8, wide[1] / 40000.0, 0.0125);
    EXPECT_INT_EQ(40000, wide[1] + wide[2]);
}

/* A top_k of V or more draws the same tokens as no top_k. */
C_TEST(sampler, top_k_of_all_tokens_is_off) {
    enum { V = 64, DRAWS = 2000 };
    for (int p = 0; p < 2; p++) {
        struct llama2_sampling how = {0.9f, p == 0 ? 1.0f : 0.8f, 0, 5};
        struct sampler off, all;
        ASSERT_OK(sampler_create(&off, V, &how));
        how.top_k = V;
        ASSERT_OK(sampler_create(&all, V, &how));
        int differ = 0;
        for (int i = 0; i < DRAWS; i++) {
            float a[V], b[V];
            for (int v = 0; v < V; v++) {
                a[v] = b[v] = sinf((float)(v * 7 + i));
            }
            differ += sampler_next(&off, a) != sampler_next(&all, b);
        }
        EXPECT_INT_EQ(0, differ);
        sampler_free(&off);
        sampler_free(&all);
    }
}

C_TEST(sampler, notices_logits_that_are_not_finite) {
    static const float cases[][3] = {{NAN, NAN, NAN},
                                     {1.0f, 2.0f, NAN},
                                     {NAN, 1.0f, 2.0f},
                                     {1.0f, INFINITY, 2.0f},
                                     {-INFINITY, -INFINITY, -INFINITY}};
    static const float temperatures[] = {0.0f, 1.0f};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct sampler sampler;
        float logits[3];
        memcpy(logits, cases[i / 2], sizeof logits);
        const struct llama2_sampling how = {temperatures[i % 2], 0.9f, 0, 7};
        ASSERT_OK(sampler_create(&sampler, 3, &how));
        EXPECT_INT_EQ(0, sampler_next(&sampler, logits));
        EXPECT_TRUE(sampler.state == 0);
        sampler_free(&sampler);
    }
}

C_TEST(sampler, survives_odd_logits) {
    struct sampler sampler;
    ASSERT_OK(sampler_create(&sampler, 3, &(struct llama2_sampling){1e-38f, 0.9f, 0, 7}));
    float overflowing[3] = {9.0f, 90.0f, 9.0f}; /* divided by the temperature they are infinite */
    int32_t token = sampler_next(&sampler, overflowing);
    EXPECT_TRUE(token >= 0 && token < 3 && sampler.state != 0);
    sampler_free(&sampler);
    ASSERT_OK(sampler_create(&sampler, 3, &(struct llama2_sampling){1.0f, 0.9f, 0, 7}));
    float infinite[3] = {-INFINITY, -INFINITY, 0.0f};
    EXPECT_INT_EQ(2, sampler_next(&sampler, infinite));
    EXPECT_TRUE(sampler.state != 0);
    sampler_free(&sampler);
    float one[1] = {5.0f};
    ASSERT_OK(sampler_create(&sampler, 1, &(struct llama2_sampling){1.0f, 0.9f, 0, 7}));
    EXPECT_INT_EQ(0, sampler_next(&sampler, one));
    sampler_free(&sampler);
}

C_TEST(sampler, refuses_seed_zero_and_no_tokens) {
    struct sampler sampler;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  sampler_create(&sampler, 4, &(struct llama2_sampling){1.0f, 0.9f, 0, 0}));
    sampler_free(&sampler);
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  sampler_create(&sampler, 0, &(struct llama2_sampling){1.0f, 0.9f, 0, 1}));
    sampler_free(&sampler);
}

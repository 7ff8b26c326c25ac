/**
 * @file dropout_test.c
 * @brief Dropout's generator: the published known answers, the share kept, and independence.
 */
#include "common/train/dropout.h"

#include <math.h>

#include "common/testing/testing.h"

enum { COUNT = 1000000 };

static void expect_numbers(const uint32_t want[4], struct train_random4 got) {
    for (size_t i = 0; i < 4; i++) {
        EXPECT_INT_EQ(want[i], got.at[i]);
    }
}

/* Known answers of Random123, the authors' distribution, for philox4x32 with 10 rounds. */
C_TEST(philox, known_answers) {
    expect_numbers((const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                   train_philox(0, 0, 0, 0));
    expect_numbers((const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                   train_philox(UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX));
    expect_numbers((const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
                   train_philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x13198a2e, 0x03707344));
}

/* Five standard deviations of a share p of COUNT independent elements: once in two million. */
static double bound(double p) {
    return 5.0 * sqrt(p * (1.0 - p) / COUNT);
}

static double share_dropped(const struct train_dropout *d) {
    size_t dropped = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        dropped += train_dropout_factor(d, i) == 0.0f;
    }
    return (double)dropped / COUNT;
}

C_TEST(dropout, drops_the_share_asked_for) {
    const float shares[] = {0.01f, 0.1f, 0.3f, 0.5f, 0.9f};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct train_dropout d = {.p = shares[i], .seed = 42, .site = 7, .step = 1};
        EXPECT_NEAR(d.p, share_dropped(&d), bound(d.p));
    }
}

C_TEST(dropout, scales_what_it_keeps) {
    struct train_dropout d = {.p = 0.25f, .seed = 1};
    size_t kept = 0;
    for (uint64_t i = 0; i < 100; i++) {
        float factor = train_dropout_factor(&d, i);
        EXPECT_TRUE(factor == 0.0f || factor == 1.0f / 0.75f);
        kept += factor != 0.0f;
    }
    EXPECT_TRUE(kept > 0 && kept < 100);
}

C_TEST(dropout, of_nothing_keeps_all) {
    struct train_dropout d = {.p = 0.0f, .seed = 9};
    for (uint64_t i = 0; i < 1000; i++) {
        EXPECT_TRUE(train_dropout_factor(&d, i) == 1.0f);
    }
}

C_TEST(dropout, limit) {
    EXPECT_INT_EQ(0, train_dropout_limit(0.0f));
    EXPECT_INT_EQ(1u << 30, train_dropout_limit(0.25f));
    EXPECT_INT_EQ(1u << 31, train_dropout_limit(0.5f));
    EXPECT_INT_EQ(0xffffff00, train_dropout_limit(nextafterf(1.0f, 0.0f)));
}

C_TEST(dropout, the_same_again) {
    struct train_dropout d = {.p = 0.5f, .seed = 11, .site = 2, .step = 3}, same = d;
    for (uint64_t i = 0; i < 1000; i++) {
        EXPECT_TRUE(train_dropout_factor(&d, i) == train_dropout_factor(&same, i));
    }
}

/* Compares element i of a with element i + shift of b. If the two are independent, both drop or
 * both keep the element with probability p^2 + (1 - p)^2. */
static void expect_independent(const struct train_dropout *a, const struct train_dropout *b,
                               uint64_t shift) {
    size_t agree = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        agree +=
            (train_dropout_factor(a, i) == 0.0f) == (train_dropout_factor(b, i + shift) == 0.0f);
    }
    double p = (double)a->p, want = p * p + (1.0 - p) * (1.0 - p);
    EXPECT_NEAR(want, (double)agree / COUNT, bound(want));
}

C_TEST(dropout, sites_steps_seeds_and_elements_are_independent) {
    const struct train_dropout d = {.p = 0.3f, .seed = 1000, .site = 4, .step = 20};
    struct train_dropout site = d, step = d, seed = d, high = d;
    site.site++;
    step.step++;
    seed.seed++;
    high.seed += (uint64_t)1 << 32;
    expect_independent(&d, &site, 0);
    expect_independent(&d, &step, 0);
    expect_independent(&d, &seed, 0);
    expect_independent(&d, &high, 0);
    expect_independent(&d, &d, 1);
    expect_independent(&d, &d, 4);
    expect_independent(&d, &d, (uint64_t)1 << 34); /* a group whose number has more than 32 bits */
}

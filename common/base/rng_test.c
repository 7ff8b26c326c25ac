#include "common/base/rng.h"

#include <math.h>

#include "common/testing/testing.h"

C_TEST(rng, stream_equals_the_published_xoshiro256starstar) {
    /* Output of the authors' reference program from the state 1, 2, 3, 4. */
    static const uint64_t want[] = {11520u,
                                    0u,
                                    1509978240u,
                                    1215971899390074240u,
                                    1216172134540287360u,
                                    607988272756665600u,
                                    16172922978634559625u,
                                    8476171486693032832u,
                                    10595114339597558777u,
                                    2904607092377533576u};
    struct rng rng = {.state = {1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        EXPECT_INT_EQ(want[i], rng_u64(&rng));
    }
}

C_TEST(rng, seed_fills_the_state_with_the_published_splitmix64) {
    struct rng rng = rng_create(1234567);
    EXPECT_INT_EQ(6457827717110365317u, rng.state[0]);
    EXPECT_INT_EQ(3203168211198807973u, rng.state[1]);
    EXPECT_INT_EQ(9817491932198370423u, rng.state[2]);
    EXPECT_INT_EQ(4593380528125082431u, rng.state[3]);
}

C_TEST(rng, a_seed_repeats_and_another_differs) {
    struct rng a = rng_create(0);
    struct rng b = rng_create(0);
    struct rng c = rng_create(1);
    size_t same = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t value = rng_u64(&a);
        EXPECT_INT_EQ(value, rng_u64(&b));
        same += value == rng_u64(&c);
    }
    EXPECT_INT_EQ(0, same);
}

C_TEST(rng, uniform_is_a_multiple_of_two_to_minus_24_below_one) {
    struct rng rng = rng_create(7);
    double sum = 0;
    double squares = 0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        double value = (double)rng_uniform(&rng);
        EXPECT_TRUE(value >= 0.0 && value < 1.0);
        EXPECT_TRUE(value * 0x1p24 == floor(value * 0x1p24));
        sum += value;
        squares += value * value;
    }
    /* Five standard errors: sqrt(1/12/n) and sqrt(4/45/n). */
    EXPECT_NEAR(0.5, sum / n, 5 * sqrt(1.0 / 12 / n));
    EXPECT_NEAR(1.0 / 3, squares / n, 5 * sqrt(4.0 / 45 / n));
}

C_TEST(rng, normal_has_the_moments_of_a_normal_distribution) {
    struct rng rng = rng_create(11);
    double moment[5] = {0};
    const int n = 200000;
    for (int i = 0; i < n; i++) {
        double value = (double)rng_normal(&rng);
        ASSERT_TRUE(isfinite(value));
        double power = 1;
        for (int k = 1; k <= 4; k++) {
            power *= value;
            moment[k] += power / n;
        }
    }
    /* Five standard errors; Var(x^k) of a standard normal is 1, 2, 15, 96. */
    EXPECT_NEAR(0, moment[1], 5 * sqrt(1.0 / n));
    EXPECT_NEAR(1, moment[2], 5 * sqrt(2.0 / n));
    EXPECT_NEAR(0, moment[3], 5 * sqrt(15.0 / n));
    EXPECT_NEAR(3, moment[4], 5 * sqrt(96.0 / n));
}

C_TEST(rng, fill_normal_scales_and_stays_in_bounds) {
    struct rng a = rng_create(3);
    struct rng b = rng_create(3);
    float out[6] = {0, 0, 0, 0, 0, -77.0f};
    rng_fill_normal(&a, out, 5, 0.5f);
    for (size_t i = 0; i < 5; i++) {
        EXPECT_NEAR((double)(rng_normal(&b) * 0.5f), (double)out[i], 0.0);
    }
    EXPECT_NEAR(-77.0, (double)out[5], 0.0);
}

C_TEST(rng, below_is_unbiased_and_in_range) {
    struct rng rng = rng_create(5);
    EXPECT_INT_EQ(0, rng_below(&rng, 0));
    EXPECT_INT_EQ(0, rng_below(&rng, 1));

    /* A plain remainder would draw the lower third of this bound twice as often as the rest. */
    const uint64_t bound = 3u * ((uint64_t)1 << 62);
    const int n = 30000;
    int low = 0;
    for (int i = 0; i < n; i++) {
        uint64_t value = rng_below(&rng, bound);
        EXPECT_TRUE(value < bound);
        low += value < bound / 3;
    }
    EXPECT_NEAR(1.0 / 3, (double)low / n, 5 * sqrt(2.0 / 9 / n));
}

C_TEST(rng, secret_seeds_differ) {
    EXPECT_TRUE(rng_secret_seed() != rng_secret_seed());
}

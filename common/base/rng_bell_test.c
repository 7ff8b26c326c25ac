#include "common/base/rng_bell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

C_TEST(rng_bell, has_the_moments_of_four_uniform_numbers) {
    enum { N = 200000 };
    struct rng rng = rng_create(11);
    float *values = malloc(N * sizeof *values);
    double moment[5] = {0};
    ASSERT_TRUE(values != NULL);
    rng_fill_bell(&rng, values, N, 1.0f);
    for (int i = 0; i < N; i++) {
        double power = 1.0, value = (double)values[i];
        EXPECT_TRUE(value != 0.0 && fabs(value) < 3.47);
        for (int k = 1; k <= 4; k++) {
            power *= value;
            moment[k] += power / N;
        }
    }
    free(values);
    /* Five standard errors at most: those of a normal distribution, whose tails are longer. The
       fourth moment is 3 - 1.2 / 4. */
    EXPECT_NEAR(0.0, moment[1], 5.0 * sqrt(1.0 / N));
    EXPECT_NEAR(1.0, moment[2], 5.0 * sqrt(2.0 / N));
    EXPECT_NEAR(0.0, moment[3], 5.0 * sqrt(15.0 / N));
    EXPECT_NEAR(2.7, moment[4], 5.0 * sqrt(96.0 / N));
}

/* What was seen of one call does not continue in the next one. */
C_TEST(rng_bell, a_call_takes_one_number) {
    struct rng short_call = rng_create(3), long_call = rng_create(3), plain = rng_create(3);
    float few[2], many[5];
    rng_fill_bell(&short_call, few, 2, 1.0f);
    rng_fill_bell(&long_call, many, 5, 0.5f);
    (void)rng_u64(&plain);
    EXPECT_TRUE(rng_u64(&short_call) == rng_u64(&plain));
    EXPECT_TRUE(memcmp(&short_call, &plain, sizeof plain) == 0);
    (void)rng_u64(&long_call);
    EXPECT_TRUE(memcmp(&long_call, &plain, sizeof plain) == 0);
    for (int i = 0; i < 2; i++) {
        EXPECT_NEAR((double)few[i], 2.0 * (double)many[i], 0.0);
    }
    rng_fill_bell(&short_call, many, 2, 1.0f);
    EXPECT_TRUE(few[0] != many[0] && few[1] != many[1]);
}

C_TEST(rng_bell, stays_in_bounds) {
    struct rng rng = rng_create(3);
    float out[7] = {0, 0, 0, 0, 0, 0, -77.0f};
    rng_fill_bell(&rng, out, 6, 1.0f);
    EXPECT_NEAR(-77.0, (double)out[6], 0.0);
    rng_fill_bell_rows(&rng, out, 2, 3);
    EXPECT_NEAR(-77.0, (double)out[6], 0.0);
    rng_fill_bell(&rng, out + 6, 0, 1.0f);
    rng_fill_bell_rows(&rng, out + 6, 0, 4);
    EXPECT_NEAR(-77.0, (double)out[6], 0.0);
}

C_TEST(rng_bell, rows_have_offsets_and_scales_of_their_own) {
    enum { ROWS = 40, COLUMNS = 4000 };
    struct rng rng = rng_create(5);
    float *values = malloc(ROWS * COLUMNS * sizeof *values);
    double means = 0.0, least = INFINITY, most = 0.0;
    ASSERT_TRUE(values != NULL);
    rng_fill_bell_rows(&rng, values, ROWS, COLUMNS);
    for (int row = 0; row < ROWS; row++) {
        double mean = 0.0, squares = 0.0;
        for (int i = 0; i < COLUMNS; i++) {
            mean += (double)values[row * COLUMNS + i] / COLUMNS;
        }
        for (int i = 0; i < COLUMNS; i++) {
            double x = (double)values[row * COLUMNS + i] - mean;
            squares += x * x / COLUMNS;
        }
        means += mean * mean / ROWS;
        least = fmin(least, sqrt(squares));
        most = fmax(most, sqrt(squares));
    }
    free(values);
    EXPECT_NEAR(0.25, sqrt(means), 0.1);
    EXPECT_TRUE(least > 0.47 && least < 0.65);
    EXPECT_TRUE(most < 1.55 && most > 1.35);
}

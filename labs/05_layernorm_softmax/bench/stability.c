/* The errors of three methods for the variance in fp32, on the CPU. */
#include <math.h>
#include <stdio.h>

#include "common/base/rng.h"
#include "labs/05_layernorm_softmax/bench/bench_internal.h"

enum { ELEMENTS = 768, ROWS = 200 };

/* E[x^2] - mean^2: one pass, but it subtracts two large numbers. */
static float variance_naive(const float *x) {
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < ELEMENTS; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    float mean = sum / (float)ELEMENTS;
    return squares / (float)ELEMENTS - mean * mean;
}

/* First the mean, then the mean of (x - mean)^2. */
static float variance_two_pass(const float *x) {
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < ELEMENTS; i++) {
        sum += x[i];
    }
    float mean = sum / (float)ELEMENTS;
    for (int i = 0; i < ELEMENTS; i++) {
        squares += (x[i] - mean) * (x[i] - mean);
    }
    return squares / (float)ELEMENTS;
}

/* Welford 1962: one pass, which updates mean and M2 = sum of (x - mean)^2 with each element. */
static float variance_welford(const float *x) {
    float mean = 0.0f, M2 = 0.0f;
    for (int i = 0; i < ELEMENTS; i++) {
        float d = x[i] - mean;
        mean += d / (float)(i + 1);
        M2 += d * (x[i] - mean);
    }
    return M2 / (float)ELEMENTS;
}

static double variance_exact(const float *x) {
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < ELEMENTS; i++) {
        sum += (double)x[i];
    }
    for (int i = 0; i < ELEMENTS; i++) {
        double d = (double)x[i] - sum / ELEMENTS;
        squares += d * d;
    }
    return squares / ELEMENTS;
}

/* Largest relative error over rows of N(mean, 1); *negative counts variances below zero. */
static double worst_error(float (*variance)(const float *), float mean, int *negative) {
    float x[ELEMENTS];
    double worst = 0.0;
    struct rng rng = rng_create(7);
    *negative = 0;
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < ELEMENTS; i++) {
            x[i] = mean + rng_normal(&rng);
        }
        double exact = variance_exact(x), got = (double)variance(x);
        worst = fmax(worst, fabs(got - exact) / exact);
        *negative += got < 0.0;
    }
    return worst;
}

void bench_stability(void) {
    static float (*const methods[])(const float *) = {variance_naive, variance_two_pass,
                                                      variance_welford};
    printf(
        "\nrelative error of the variance in fp32, worst of %d rows of %d, standard deviation 1, "
        "on this CPU\n",
        ROWS, ELEMENTS);
    printf("  %10s %16s %16s %16s\n", "mean", "E[x^2] - mean^2", "two passes", "Welford");
    for (float mean = 0.0f; mean <= 100000.0f; mean = mean == 0.0f ? 10.0f : mean * 10.0f) {
        int below_zero = 0;
        printf("  %10.0f", (double)mean);
        for (int method = 0; method < 3; method++) {
            int negative;
            printf(" %16.2g", worst_error(methods[method], mean, &negative));
            below_zero += method == 0 ? negative : 0;
        }
        if (below_zero > 0) {
            printf("   %d of %d below zero: sqrt() gives NaN", below_zero, ROWS);
        }
        printf("\n");
    }
}

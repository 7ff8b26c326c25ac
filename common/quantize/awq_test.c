/* AWQ against the definition, written out in double: products with the inputs themselves. */
#include "common/quantize/awq.h"

#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/quantize/gptq.h"
#include "common/testing/testing.h"

enum { K = 20, ROWS = 6, TOKENS = 40, GROUP = 8, GROUPS = 3 };

struct problem {
    float weights[2][ROWS * K], inputs[TOKENS * K];
    double hessian[K * K];
    size_t same[K];
    struct awq_matrix matrices[2];
    struct awq_problem awq;
};

/* Inputs of very different sizes; number 3 is always 0. */
static void make(struct problem *p, uint64_t seed, enum low_bit_type type, bool zeros) {
    struct rng rng = rng_create(seed);
    memset(p->hessian, 0, sizeof p->hessian);
    for (int i = 0; i < 2; i++) {
        rng_fill_normal(&rng, p->weights[i], ROWS * K, 1.0f);
        p->matrices[i] = (struct awq_matrix){p->weights[i], ROWS};
    }
    for (size_t k = 0; k < K; k++) {
        p->same[k] = k;
        float size = k == 3 ? 0.0f : expf(2.0f * rng_normal(&rng));
        for (size_t t = 0; t < TOKENS; t++) {
            p->inputs[t * K + k] = size * rng_normal(&rng);
        }
    }
    gptq_add(p->hessian, p->inputs, TOKENS, K);
    p->awq = (struct awq_problem){.matrices = p->matrices,
                                  .count = 2,
                                  .K = K,
                                  .layout = {type, ROWS, K, GROUP, NN_BF16, zeros},
                                  .hessian = p->hessian,
                                  .same = p->same};
}

/* The sum of squared errors of all products, where weights are rounded as weight * s. */
static double error_with(const struct problem *p, const double s[K]) {
    double sum = 0.0;
    for (int i = 0; i < 2; i++) {
        uint8_t values[ROWS * K], zeros[ROWS * GROUPS];
        float scales[ROWS * GROUPS], scaled[ROWS * K];
        struct low_bit_matrix m = {p->awq.layout, values, scales,
                                   p->awq.layout.has_zeros ? zeros : NULL};
        for (size_t j = 0; j < ROWS * K; j++) {
            scaled[j] = p->weights[i][j] * (float)s[j % K];
        }
        EXPECT_OK(low_bit_quantize(scaled, &m, NULL));
        for (size_t t = 0; t < TOKENS; t++) {
            for (size_t r = 0; r < ROWS; r++) {
                double error = 0.0;
                for (size_t k = 0; k < K; k++) {
                    double kept = low_bit_weight(&m, r, k) / (double)(float)s[k];
                    error +=
                        ((double)p->weights[i][r * K + k] - kept) * (double)p->inputs[t * K + k];
                }
                sum += error * error;
            }
        }
    }
    return sum;
}

static void define(const struct problem *p, double exponent, double s[K]) {
    double size[K], sum[K] = {0}, count[K] = {0}, most = 0.0, least = INFINITY, largest = 0.0;
    for (size_t k = 0; k < K; k++) {
        for (size_t t = 0; t < TOKENS; t++) {
            double x = (double)p->inputs[t * K + k];
            sum[p->same[k]] += x * x;
        }
        count[p->same[k]] += 1.0;
    }
    for (size_t k = 0; k < K; k++) {
        size[k] = sqrt(sum[p->same[k]] / count[p->same[k]]);
        largest = fmax(largest, size[k]);
    }
    for (size_t k = 0; k < K; k++) {
        s[k] = pow(fmax(size[k], 1e-4 * largest), exponent);
        most = fmax(most, s[k]);
        least = fmin(least, s[k]);
    }
    for (size_t k = 0; k < K; k++) {
        s[k] /= sqrt(most * least);
    }
}

static void expect_definition(const struct problem *p, double *gained) {
    float got[K];
    double scratch[3 * K], best[K], least = INFINITY, plain = 0.0;
    awq_choose(&p->awq, got, scratch);
    for (int i = 0; i < AWQ_EXPONENTS; i++) {
        double s[K];
        define(p, i / (double)AWQ_EXPONENTS, s);
        double error = error_with(p, s);
        plain = i == 0 ? error : plain;
        if (error < least) {
            least = error;
            memcpy(best, s, sizeof s);
        }
    }
    for (size_t k = 0; k < K; k++) {
        EXPECT_NEAR(best[k], (double)got[k], 1e-5 * best[k]);
    }
    *gained += plain / least;
}

C_TEST(awq, chooses_as_the_definition) {
    const struct {
        enum low_bit_type type;
        bool zeros;
    } kinds[] = {{LOW_BIT_INT4, true}, {LOW_BIT_INT4, false}, {LOW_BIT_INT8, false}};
    double gained = 0.0;
    for (uint64_t i = 0; i < 9; i++) {
        struct problem p;
        make(&p, 40 + i, kinds[i % 3].type, kinds[i % 3].zeros);
        if (i >= 3) { /* as heads that share values: two columns with one number */
            for (size_t k = 0; k < K; k++) {
                p.same[k] = k % (K / 2);
            }
        }
        expect_definition(&p, &gained);
    }
    EXPECT_TRUE(gained > 1.5 * 9); /* of inputs of different sizes it makes something */
}

C_TEST(awq, inputs_that_are_all_zero_scale_nothing) {
    struct problem p;
    float got[K];
    double scratch[3 * K];
    make(&p, 60, LOW_BIT_INT4, true);
    memset(p.hessian, 0, sizeof p.hessian);
    awq_choose(&p.awq, got, scratch);
    for (size_t k = 0; k < K; k++) {
        EXPECT_NEAR(1.0, (double)got[k], 0.0);
    }
}

/* Each group's scale has the least error that a column's weight counts, of all that may be tried.
 */
C_TEST(awq, rounds_with_the_scale_that_errs_least) {
    struct problem p;
    double inverse[K], row[K];
    uint8_t values[ROWS * K], zeros[ROWS * GROUPS];
    float scales[ROWS * GROUPS];
    make(&p, 70, LOW_BIT_INT4, true);
    for (size_t k = 0; k < K; k++) {
        inverse[k] = 1.0 / (1.0 + (double)(k * 7 % 5));
    }
    struct low_bit_matrix m = {p.awq.layout, values, scales, zeros};
    ASSERT_OK(awq_quantize(p.weights[0], inverse, &m, row, NULL));
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t g = 0; g < GROUPS; g++) {
            double got = 0.0, least = INFINITY;
            size_t end = (g + 1) * GROUP < K ? (g + 1) * GROUP : K;
            for (size_t k = g * GROUP; k < end; k++) {
                double error = (double)p.weights[0][r * K + k] - low_bit_weight(&m, r, k);
                got += error * error / (inverse[k] * inverse[k]);
            }
            for (int i = 0; i < GPTQ_CUTS * GPTQ_CUTS; i++) {
                float group[2] = {0.0f, 0.0f};
                for (size_t k = g * GROUP; k < end; k++) {
                    group[0] = fminf(group[0], p.weights[0][r * K + k]);
                    group[1] = fmaxf(group[1], p.weights[0][r * K + k]);
                }
                group[0] *= 1.0f - (float)(i % GPTQ_CUTS) / 20.0f;
                group[1] *= 1.0f - (float)(i / GPTQ_CUTS) / 20.0f;
                uint8_t zero;
                double cost = 0.0;
                float scale = low_bit_choose_scale(&m.layout, group, 2, &zero);
                for (size_t k = g * GROUP; k < end; k++) {
                    float w = p.weights[0][r * K + k];
                    uint8_t bits = low_bit_round(LOW_BIT_INT4, w, scale, zero);
                    double error = (double)w -
                                   (double)scale * (double)low_bit_stored(LOW_BIT_INT4, bits, zero);
                    cost += error * error / (inverse[k] * inverse[k]);
                }
                least = fmin(least, cost);
            }
            EXPECT_NEAR(least, got, 1e-9 * least);
        }
    }
}

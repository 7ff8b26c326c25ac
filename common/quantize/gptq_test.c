/* GPTQ against the definition, written out in double: after each column, the best weights of the
 * columns behind it are found anew, by the inverse of what is left of H. */
#include "common/quantize/gptq.h"

#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

enum { K = 20, ROWS = 5, TOKENS = 60, GROUP = 8, GROUPS = 3 };

struct problem {
    float weights[ROWS * K], inputs[TOKENS * K];
    double h[K][K]; /* X^T X with damping */
    uint8_t values[ROWS * K], zeros[ROWS * GROUPS];
    float scales[ROWS * GROUPS];
};

/* Inputs that depend on each other, as a model's do; input 3 is always 0. */
static void make(struct problem *p, uint64_t seed) {
    struct rng rng = rng_create(seed);
    rng_fill_normal(&rng, p->weights, ROWS * K, 1.0f);
    double mean = 0.0;
    for (int t = 0; t < TOKENS; t++) {
        float common = rng_normal(&rng);
        for (int k = 0; k < K; k++) {
            p->inputs[t * K + k] = k == 3 ? 0.0f : common * (float)(k % 5) + rng_normal(&rng);
        }
    }
    for (int i = 0; i < K; i++) {
        for (int k = 0; k < K; k++) {
            p->h[i][k] = 0.0;
            for (int t = 0; t < TOKENS; t++) {
                p->h[i][k] += (double)p->inputs[t * K + i] * (double)p->inputs[t * K + k];
            }
        }
        mean += p->h[i][i] / K;
    }
    p->h[3][3] = 1.0;
    for (int i = 0; i < K; i++) {
        p->h[i][i] += GPTQ_DAMPING * mean;
    }
}

/* Inverse of the part of H from (first, first) on, by Gauss and Jordan. */
static void invert_rest(const struct problem *p, int first, double out[K][K]) {
    double a[K][2 * K];
    int n = K - first;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            a[i][k] = p->h[first + i][first + k];
            a[i][n + k] = i == k ? 1.0 : 0.0;
        }
    }
    for (int i = 0; i < n; i++) {
        double pivot = a[i][i];
        for (int k = 0; k < 2 * n; k++) {
            a[i][k] /= pivot;
        }
        for (int r = 0; r < n; r++) {
            double factor = a[r][i];
            for (int k = 0; r != i && k < 2 * n; k++) {
                a[r][k] -= factor * a[i][k];
            }
        }
    }
    for (int i = 0; i < n; i++) {
        memcpy(out[i], &a[i][n], (size_t)n * sizeof(double));
    }
}

/* Of the scales that are tried, the one with the least cost: 1 / U_jj^2 is 1 over the first element
   of the inverse of what is left of H at j. */
static void choose(const struct problem *p, const struct low_bit_layout *layout, const double *w,
                   int begin, float *scale, uint8_t *zero) {
    double least = INFINITY;
    for (int i = 0; i < GPTQ_SCALES; i++) {
        float group[GROUP];
        size_t count = 0;
        for (int k = begin; k < K && k < begin + GROUP; k++) {
            group[count++] = (float)((1.0 - i / 32.0) * w[k]);
        }
        uint8_t z;
        float s = low_bit_choose_scale(layout, group, count, &z);
        double cost = 0.0;
        for (size_t k = 0; k < count; k++) {
            double inverse[K][K], weight = w[(size_t)begin + k];
            invert_rest(p, begin + (int)k, inverse);
            uint8_t bits = low_bit_round(layout->type, (float)weight, s, z);
            double error = weight - (double)s * (double)low_bit_stored(layout->type, bits, z);
            cost += error * error / inverse[0][0];
        }
        if (cost < least) {
            least = cost;
            *scale = s;
            *zero = z;
        }
    }
}

static void reference_row(const struct problem *p, const struct low_bit_layout *layout, int row,
                          uint8_t bits[K]) {
    double w[K], inverse[K][K];
    float scale = 1.0f;
    uint8_t zero = 0;
    for (int k = 0; k < K; k++) {
        w[k] = (double)p->weights[row * K + k];
    }
    for (int j = 0; j < K; j++) {
        if (j % GROUP == 0) {
            choose(p, layout, w, j, &scale, &zero);
        }
        bits[j] = low_bit_round(layout->type, (float)w[j], scale, zero);
        double q = (double)scale * (double)low_bit_stored(layout->type, bits[j], zero);
        invert_rest(p, j, inverse);
        for (int k = j + 1; k < K; k++) {
            w[k] -= (w[j] - q) / inverse[0][0] * inverse[0][k - j];
        }
    }
}

static struct low_bit_matrix matrix_of(struct problem *p, enum low_bit_type type, bool zeros) {
    return (struct low_bit_matrix){
        {type, ROWS, K, GROUP, NN_BF16, zeros}, p->values, p->scales, zeros ? p->zeros : NULL};
}

/* The error of all products: the sum over rows of (w - q) H (w - q)^T. */
static double product_error(const struct problem *p, const struct low_bit_matrix *m) {
    double sum = 0.0;
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < K; i++) {
            for (size_t k = 0; k < K; k++) {
                sum += ((double)p->weights[r * K + i] - low_bit_weight(m, r, i)) * p->h[i][k] *
                       ((double)p->weights[r * K + k] - low_bit_weight(m, r, k));
            }
        }
    }
    return sum;
}

static void prepare(const struct problem *p, double upper[K * K]) {
    memset(upper, 0, K * K * sizeof *upper);
    gptq_add(upper, p->inputs, TOKENS / 2, K);
    gptq_add(upper, p->inputs + TOKENS / 2 * K, TOKENS - TOKENS / 2, K);
    EXPECT_OK(gptq_prepare(upper, K));
}

C_TEST(gptq, rounds_as_the_definition) {
    const struct {
        enum low_bit_type type;
        bool zeros;
    } kinds[] = {{LOW_BIT_INT4, false}, {LOW_BIT_INT4, true}, {LOW_BIT_INT8, false}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct problem p;
        double upper[K * K], scratch[2 * K];
        make(&p, i + 1);
        struct low_bit_matrix m = matrix_of(&p, kinds[i].type, kinds[i].zeros);
        prepare(&p, upper);
        ASSERT_OK(gptq_quantize(p.weights, upper, NULL, &m, scratch, NULL));
        for (int r = 0; r < ROWS; r++) {
            uint8_t want[K];
            reference_row(&p, &m.layout, r, want);
            for (size_t k = 0; k < K; k++) {
                EXPECT_INT_EQ(want[k], low_bit_get(&m, (size_t)r, k));
            }
        }
    }
}

/* U^T U is the inverse of H. */
C_TEST(gptq, inverts) {
    struct problem p;
    double upper[K * K];
    make(&p, 4);
    prepare(&p, upper);
    for (int i = 0; i < K; i++) {
        for (int k = 0; k < K; k++) {
            double sum = 0.0;
            for (int a = 0; a < K; a++) {
                double inverse = 0.0; /* (i, a) */
                for (int b = 0; b < K; b++) {
                    inverse += upper[b * K + i] * upper[b * K + a];
                }
                sum += inverse * p.h[a][k];
            }
            EXPECT_NEAR(i == k ? 1.0 : 0.0, sum, 1e-9);
            EXPECT_TRUE(k >= i || upper[i * K + k] == 0.0);
        }
    }
}

C_TEST(gptq, errs_less_than_rounding_to_nearest) {
    double worse = 0.0, better = 0.0;
    for (uint64_t seed = 10; seed < 20; seed++) {
        struct problem p;
        double upper[K * K], scratch[2 * K];
        make(&p, seed);
        struct low_bit_matrix m = matrix_of(&p, LOW_BIT_INT4, false);
        prepare(&p, upper);
        ASSERT_OK(gptq_quantize(p.weights, NULL, NULL, &m, scratch, NULL));
        worse += product_error(&p, &m);
        ASSERT_OK(gptq_quantize(p.weights, upper, NULL, &m, scratch, NULL));
        better += product_error(&p, &m);
    }
    EXPECT_TRUE(better < 0.7 * worse);
}

/* The sum over rows and tokens of (Y w - X q)^2, from the definition. */
static double drift_error(const struct problem *p, const float *wanted,
                          const struct low_bit_matrix *m) {
    double sum = 0.0;
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t t = 0; t < TOKENS; t++) {
            double error = 0.0;
            for (size_t k = 0; k < K; k++) {
                error += (double)wanted[t * K + k] * (double)p->weights[r * K + k] -
                         (double)p->inputs[t * K + k] * low_bit_weight(m, r, k);
            }
            sum += error * error;
        }
    }
    return sum;
}

/* With 8 bits and a group a column nearly nothing is rounded: what is stored is what w was moved
   to. Its equations, in the definition's terms: for each column j, the sum over i of (w'_i - w_i)
   H_ij is the sum over i of w_i D_ij. */
static void expect_moved(struct problem *p, const float *wanted, const double *upper,
                         const double *drift) {
    static uint8_t values[ROWS * K];
    static float scales[ROWS * K];
    double scratch[2 * K];
    struct low_bit_matrix m = {{LOW_BIT_INT8, ROWS, K, 1, NN_F32, false}, values, scales, NULL};
    ASSERT_OK(gptq_quantize(p->weights, upper, drift, &m, scratch, NULL));
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t j = 0; j < K; j++) {
            double got = 0.0, want = 0.0, size = 1.0;
            for (size_t i = 0; i < K; i++) {
                double d = 0.0, w = (double)p->weights[r * K + i];
                for (size_t t = 0; t < TOKENS; t++) {
                    d += ((double)wanted[t * K + i] - (double)p->inputs[t * K + i]) *
                         (double)p->inputs[t * K + j];
                }
                got += (low_bit_weight(&m, r, i) - w) * p->h[i][j];
                want += w * d;
                size += fabs(w * p->h[i][j]);
            }
            EXPECT_NEAR(want, got, 1e-6 * size);
        }
    }
}

/* Weights that are moved solve the problem's own equations, (H + damping) (w' - w) = D^T w; the
   rounded ones are nearer to what was wanted than those that are rounded where they were. */
C_TEST(gptq, aims_at_the_products_of_other_inputs) {
    double with = 0.0, without = 0.0;
    for (uint64_t seed = 20; seed < 30; seed++) {
        struct problem p;
        struct rng rng = rng_create(seed);
        float wanted[TOKENS * K];
        double upper[K * K], drift[K * K] = {0}, scratch[2 * K];
        make(&p, seed);
        for (size_t i = 0; i < TOKENS * K; i++) { /* what came is smaller, and has noise */
            wanted[i] = i % K == 3 ? 0.0f : 1.2f * p.inputs[i] + 0.3f * rng_normal(&rng);
        }
        gptq_add_drift(drift, wanted, p.inputs, TOKENS / 3, K);
        gptq_add_drift(drift, wanted + TOKENS / 3 * K, p.inputs + TOKENS / 3 * K,
                       TOKENS - TOKENS / 3, K);
        struct low_bit_matrix m = matrix_of(&p, LOW_BIT_INT4, true);
        prepare(&p, upper);
        ASSERT_OK(gptq_quantize(p.weights, upper, NULL, &m, scratch, NULL));
        without += drift_error(&p, wanted, &m);
        ASSERT_OK(gptq_quantize(p.weights, upper, drift, &m, scratch, NULL));
        with += drift_error(&p, wanted, &m);
        expect_moved(&p, wanted, upper, drift);
    }
    EXPECT_TRUE(with < 0.7 * without);
}

/* Without U it is low_bit_quantize(). */
C_TEST(gptq, without_inputs_rounds_to_nearest) {
    struct problem p, q;
    double scratch[2 * K];
    make(&p, 5);
    q = p;
    struct low_bit_matrix a = matrix_of(&p, LOW_BIT_INT8, false),
                          b = matrix_of(&q, LOW_BIT_INT8, false);
    ASSERT_OK(gptq_quantize(p.weights, NULL, NULL, &a, scratch, NULL));
    ASSERT_OK(low_bit_quantize(q.weights, &b, NULL));
    EXPECT_TRUE(memcmp(p.values, q.values, sizeof p.values) == 0);
}

C_TEST(gptq, refuses_inputs_that_are_not_finite) {
    double h[4] = {1.0, 0.0, 0.0, NAN};
    EXPECT_STATUS(STATUS_BAD_FORMAT, gptq_prepare(h, 2));
    double negative[4] = {1.0, 5.0, 0.0, 1.0};
    EXPECT_STATUS(STATUS_BAD_FORMAT, gptq_prepare(negative, 2));
}

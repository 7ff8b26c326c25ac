/**
 * @file nn_test.c
 * @brief The reference operators against closed forms, small cases worked by hand, and properties.
 *
 * attention has a file of its own, attention_test.c.
 */
#include "common/nn/nn.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"

/* Double arithmetic rounded once to fp32 is within half an ulp: 2^-24, and a little more. */
static const struct tolerance rounded_once = {
    .absolute = 1e-12, .relative = 0x1.001p-24, .norm = 0x1.001p-24};

/* Compares and names the worst element. */
static void expect_close(const char *what, const float *got, const double *want, size_t rows,
                         size_t columns, struct tolerance tolerance) {
    struct comparison result = compare_f32(got, want, rows * columns, tolerance);
    if (!result.pass) {
        char text[256];
        comparison_describe(&result, columns, text, sizeof text);
        TEST_FAIL("%s: %s", what, text);
    }
}

/* ---- matmul ---- */

C_TEST(matmul, worked_by_hand) {
    const float in[] = {1, 2, 3, -1, 0, 4};                          /* (2, 3) */
    const float weight[] = {1, 0, 0, 0, 1, 1, 2, -1, 0.5f, 0, 0, 0}; /* (4, 3) */
    const double want[] = {1, 5, 1.5, 0, -1, 4, 0, 0};               /* (2, 4) */
    float out[8];
    nn_matmul(out, in, weight, 2, 4, 3);
    expect_close("matmul", out, want, 2, 4, (struct tolerance){0});
}

/* Small integers: every sum is exact, so any wrong index shows and no rounding excuses it. */
static void check_integer_matmul(size_t M, size_t N, size_t K) {
    struct rng rng = rng_create(M * 1000003 + N * 1009 + K);
    struct guarded out = {0}, in = {0}, weight = {0};
    ASSERT_OK(guarded_create(&out, M * N));
    ASSERT_OK(guarded_create(&in, M * K));
    ASSERT_OK(guarded_create(&weight, N * K));
    for (size_t i = 0; i < M * K; i++) {
        in.data[i] = (float)rng_below(&rng, 201) - 100;
    }
    for (size_t i = 0; i < N * K; i++) {
        weight.data[i] = (float)rng_below(&rng, 201) - 100;
    }
    double *wide = calloc(M * N + 1, sizeof *wide);
    nn_matmul(out.data, in.data, weight.data, M, N, K);
    nn_matmul_f64(wide, in.data, weight.data, M, N, K);
    for (size_t i = 0; i < M * N; i++) {
        int64_t want = 0;
        for (size_t k = 0; k < K; k++) {
            want += (int64_t)in.data[i / N * K + k] * (int64_t)weight.data[i % N * K + k];
        }
        if (out.data[i] != (float)want || wide[i] != (double)want) {
            TEST_FAIL("M %zu, N %zu, K %zu, index [%zu, %zu]: got %g and %g, want %lld", M, N, K,
                      i / N, i % N, out.data[i], wide[i], (long long)want);
            break;
        }
    }
    EXPECT_TRUE(guarded_intact(&out));
    free(wide);
    guarded_free(&out);
    guarded_free(&in);
    guarded_free(&weight);
}

C_TEST(matmul, integers_are_exact_at_every_odd_size) {
    for (size_t K = 0; K <= 35; K++) {
        check_integer_matmul(3, 5, K);
    }
    check_integer_matmul(1, 1, 1);
    check_integer_matmul(1, 33, 100);
    check_integer_matmul(17, 1, 257);
    check_integer_matmul(0, 5, 7);
    check_integer_matmul(5, 0, 7);
}

C_TEST(matmul, accumulates_in_double) {
    /* Single precision would lose the ones beside 1e8 entirely. */
    enum { K = 19 };
    float in[K], weight[K];
    for (size_t k = 0; k < K; k++) {
        in[k] = weight[k] = 1.0f;
    }
    in[0] = 1e8f;
    in[8] = -1e8f;
    float out;
    nn_matmul(&out, in, weight, 1, 1, K);
    EXPECT_NEAR(17.0, out, 0.0);
}

C_TEST(matmul, f64_keeps_what_fp32_rounds_away) {
    const float in[] = {1.0f, 0x1p-30f};
    const float weight[] = {1.0f, 1.0f};
    double wide;
    float narrow;
    nn_matmul_f64(&wide, in, weight, 1, 1, 2);
    nn_matmul(&narrow, in, weight, 1, 1, 2);
    EXPECT_NEAR(1.0 + 0x1p-30, wide, 0.0);
    EXPECT_NEAR(1.0, narrow, 0.0);
}

C_TEST(bias_add, adds_to_every_row) {
    float x[] = {1, 2, 3, 4, 5, 6};
    const float bias[] = {10, -20, 0.5f};
    const double want[] = {11, -18, 3.5, 14, -15, 6.5};
    nn_bias_add(x, bias, 2, 3);
    expect_close("bias_add", x, want, 2, 3, (struct tolerance){0});
    nn_bias_add(x, bias, 0, 3);
    nn_bias_add(x, bias, 2, 0);
    expect_close("empty bias_add", x, want, 2, 3, (struct tolerance){0});
}

/* ---- elementwise ---- */

/* Computed with 40 digits from the definitions in nn.h. */
static const struct {
    float x;
    double gelu, gelu_tanh, silu, tanh;
} known[] = {
    {-10.0f, -7.6198530241605261e-23, -1.204092348209806e-37, -0.00045397868702434395,
     -0.99999999587769276},
    {-5.0f, -1.4332578593959696e-6, -2.291796196629506e-7, -0.033464254621424278,
     -0.99990920426259513},
    {-1.0f, -0.15865525393145705, -0.1588080093917233, -0.26894142136999512, -0.76159415595576489},
    {-0.5f, -0.15426876936299345, -0.15428599017485608, -0.18877033439907272, -0.46211715726000976},
    {0.0f, 0.0, 0.0, 0.0, 0.0},
    {0.5f, 0.34573123063700655, 0.34571400982514392, 0.31122966560092728, 0.46211715726000976},
    {1.0f, 0.84134474606854295, 0.8411919906082767, 0.73105857863000488, 0.76159415595576489},
    {3.0f, 2.9959503059051097, 2.996362607918227, 2.8577223804672997, 0.99505475368673045},
};
enum { KNOWN = sizeof known / sizeof *known };

C_TEST(activation, equals_the_known_values) {
    for (size_t i = 0; i < KNOWN; i++) {
        const double want[] = {known[i].gelu, known[i].gelu_tanh, known[i].silu, known[i].tanh,
                               known[i].x > 0 ? known[i].x : 0};
        const enum nn_activation f[] = {NN_GELU, NN_GELU_TANH, NN_SILU, NN_TANH, NN_RELU};
        for (size_t j = 0; j < 5; j++) {
            float got;
            nn_activation(&got, &known[i].x, 1, f[j]);
            struct tolerance tight = rounded_once;
            tight.absolute = 0.0; /* the tails too, where 1 + erf would have cancelled */
            expect_close("activation", &got, &want[j], 1, 1, tight);
        }
    }
}

C_TEST(activation, works_in_place_and_on_nothing) {
    float x[KNOWN];
    double want[KNOWN];
    for (size_t i = 0; i < KNOWN; i++) {
        x[i] = known[i].x;
        want[i] = known[i].gelu;
    }
    nn_activation(x, x, 0, NN_GELU);
    EXPECT_NEAR(known[1].x, x[1], 0.0);
    nn_activation(x, x, KNOWN, NN_GELU);
    expect_close("in place", x, want, 1, KNOWN, rounded_once);
}

C_TEST(activation, f_of_x_minus_f_of_minus_x_is_x) {
    /* Of x * s(x) with s(x) + s(-x) = 1: both GELUs and SiLU; and of ReLU. */
    const enum nn_activation f[] = {NN_GELU, NN_GELU_TANH, NN_SILU, NN_RELU};
    struct rng rng = rng_create(1);
    for (size_t i = 0; i < 1000; i++) {
        float x = 4.0f * rng_normal(&rng);
        float both[] = {x, -x};
        float out[2];
        nn_activation(out, both, 2, f[i % 4]);
        EXPECT_NEAR(x, (double)out[0] - out[1], fabs(x) * 0x1p-23);
    }
}

C_TEST(activation, large_values_reach_their_limits) {
    const float big[] = {1e4f, -1e4f, 3e38f, -3e38f};
    const enum nn_activation f[] = {NN_GELU, NN_GELU_TANH, NN_SILU, NN_RELU};
    for (size_t j = 0; j < 4; j++) {
        float out[4];
        nn_activation(out, big, 4, f[j]);
        EXPECT_NEAR(1e4f, out[0], 0.0);
        EXPECT_NEAR(0.0, out[1], 0.0);
        EXPECT_NEAR(3e38f, out[2], 0.0);
        EXPECT_NEAR(0.0, out[3], 0.0);
    }
    float out[4];
    nn_activation(out, big, 4, NN_TANH);
    EXPECT_NEAR(1.0, out[0], 0.0);
    EXPECT_NEAR(-1.0, out[3], 0.0);
}

C_TEST(activation, nan_stays_nan) {
    const enum nn_activation f[] = {NN_GELU, NN_GELU_TANH, NN_SILU, NN_TANH, NN_RELU};
    for (size_t j = 0; j < 5; j++) {
        float x = NAN;
        nn_activation(&x, &x, 1, f[j]);
        EXPECT_TRUE(isnan(x));
    }
}

C_TEST(silu_gate, multiplies_and_may_overwrite_either_input) {
    float gate[KNOWN], up[KNOWN], out[KNOWN];
    double want[KNOWN];
    for (size_t i = 0; i < KNOWN; i++) {
        gate[i] = known[i].x;
        up[i] = (float)i - 2.5f;
        want[i] = known[i].silu * up[i];
    }
    nn_silu_gate(out, gate, up, KNOWN);
    expect_close("silu_gate", out, want, 1, KNOWN, rounded_once);
    memcpy(out, gate, sizeof out);
    nn_silu_gate(out, out, up, KNOWN);
    expect_close("into gate", out, want, 1, KNOWN, rounded_once);
    nn_silu_gate(up, gate, up, KNOWN);
    expect_close("into up", up, want, 1, KNOWN, rounded_once);
}

C_TEST(residual, adds_and_may_overwrite_either_input) {
    float a[] = {1, 2, -3};
    float b[] = {0.5f, -2, 7};
    float out[3];
    const double sum[] = {1.5, 0, 4};
    nn_residual(out, a, b, 3);
    expect_close("residual", out, sum, 1, 3, (struct tolerance){0});
    nn_residual(a, a, b, 3);
    expect_close("into a", a, sum, 1, 3, (struct tolerance){0});
    const double more[] = {2, -2, 11};
    nn_residual(b, a, b, 3);
    expect_close("into b", b, more, 1, 3, (struct tolerance){0});
    nn_residual(b, a, b, 0);
    expect_close("nothing", b, more, 1, 3, (struct tolerance){0});
}

/* ---- norms ---- */

C_TEST(layernorm, worked_by_hand) {
    /* Row 0: mean 2.5, variance 1.25. Row 1: mean 0, variance 4. */
    const float in[] = {1, 2, 3, 4, 2, -2, 2, -2};
    const float weight[] = {1, 2, 1, -1};
    const float bias[] = {0, 0, 10, 1};
    const double s = sqrt(1.25);
    const double want[] = {-1.5 / s, -1 / s, 0.5 / s + 10, -1.5 / s + 1, 1, -2, 11, 2};
    float out[8];
    nn_layernorm(out, in, weight, bias, 2, 4, 0.0f);
    expect_close("layernorm", out, want, 2, 4, rounded_once);
    memcpy(out, in, sizeof out);
    nn_layernorm(out, out, weight, bias, 2, 4, 0.0f);
    expect_close("in place", out, want, 2, 4, rounded_once);
}

C_TEST(layernorm, epsilon_is_added_to_the_variance) {
    const float in[] = {1, -1}, weight[] = {1, 1}, bias[] = {0, 0};
    const double want[] = {0.5, -0.5};
    float out[2];
    nn_layernorm(out, in, weight, bias, 1, 2, 3.0f); /* 1 / sqrt(1 + 3) */
    expect_close("epsilon", out, want, 1, 2, (struct tolerance){0});
}

C_TEST(layernorm, constant_and_single_channel_rows_give_the_bias) {
    const float in[] = {7, 7, 7}, weight[] = {3, 4, 5}, bias[] = {-1, 0, 2};
    const double want[] = {-1, 0, 2};
    float out[3];
    nn_layernorm(out, in, weight, bias, 1, 3, 1e-5f);
    expect_close("constant", out, want, 1, 3, (struct tolerance){0});
    nn_layernorm(out, in, weight, bias, 1, 1, 1e-5f);
    expect_close("C = 1", out, want, 1, 1, (struct tolerance){0});
}

C_TEST(layernorm, has_mean_zero_and_variance_one) {
    enum { C = 771 };
    float x[C], weight[C], bias[C];
    struct rng rng = rng_create(2);
    for (size_t c = 0; c < C; c++) {
        x[c] = 5.0f + 3.0f * rng_normal(&rng);
        weight[c] = 1.0f;
        bias[c] = 0.0f;
    }
    nn_layernorm(x, x, weight, bias, 1, C, 0.0f);
    double sum = 0.0, squares = 0.0;
    for (size_t c = 0; c < C; c++) {
        sum += x[c];
        squares += (double)x[c] * x[c];
    }
    EXPECT_NEAR(0.0, sum / C, 1e-8);
    EXPECT_NEAR(1.0, squares / C, 1e-7);
}

C_TEST(layernorm, survives_a_large_mean) {
    /* E[x^2] - mean^2 in fp32 would be pure noise here: the squares have an ulp of 2^17. */
    enum { C = 8 };
    float near_zero[C], far_away[C], weight[C], bias[C];
    for (size_t c = 0; c < C; c++) {
        near_zero[c] = (float)(c * c) * 0.25f;
        far_away[c] = near_zero[c] + 1048576.0f; /* exact: the ulp at 2^20 is 2^-3 */
        weight[c] = 1.0f;
        bias[c] = 0.0f;
    }
    EXPECT_NEAR(12.25, far_away[7] - 1048576.0f, 0.0);
    float a[C], b[C];
    nn_layernorm(a, near_zero, weight, bias, 1, C, 1e-12f);
    nn_layernorm(b, far_away, weight, bias, 1, C, 1e-12f);
    for (size_t c = 0; c < C; c++) {
        EXPECT_NEAR(a[c], b[c], fabs(a[c]) * 0x1p-22);
    }
}

C_TEST(rmsnorm, worked_by_hand) {
    const float in[] = {3, 4, -1, 1};
    const float weight[] = {1, -2};
    const double s = sqrt(12.5);
    const double want[] = {3 / s, -8 / s, -1, -2};
    float out[4];
    nn_rmsnorm(out, in, weight, 2, 2, 0.0f);
    expect_close("rmsnorm", out, want, 2, 2, rounded_once);
    memcpy(out, in, sizeof out);
    nn_rmsnorm(out, out, weight, 2, 2, 0.0f);
    expect_close("in place", out, want, 2, 2, rounded_once);
    const double halved[] = {-0.5, -1};
    nn_rmsnorm(out, in + 2, weight, 1, 2, 3.0f); /* 1 / sqrt(1 + 3) */
    expect_close("epsilon", out, halved, 1, 2, (struct tolerance){0});
}

C_TEST(rmsnorm, does_not_overflow_where_fp32_squares_would) {
    const float in[] = {1e30f, -1e30f, 0.0f}, weight[] = {1, 1, 1};
    const double want[] = {sqrt(1.5), -sqrt(1.5), 0};
    float out[3];
    nn_rmsnorm(out, in, weight, 1, 3, 1e-5f);
    expect_close("large", out, want, 1, 3, rounded_once);
}

C_TEST(norms, leave_nothing_for_empty_sizes) {
    float out[] = {42};
    const float one[] = {1};
    nn_layernorm(out, one, one, one, 0, 1, 1e-5f);
    nn_layernorm(out, one, one, one, 3, 0, 1e-5f);
    nn_rmsnorm(out, one, one, 0, 1, 1e-5f);
    nn_rmsnorm(out, one, one, 3, 0, 1e-5f);
    nn_softmax(out, one, 0, 1);
    nn_softmax(out, one, 3, 0);
    EXPECT_NEAR(42.0, out[0], 0.0);
}

/* ---- softmax ---- */

C_TEST(softmax, worked_by_hand) {
    const float in[] = {0.0f, (float)M_LN2, 1.0986123f, 5.0f, 5.0f, 5.0f};
    const double want[] = {1.0 / 6, 2.0 / 6, 3.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 3};
    /* ln 2 and ln 3 were rounded on the way in. */
    const struct tolerance tolerance = {.relative = 0x1p-22, .norm = 0x1p-22};
    float out[6];
    nn_softmax(out, in, 2, 3);
    expect_close("softmax", out, want, 2, 3, tolerance);
    memcpy(out, in, sizeof out);
    nn_softmax(out, out, 2, 3);
    expect_close("in place", out, want, 2, 3, tolerance);
}

C_TEST(softmax, rows_sum_to_one_and_a_shift_changes_nothing) {
    enum { ROWS = 5, C = 333 };
    float in[ROWS * C], out[ROWS * C], moved[ROWS * C];
    struct rng rng = rng_create(3);
    for (size_t i = 0; i < ROWS * C; i++) {
        in[i] = (float)rng_below(&rng, 4096) * 0x1p-8f;
    }
    nn_softmax(out, in, ROWS, C);
    for (size_t i = 0; i < ROWS * C; i++) {
        in[i] += i / C % 2 ? 1024.0f : -1024.0f; /* exact */
    }
    nn_softmax(moved, in, ROWS, C);
    for (size_t row = 0; row < ROWS; row++) {
        double sum = 0.0;
        for (size_t c = 0; c < C; c++) {
            sum += out[row * C + c];
            EXPECT_NEAR(out[row * C + c], moved[row * C + c], 0.0);
        }
        EXPECT_NEAR(1.0, sum, 1e-6);
    }
}

C_TEST(softmax, is_stable_for_large_values) {
    const float in[] = {1e4f, 1e4f, -1e4f, -1e4f, -1e4f, -1e4f, FLT_MAX, -FLT_MAX, 0.0f};
    const double want[] = {0.5, 0.5, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1, 0, 0};
    float out[9];
    nn_softmax(out, in, 3, 3);
    expect_close("large", out, want, 3, 3, rounded_once);
}

C_TEST(softmax, masked_elements_are_zero_and_so_are_masked_rows) {
    const float in[] = {-INFINITY, 2, 2, -INFINITY, -INFINITY, -INFINITY};
    const double want[] = {0, 0.5, 0.5, 0, 0, 0};
    float out[6];
    nn_softmax(out, in, 2, 3);
    expect_close("masked", out, want, 2, 3, (struct tolerance){0});
}

C_TEST(softmax, nan_is_not_masked) {
    const float in[] = {1, NAN, -INFINITY, NAN};
    float out[4];
    nn_softmax(out, in, 2, 2);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_TRUE(isnan(out[i]));
    }
}

/* ---- rope ---- */

C_TEST(rope, worked_by_hand) {
    /* HS 4, theta 100: pair 0 is rotated by the position, pair 1 by a tenth of it. */
    const float in[] = {1, 0, 0, 2};
    float x[4];
    memcpy(x, in, sizeof x);
    nn_rope(x, 1, 1, 4, 4, 3, 100.0f, NN_ROPE_INTERLEAVED);
    const double interleaved[] = {cos(3), sin(3), -2 * sin(0.3), 2 * cos(0.3)};
    expect_close("interleaved", x, interleaved, 1, 4, rounded_once);

    memcpy(x, in, sizeof x);
    nn_rope(x, 1, 1, 4, 4, 3, 100.0f, NN_ROPE_HALVES);
    const double rotated[] = {cos(3), -2 * sin(0.3), sin(3), 2 * cos(0.3)};
    expect_close("rotated", x, rotated, 1, 4, rounded_once);
}

C_TEST(rope, angles_are_right_at_far_positions) {
    /* 10000^(-1/2) is 0.01 exactly; an fp32 frequency would be 1e-6 off by here. */
    float x[] = {1, 1, 1, 1};
    nn_rope(x, 1, 1, 4, 4, 4095, 10000.0f, NN_ROPE_HALVES);
    const double want[] = {cos(4095) - sin(4095), cos(40.95) - sin(40.95), cos(4095) + sin(4095),
                           cos(40.95) + sin(40.95)};
    expect_close("far", x, want, 1, 4, rounded_once);
}

C_TEST(rope, table_holds_any_frequencies) {
    const float in[] = {1, 0, 0, 2}, frequencies[] = {0.25f, -0.125f};
    float x[4];
    memcpy(x, in, sizeof x);
    nn_rope_table(x, 1, 1, 4, 4, 3, frequencies, NN_ROPE_INTERLEAVED);
    const double interleaved[] = {cos(0.75), sin(0.75), 2 * sin(0.375), 2 * cos(0.375)};
    expect_close("interleaved", x, interleaved, 1, 4, rounded_once);

    memcpy(x, in, sizeof x);
    nn_rope_table(x, 1, 1, 4, 4, 3, frequencies, NN_ROPE_HALVES);
    const double rotated[] = {cos(0.75), 2 * sin(0.375), sin(0.75), 2 * cos(0.375)};
    expect_close("rotated", x, rotated, 1, 4, rounded_once);
}

C_TEST(rope, position_zero_and_no_tokens_change_nothing) {
    float x[] = {1, -2, 3, 4, 5, 6};
    const double want[] = {1, -2, 3, 4, 5, 6};
    nn_rope(x, 1, 1, 6, 6, 0, 10000.0f, NN_ROPE_INTERLEAVED);
    nn_rope(x, 0, 1, 6, 6, 9, 10000.0f, NN_ROPE_INTERLEAVED);
    nn_rope(x, 1, 0, 6, 6, 9, 10000.0f, NN_ROPE_INTERLEAVED);
    nn_rope(x, 1, 1, 0, 6, 9, 10000.0f, NN_ROPE_HALVES);
    expect_close("unchanged", x, want, 1, 6, (struct tolerance){0});
}

enum { ROPE_HS = 22 };

static double dot(const float *a, const float *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

C_TEST(rope, keeps_lengths_and_sees_only_the_distance) {
    struct rng rng = rng_create(4);
    const enum nn_rope_layout layouts[] = {NN_ROPE_INTERLEAVED, NN_ROPE_HALVES};
    for (size_t i = 0; i < 2; i++) {
        float q[ROPE_HS], k[ROPE_HS], q_moved[ROPE_HS], k_moved[ROPE_HS];
        rng_fill_normal(&rng, q, ROPE_HS, 1.0f);
        rng_fill_normal(&rng, k, ROPE_HS, 1.0f);
        double length = dot(q, q, ROPE_HS);
        double unrotated = dot(q, k, ROPE_HS);
        memcpy(q_moved, q, sizeof q);
        memcpy(k_moved, k, sizeof k);
        nn_rope(q, 1, 1, ROPE_HS, ROPE_HS, 17, 10000.0f, layouts[i]);
        nn_rope(k, 1, 1, ROPE_HS, ROPE_HS, 5, 10000.0f, layouts[i]);
        nn_rope(q_moved, 1, 1, ROPE_HS, ROPE_HS, 1012, 10000.0f, layouts[i]);
        nn_rope(k_moved, 1, 1, ROPE_HS, ROPE_HS, 1000, 10000.0f, layouts[i]);
        EXPECT_NEAR(length, dot(q, q, ROPE_HS), 1e-5);
        EXPECT_NEAR(dot(q, k, ROPE_HS), dot(q_moved, k_moved, ROPE_HS), 1e-5);
        EXPECT_TRUE(fabs(dot(q, k, ROPE_HS) - unrotated) > 1e-2); /* and it was rotated */
    }
}

C_TEST(rope, layouts_are_reorderings_of_each_other) {
    enum { PAIRS = ROPE_HS / 2 };
    struct rng rng = rng_create(5);
    float a[ROPE_HS], b[ROPE_HS];
    rng_fill_normal(&rng, a, ROPE_HS, 1.0f);
    for (size_t i = 0; i < PAIRS; i++) {
        b[i] = a[2 * i];
        b[i + PAIRS] = a[2 * i + 1];
    }
    nn_rope(a, 1, 1, ROPE_HS, ROPE_HS, 7, 10000.0f, NN_ROPE_INTERLEAVED);
    nn_rope(b, 1, 1, ROPE_HS, ROPE_HS, 7, 10000.0f, NN_ROPE_HALVES);
    for (size_t i = 0; i < PAIRS; i++) {
        EXPECT_NEAR(a[2 * i], b[i], 0.0);
        EXPECT_NEAR(a[2 * i + 1], b[i + PAIRS], 0.0);
    }
}

C_TEST(rope, strided_tokens_equal_single_ones_and_the_gap_is_left_alone) {
    enum { T = 3, HEADS = 2, HS = 6, STRIDE = HEADS * HS + 5 };
    struct rng rng = rng_create(6);
    float all[T * STRIDE], single[T * STRIDE];
    rng_fill_normal(&rng, all, T * STRIDE, 1.0f);
    memcpy(single, all, sizeof all);
    nn_rope(all, T, HEADS, HS, STRIDE, 11, 500.0f, NN_ROPE_HALVES);
    for (size_t t = 0; t < T; t++) {
        for (size_t h = 0; h < HEADS; h++) {
            nn_rope(single + t * STRIDE + h * HS, 1, 1, HS, HS, 11 + t, 500.0f, NN_ROPE_HALVES);
        }
    }
    EXPECT_TRUE(memcmp(all, single, sizeof all) == 0);
}

/* ---- embedding ---- */

C_TEST(embedding, copies_rows_or_adds_them) {
    const float table[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const int32_t ids[] = {2, 0, 2, 1};
    struct guarded out = {0};
    ASSERT_OK(guarded_create(&out, 12));
    nn_embedding(out.data, table, ids, 4, 3, false);
    const double rows[] = {7, 8, 9, 1, 2, 3, 7, 8, 9, 4, 5, 6};
    expect_close("rows", out.data, rows, 4, 3, (struct tolerance){0});
    nn_embedding(out.data, table, ids + 1, 2, 3, true);
    const double sums[] = {8, 10, 12, 8, 10, 12, 7, 8, 9, 4, 5, 6};
    expect_close("sums", out.data, sums, 4, 3, (struct tolerance){0});
    nn_embedding(out.data, table, ids, 0, 3, false);
    nn_embedding(out.data, table, ids, 4, 0, false);
    expect_close("nothing", out.data, sums, 4, 3, (struct tolerance){0});
    EXPECT_TRUE(guarded_intact(&out));
    guarded_free(&out);
}

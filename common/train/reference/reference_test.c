/**
 * @file reference_test.c
 * @brief The reference engine's memory, its forward entries against common/nn, and its optimiser
 *        against numbers worked by hand.
 *
 * common/nn is written apart from this engine, computes in double and rounds to fp32 once, so the
 * two agree to half a unit in fp32's last place.
 */
#include "common/train/train_engine.h"

#include <math.h>
#include <string.h>

#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "common/train/reference/gradient_check.h"

/* Half a unit in the last place, 2^-24, and a little more. */
static const struct tolerance rounded_once = {
    .absolute = 1e-12, .relative = 0x1.001p-24, .norm = 0x1.001p-24};

static struct train_engine reference(void) {
    struct train_engine engine;
    EXPECT_OK(train_reference_create(&engine));
    return engine;
}

/* common/nn's result against the engine's. */
static void expect_close(const char *what, const float *nn, const double *engine, size_t count) {
    struct comparison result = compare_f32(nn, engine, count, rounded_once);
    if (!result.pass) {
        char text[256];
        comparison_describe(&result, count, text, sizeof text);
        TEST_FAIL("%s: %s", what, text);
    }
}

/* ---- table and memory ---- */

C_TEST(reference, sets_all_entries) {
    struct train_engine e = reference();
    EXPECT_STR_EQ("reference", e.name);
    EXPECT_INT_EQ(TRAIN_F64, e.activations);
    EXPECT_INT_EQ(TRAIN_F64, e.weights);
    void (*entry)(void);
    const char *entries = (const char *)&e + offsetof(struct train_engine, destroy);
    size_t bytes = sizeof e - offsetof(struct train_engine, destroy);
    for (size_t at = 0; at < bytes; at += sizeof entry) {
        memcpy(&entry, entries + at, sizeof entry);
        EXPECT_TRUE(entry != NULL);
    }
    train_engine_destroy(&e);
    EXPECT_TRUE(e.destroy == NULL);
    train_engine_destroy(&e);
}

C_TEST(reference, memory) {
    struct train_engine e = reference();
    const size_t sizes[] = {0, 1, 255, 256, 257, 10000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *memory;
        ASSERT_OK(e.alloc(e.context, sizes[i], &memory, NULL));
        EXPECT_INT_EQ(0, (uintptr_t)memory % 256);
        for (size_t at = 0; at < sizes[i]; at++) {
            EXPECT_TRUE(((const unsigned char *)memory)[at] == 0);
        }
        e.release(e.context, memory);
    }
    e.release(e.context, NULL);
    void *memory;
    EXPECT_ERROR(STATUS_OVERFLOW, "18446744073709551615 bytes of memory are too many",
                 e.alloc(e.context, SIZE_MAX, &memory, &error));
    EXPECT_TRUE(memory == NULL);
    train_engine_destroy(&e);
}

C_TEST(reference, copies) {
    struct train_engine e = reference();
    const double numbers[] = {1.5, -2.25, 1.0 / 3.0};
    double back[3] = {0};
    void *a, *b;
    ASSERT_OK(e.alloc(e.context, sizeof numbers, &a, NULL));
    ASSERT_OK(e.alloc(e.context, sizeof numbers, &b, NULL));
    EXPECT_OK(e.write(e.context, a, numbers, sizeof numbers));
    EXPECT_OK(e.convert(e.context, b, a, 3));
    EXPECT_OK(e.zero(e.context, a, 2 * sizeof *numbers));
    EXPECT_OK(e.synchronize(e.context, NULL));
    EXPECT_OK(e.read(e.context, back, b, sizeof back));
    gradient_same("converted", numbers, back, 3);
    EXPECT_OK(e.read(e.context, back, a, sizeof back));
    gradient_same("zeroed", (const double[]){0.0, 0.0, 1.0 / 3.0}, back, 3);
    e.release(e.context, a);
    e.release(e.context, b);
    train_engine_destroy(&e);
}

/* ---- forward against common/nn ---- */

static void check_linear(size_t M, size_t N, size_t K) {
    struct gradient_tensors t = gradient_tensors_create(M + N + K);
    const struct train_engine e = t.engine;
    double *in = gradient_random(&t, M * K), *weight = gradient_random(&t, N * K);
    double *bias = gradient_random(&t, N), *out = gradient_unwritten(&t, M * N);
    float *nn = gradient_narrow(&t, out, M * N);
    double *wide = gradient_unwritten(&t, M * N);
    float *in32 = gradient_narrow(&t, in, M * K), *weight32 = gradient_narrow(&t, weight, N * K);
    EXPECT_OK(e.linear(e.context, out, in, weight, NULL, M, N, K));
    nn_matmul(nn, in32, weight32, M, N, K);
    expect_close("linear", nn, out, M * N);
    EXPECT_OK(e.linear(e.context, out, in, weight, bias, M, N, K));
    nn_matmul_f64(wide, in32, weight32, M, N, K);
    for (size_t i = 0; i < M * N; i++) {
        EXPECT_NEAR(wide[i] + bias[i % N], out[i], 1e-12);
    }
    gradient_tensors_free(&t);
}

C_TEST(forward, linear) {
    check_linear(1, 1, 1);
    check_linear(3, 5, 7);
    check_linear(9, 33, 100);
}

C_TEST(forward, activation) {
    enum { COUNT = 501 };
    struct gradient_tensors t = gradient_tensors_create(1);
    const struct train_engine e = t.engine;
    double *in = gradient_random(&t, COUNT), *out = gradient_unwritten(&t, COUNT);
    in[0] = 0.0, in[1] = -12.0, in[2] = 12.0;
    float *in32 = gradient_narrow(&t, in, COUNT), *nn = gradient_narrow(&t, out, COUNT);
    const enum nn_activation functions[] = {NN_GELU, NN_TANH};
    for (size_t i = 0; i < 2; i++) {
        EXPECT_OK(e.activation(e.context, out, in, COUNT, functions[i]));
        nn_activation(nn, in32, COUNT, functions[i]);
        expect_close("activation", nn, out, COUNT);
    }
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, e.activation(e.context, out, in, COUNT, NN_RELU));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  e.activation_backward(e.context, out, in, in, COUNT, NN_GELU_TANH));
    gradient_tensors_free(&t);
}

C_TEST(forward, silu_gate) {
    enum { ROWS = 5, HIDDEN = 37 };
    struct gradient_tensors t = gradient_tensors_create(2);
    const struct train_engine e = t.engine;
    double *in = gradient_random(&t, ROWS * 2 * HIDDEN);
    double *out = gradient_unwritten(&t, ROWS * HIDDEN);
    float *in32 = gradient_narrow(&t, in, ROWS * 2 * HIDDEN);
    float *nn = gradient_narrow(&t, out, ROWS * HIDDEN);
    EXPECT_OK(e.silu_gate(e.context, out, in, ROWS, HIDDEN));
    for (size_t row = 0; row < ROWS; row++) {
        const float *gate = in32 + row * 2 * HIDDEN;
        nn_silu_gate(nn + row * HIDDEN, gate, gate + HIDDEN, HIDDEN);
    }
    expect_close("silu_gate", nn, out, ROWS * HIDDEN);
    gradient_tensors_free(&t);
}

static void check_norms(size_t rows, size_t C) {
    struct gradient_tensors t = gradient_tensors_create(C);
    const struct train_engine e = t.engine;
    size_t count = rows * C;
    double *in = gradient_random(&t, count), *parameters = gradient_random(&t, 2 * C);
    double *out = gradient_unwritten(&t, count), *sum = gradient_unwritten(&t, count);
    double *stats = gradient_unwritten(&t, 2 * rows);
    float *in32 = gradient_narrow(&t, in, count), *nn = gradient_narrow(&t, out, count);
    float *parameters32 = gradient_narrow(&t, parameters, 2 * C);
    struct train_norm norm = {parameters, parameters + C, 1e-5f};
    struct train_dropout none = {0};
    EXPECT_OK(e.layernorm(e.context, out, stats, sum, NULL, in, &none, &norm, rows, C));
    nn_layernorm(nn, in32, parameters32, parameters32 + C, rows, C, 1e-5f);
    expect_close("layernorm", nn, out, count);
    gradient_same("sum", in, sum, count);
    EXPECT_OK(e.rmsnorm(e.context, out, stats, in, &norm, rows, C));
    nn_rmsnorm(nn, in32, parameters32, rows, C, 1e-5f);
    expect_close("rmsnorm", nn, out, count);
    gradient_tensors_free(&t);
}

C_TEST(forward, norms) {
    check_norms(1, 1);
    check_norms(3, 10);
    check_norms(4, 257);
}

/* mean 2, variance 2/3 of 1, 2, 3; mean square 14/3. */
C_TEST(forward, statistics_by_hand) {
    struct train_engine e = reference();
    const double in[] = {1, 2, 3}, weight[] = {1, 1, 2}, bias[] = {0, 5, 0};
    struct train_norm norm = {weight, bias, 0.25f};
    struct train_dropout none = {0};
    double out[3], sum[3], stats[2];
    EXPECT_OK(e.layernorm(e.context, out, stats, sum, in, in, &none, &norm, 1, 3));
    EXPECT_NEAR(4.0, stats[0], 1e-15);
    EXPECT_NEAR(1.0 / sqrt(8.0 / 3.0 + 0.25), stats[1], 1e-15);
    EXPECT_NEAR(-2.0 / sqrt(8.0 / 3.0 + 0.25), out[0], 1e-15);
    EXPECT_NEAR(5.0, out[1], 1e-15);
    EXPECT_NEAR(4.0 / sqrt(8.0 / 3.0 + 0.25), out[2], 1e-15);
    EXPECT_OK(e.rmsnorm(e.context, out, stats, in, &norm, 1, 3));
    EXPECT_NEAR(1.0 / sqrt(14.0 / 3.0 + 0.25), stats[0], 1e-15);
    train_engine_destroy(&e);
}

/* ---- attention ---- */

struct attention_case {
    const int32_t *starts;
    size_t B, NH, KVH, HS;
    bool causal;
};

/* What lse is: p = exp(score - lse) of the keys that a query sees add up to 1. */
static void check_lse(const struct train_attention *a, const double *lse) {
    for (size_t b = 0; b < a->B; b++) {
        for (size_t i = (size_t)a->starts[b] * a->NH; i < (size_t)a->starts[b + 1] * a->NH; i++) {
            size_t t = i / a->NH, head = i % a->NH / (a->NH / a->KVH);
            const double *q = (const double *)a->q + t * a->q_stride + i % a->NH * a->HS;
            size_t last = a->causal ? t : (size_t)a->starts[b + 1] - 1;
            double sum = 0.0;
            for (size_t u = (size_t)a->starts[b]; u <= last; u++) {
                const double *k = (const double *)a->k + u * a->kv_stride + head * a->HS;
                sum += exp((double)a->scale * gradient_dot(q, k, a->HS) - lse[i]);
            }
            EXPECT_NEAR(1.0, sum, 1e-12);
        }
    }
}

static void check_attention(const struct attention_case *c) {
    struct gradient_tensors t = gradient_tensors_create(c->HS);
    const struct train_engine e = t.engine;
    size_t rows = (size_t)c->starts[c->B], stride = (c->NH + 2 * c->KVH) * c->HS + 3,
           k = c->NH * c->HS;
    size_t v = k + c->KVH * c->HS;
    double *x = gradient_random(&t, rows * stride), *out = gradient_unwritten(&t, rows * k);
    double *lse = gradient_unwritten(&t, rows * c->NH), *scores = gradient_unwritten(&t, rows);
    float *x32 = gradient_narrow(&t, x, rows * stride), *nn = gradient_narrow(&t, out, rows * k);
    struct train_attention a = {x,     x + k,  x + v, c->starts, c->starts, c->B,      rows,  rows,
                                c->NH, c->KVH, c->HS, stride,    stride,    c->causal, 0.375f};
    EXPECT_OK(e.attention(e.context, out, lse, &a));
    for (size_t b = 0; b < c->B; b++) {
        size_t first = (size_t)c->starts[b], T = (size_t)c->starts[b + 1] - first;
        float *row = x32 + first * stride;
        struct nn_attention one = {row,   row + k, row + v, NULL,   1,      T,         T,
                                   c->NH, c->KVH,  c->HS,   stride, stride, c->causal, 0.375f};
        nn_attention(nn + first * k, &one, scores);
    }
    expect_close("attention", nn, out, rows * k);
    check_lse(&a, lse);
    gradient_tensors_free(&t);
}

C_TEST(forward, attention) {
    static const int32_t one[] = {0, 9}, three[] = {0, 1, 12, 17};
    for (int causal = 0; causal < 2; causal++) {
        check_attention(&(struct attention_case){one, 1, 1, 1, 5, causal});
        check_attention(&(struct attention_case){one, 1, 4, 4, 8, causal});
        check_attention(&(struct attention_case){three, 3, 6, 2, 7, causal});
    }
}

C_TEST(forward, attention_of_large_scores) {
    struct train_engine e = reference();
    const double q[] = {1000, 1000}, k[] = {1000, 999}, v[] = {1, 3};
    const int32_t starts[] = {0, 2};
    double out[2], lse[2];
    struct train_attention a = {q, k, v, starts, starts, 1, 2, 2, 1, 1, 1, 1, 1, false, 1.0f};
    EXPECT_OK(e.attention(e.context, out, lse, &a));
    EXPECT_NEAR(1.0, out[0], 1e-12);
    EXPECT_NEAR(1e6, lse[1], 1e-9);
    train_engine_destroy(&e);
}

static void check_rope(enum nn_rope_layout layout) {
    enum { ROWS = 6, HEADS = 3, HS = 10, STRIDE = HEADS * HS + 2 };
    struct gradient_tensors t = gradient_tensors_create(4);
    const struct train_engine e = t.engine;
    const int32_t positions[ROWS] = {0, 1, 2, 0, 4095, 17};
    double *x = gradient_random(&t, ROWS * STRIDE);
    float *nn = gradient_narrow(&t, x, ROWS * STRIDE);
    EXPECT_OK(e.rope(e.context, x, positions, ROWS, HEADS, HS, STRIDE, 10000.0f, layout, false));
    for (size_t row = 0; row < ROWS; row++) {
        nn_rope(nn + row * STRIDE, 1, HEADS, HS, STRIDE, (size_t)positions[row], 10000.0f, layout);
    }
    expect_close("rope", nn, x, ROWS * STRIDE);
    gradient_tensors_free(&t);
}

C_TEST(forward, rope) {
    check_rope(NN_ROPE_INTERLEAVED);
    check_rope(NN_ROPE_HALVES);
}

/* ---- rows ---- */

C_TEST(forward, embedding_and_gather) {
    enum { ROWS = 9, V = 5, C = 7 };
    struct gradient_tensors t = gradient_tensors_create(6);
    const struct train_engine e = t.engine;
    double *table = gradient_random(&t, V * C), *out = gradient_random(&t, ROWS * C);
    float *table32 = gradient_narrow(&t, table, V * C), *nn = gradient_narrow(&t, out, ROWS * C);
    int32_t *ids = gradient_integers(&t, ROWS, V);
    EXPECT_OK(e.embedding(e.context, out, table, ids, ROWS, C, true));
    nn_embedding(nn, table32, ids, ROWS, C, true);
    expect_close("embedding that adds", nn, out, ROWS * C);
    EXPECT_OK(e.embedding(e.context, out, table, ids, ROWS, C, false));
    nn_embedding(nn, table32, ids, ROWS, C, false);
    expect_close("embedding", nn, out, ROWS * C);
    EXPECT_OK(e.gather(e.context, out, table, ids, ROWS, C));
    expect_close("gather", nn, out, ROWS * C);
    gradient_tensors_free(&t);
}

C_TEST(forward, scatter_by_hand) {
    struct train_engine e = reference();
    const double in[] = {1, 2, 3, 4};
    const int32_t index[] = {2, 0};
    double out[] = {10, 20, 30, 40, 50, 60};
    EXPECT_OK(e.scatter(e.context, out, in, index, 2, 2));
    gradient_same("scatter", (const double[]){13, 24, 30, 40, 51, 62}, out, 6);
    train_engine_destroy(&e);
}

/* Row 0: p = 1/4, 3/4, and label 1; row 1 counts nothing; row 2: p = 1/2, 1/2, and label 0. */
C_TEST(forward, cross_entropy_by_hand) {
    struct train_engine e = reference();
    double logits[] = {1000.0, 1000.0 + log(3.0), 7.0, 8.0, -4.0, -4.0}, loss = 10.0;
    const int32_t labels[] = {1, -1, 0};
    const double want[] = {0.125, -0.125, 0.0, 0.0, -0.25, 0.25};
    EXPECT_OK(e.cross_entropy(e.context, logits, &loss, labels, 0.5f, 3, 2));
    EXPECT_NEAR(10.0 + 0.5 * (log(4.0 / 3.0) + log(2.0)), loss, 1e-12);
    for (size_t i = 0; i < 6; i++) {
        EXPECT_NEAR(want[i], logits[i], 1e-12);
    }
    train_engine_destroy(&e);
}

/* ---- optimiser ---- */

static void expect_clip(double want_scale, float most, const double *gradient, size_t count,
                        double want_norm) {
    struct train_engine e = reference();
    double scale = NAN, norm = NAN;
    EXPECT_OK(e.clip(e.context, &scale, &norm, gradient, count, most));
    EXPECT_NEAR(want_norm, norm, 1e-15);
    EXPECT_NEAR(want_scale, scale, 1e-15);
    train_engine_destroy(&e);
}

C_TEST(optimiser, clip) {
    const double gradient[] = {3.0, 0.0, -4.0}, zeros[] = {0.0, 0.0};
    expect_clip(1.0, 0.0f, gradient, 3, 5.0);
    expect_clip(1.0, 5.0f, gradient, 3, 5.0);
    expect_clip(1.0, 7.0f, gradient, 3, 5.0);
    expect_clip(0.5, 2.5f, gradient, 3, 5.0);
    expect_clip(1.0, 1.0f, zeros, 2, 0.0);
    expect_clip(1.0, 1.0f, NULL, 0, 0.0);
}

/*
 * All exact in binary. Step 1: g = 0.5 * 4 = 2; w = 1 - 0.25 * 0.5 = 0.875; m = 0.5 * 2 = 1, v =
 * 0.25 * 4 = 1; m / (1 - 0.5) = 2, v / (1 - 0.75) = 4; w -= 0.25 * 2 / (2 + 0.5) = 0.2: 0.675.
 * Step 2: g = -1; w = 0.675 * 0.875 = 0.590625; m = 0.5 - 0.5 = 0, so that it stays; v = 0.75 +
 * 0.25 = 1. The second element does not decay: 1 - 0.2 = 0.8.
 */
C_TEST(optimiser, adamw_by_hand) {
    struct train_engine e = reference();
    double w[] = {1, 1}, copy[2], m[2] = {0}, v[2] = {0}, scale = 0.5, gradient[] = {4, 4};
    struct train_adamw a = {.weights = w,
                            .copy = copy,
                            .gradient = gradient,
                            .m = m,
                            .v = v,
                            .count = 2,
                            .decayed = 1,
                            .scale = &scale,
                            .rate = 0.25f,
                            .beta1 = 0.5f,
                            .beta2 = 0.75f,
                            .eps = 0.5f,
                            .decay = 0.5f,
                            .step = 1};
    EXPECT_OK(e.adamw(e.context, &a));
    EXPECT_NEAR(0.675, w[0], 1e-15);
    EXPECT_NEAR(0.8, w[1], 1e-15);
    gradient_same("copy", w, copy, 2);
    gradient_same("m", (const double[]){1, 1}, m, 2);
    gradient_same("v", (const double[]){1, 1}, v, 2);
    gradient[0] = gradient[1] = -2;
    a.step = 2;
    a.copy = NULL;
    EXPECT_OK(e.adamw(e.context, &a));
    EXPECT_NEAR(0.590625, w[0], 1e-15);
    EXPECT_NEAR(0.8, w[1], 1e-15);
    gradient_same("m", (const double[]){0, 0}, m, 2);
    gradient_same("v", (const double[]){1, 1}, v, 2);
    EXPECT_NEAR(0.675, copy[0], 1e-15); /* not wanted any more */
    train_engine_destroy(&e);
}

/* With the usual betas the first step has m = 0.1 g and v = 0.001 g^2, so it changes by the rate.
 */
C_TEST(optimiser, adamw_first_step_changes_by_the_rate) {
    struct train_engine e = reference();
    double w[] = {0, 0, 0}, m[3] = {0}, v[3] = {0}, scale = 1.0, gradient[] = {0.3, -40, 1e-3};
    struct train_adamw a = {.weights = w,
                            .gradient = gradient,
                            .m = m,
                            .v = v,
                            .count = 3,
                            .scale = &scale,
                            .rate = 1e-3f,
                            .beta1 = 0.9f,
                            .beta2 = 0.999f,
                            .eps = 1e-8f,
                            .decay = 0.01f,
                            .step = 1};
    EXPECT_OK(e.adamw(e.context, &a));
    for (size_t i = 0; i < 3; i++) {
        EXPECT_NEAR(0.1 * gradient[i], m[i], 1e-6 * fabs(gradient[i]));
        EXPECT_NEAR(0.001 * gradient[i] * gradient[i], v[i], 1e-7 * gradient[i] * gradient[i]);
        EXPECT_NEAR(gradient[i] > 0.0 ? -1e-3 : 1e-3, w[i], 1e-7);
    }
    train_engine_destroy(&e);
}

/* One weight through many steps, from the paper's formula: the moments as sums over all steps. */
static double plain_adamw(double w, const double *g, size_t steps, double rate, double decay) {
    const double beta1 = (double)0.9f, beta2 = (double)0.95f, eps = (double)1e-6f;
    for (size_t t = 1; t <= steps; t++) {
        double first = 0.0, second = 0.0, weights1 = 0.0, weights2 = 0.0;
        for (size_t s = 1; s <= t; s++) {
            double weight1 = pow(beta1, (double)(t - s)), weight2 = pow(beta2, (double)(t - s));
            first += weight1 * g[s - 1];
            second += weight2 * g[s - 1] * g[s - 1];
            weights1 += weight1;
            weights2 += weight2;
        }
        w -= rate * decay * w + rate * (first / weights1) / (sqrt(second / weights2) + eps);
    }
    return w;
}

C_TEST(optimiser, adamw_over_many_steps) {
    enum { COUNT = 7, DECAYED = 4, STEPS = 25 };
    struct gradient_tensors t = gradient_tensors_create(8);
    const struct train_engine e = t.engine;
    double *w = gradient_random(&t, COUNT), *g = gradient_random(&t, COUNT * STEPS), scale = 1.0;
    double *begin = gradient_copy(&t, w, COUNT), m[COUNT] = {0}, v[COUNT] = {0}, now[COUNT];
    struct train_adamw a = {.weights = w,
                            .gradient = now,
                            .m = m,
                            .v = v,
                            .count = COUNT,
                            .decayed = DECAYED,
                            .scale = &scale,
                            .rate = 0.01f,
                            .beta1 = 0.9f,
                            .beta2 = 0.95f,
                            .eps = 1e-6f,
                            .decay = 0.1f};
    for (a.step = 1; a.step <= STEPS; a.step++) {
        for (size_t i = 0; i < COUNT; i++) {
            now[i] = g[i * STEPS + a.step - 1];
        }
        EXPECT_OK(e.adamw(e.context, &a));
    }
    for (size_t i = 0; i < COUNT; i++) {
        double decay = i < DECAYED ? (double)0.1f : 0.0;
        EXPECT_NEAR(plain_adamw(begin[i], g + i * STEPS, STEPS, (double)0.01f, decay), w[i], 1e-12);
    }
    gradient_tensors_free(&t);
}

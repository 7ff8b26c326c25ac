/**
 * @file cpu_engine_test.c
 * @brief Every operator of the CPU engine next to the reference's in double, on one thread and on
 *        three, which must give the same bits.
 */
#include "common/cpu/cpu_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/models/fused.h"
#include "common/nn/nn.h"
#include "common/testing/testing.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { REFERENCE, ONE, THREE, ENGINES };

/* Buffers of a case; an operator reads a, b, w and v, and writes out. */
struct tensors {
    float *a, *b, *w, *v, *out;
    size_t count; /* floats of each */
};

static enum status matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                          size_t K, int threads) {
    EXPECT_TRUE(threads >= 1 && threads <= 3);
    nn_matmul(out, in, weight, M, N, K);
    return STATUS_OK;
}

static bool engines_create(struct engine engines[ENGINES]) {
    return engine_reference_create(&engines[REFERENCE]) == STATUS_OK &&
           cpu_engine_create(&engines[ONE], "one", matmul, 1) == STATUS_OK &&
           cpu_engine_create(&engines[THREE], "three", matmul, 3) == STATUS_OK;
}

static void engines_destroy(struct engine engines[ENGINES]) {
    for (size_t i = 0; i < ENGINES; i++) {
        engine_destroy(&engines[i]);
    }
}

static float *normal(struct rng *rng, size_t count, float scale, float mean) {
    float *x = malloc((count + 1) * sizeof *x);
    for (size_t i = 0; x != NULL && i < count; i++) {
        x[i] = mean + scale * rng_normal(rng);
    }
    return x;
}

static struct tensors tensors_create(size_t count) {
    struct rng rng = rng_create(count + 1);
    return (struct tensors){.a = normal(&rng, count, 2.0f, 0.5f),
                            .b = normal(&rng, count, 1.0f, 0.0f),
                            .w = normal(&rng, count, 0.3f, 1.0f),
                            .v = normal(&rng, count, 0.3f, 0.0f),
                            .out = normal(&rng, count, 1.0f, 0.0f),
                            .count = count};
}

static void tensors_free(struct tensors *t) {
    float *const all[] = {t->a, t->b, t->w, t->v, t->out};
    for (size_t i = 0; i < COUNT(all); i++) {
        free(all[i]);
    }
}

/* Sizes of a case. */
struct sizes {
    size_t rows, C, K;
};

typedef enum status operation(const struct engine *e, float *out, const struct tensors *t,
                              const struct sizes *s);

/* fp32 against double: some roundings of each term, and of the sums' partial results. */
static void expect_close(const char *what, const float *want, const float *got, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(got[i] - want[i]) <= 4e-6f * (0.5f + fabsf(want[i])))) {
            TEST_FAIL("%s: element %zu of %zu: got %.9g, want %.9g", what, i, count, (double)got[i],
                      (double)want[i]);
            return;
        }
    }
}

static void check(const char *what, operation *run, const struct sizes *s) {
    struct engine engines[ENGINES] = {{0}};
    struct tensors t = tensors_create(s->rows * (s->C + s->K) + s->C * s->K + s->C);
    size_t outputs = s->rows * s->C, bytes = t.count * sizeof *t.out;
    float *results[ENGINES];
    ASSERT_TRUE(engines_create(engines));
    for (size_t i = 0; i < ENGINES; i++) {
        results[i] = memcpy(malloc(bytes + 1), t.out, bytes);
        EXPECT_OK(run(&engines[i], results[i], &t, s));
    }
    expect_close(what, results[REFERENCE], results[ONE], outputs);
    EXPECT_INT_EQ(0, memcmp(results[ONE], results[THREE], bytes));
    for (size_t i = 0; i < ENGINES; i++) {
        EXPECT_INT_EQ(0, memcmp(results[i] + outputs, t.out + outputs, bytes - outputs * 4));
        free(results[i]);
    }
    tensors_free(&t);
    engines_destroy(engines);
}

static void check_sizes(const char *what, operation *run) {
    const struct sizes sizes[] = {{0, 5, 3},  {1, 1, 1},   {3, 7, 2},    {5, 64, 8},
                                  {2, 33, 5}, {9, 257, 4}, {77, 1030, 3}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        check(what, run, &sizes[i]);
    }
}

#define OPERATION(name, call)                                                                  \
    static enum status run_##name(const struct engine *e, float *out, const struct tensors *t, \
                                  const struct sizes *s) {                                     \
        void *x = e->context;                                                                  \
        size_t rows = s->rows, C = s->C, K = s->K;                                             \
        (void)x, (void)rows, (void)C, (void)K, (void)t;                                        \
        return call;                                                                           \
    }                                                                                          \
    C_TEST(cpu_engine, name) {                                                                 \
        check_sizes(#name, run_##name);                                                        \
    }

#define NORM (&(const struct nn_norm){t->w, t->v, 1e-5f})

OPERATION(bias_add, e->bias_add(x, out, t->b, rows, C))
OPERATION(gelu, e->activation(x, out, t->a, rows *C, NN_GELU))
OPERATION(gelu_in_place, e->activation(x, out, out, rows *C, NN_GELU))
OPERATION(gelu_tanh, e->activation(x, out, t->a, rows *C, NN_GELU_TANH))
OPERATION(silu, e->activation(x, out, t->a, rows *C, NN_SILU))
OPERATION(tanh, e->activation(x, out, t->a, rows *C, NN_TANH))
OPERATION(relu, e->activation(x, out, t->a, rows *C, NN_RELU))
OPERATION(silu_gate, e->silu_gate(x, out, t->a, t->b, rows *C))
OPERATION(silu_gate_in_place, e->silu_gate(x, out, out, t->b, rows *C))
OPERATION(residual, e->residual(x, out, out, t->b, rows *C))
OPERATION(layernorm, e->layernorm(x, out, t->a, t->w, t->v, rows, C, 1e-5f))
OPERATION(layernorm_in_place, e->layernorm(x, out, out, t->w, t->v, rows, C, 1e-5f))
OPERATION(rmsnorm, e->rmsnorm(x, out, t->a, t->w, rows, C, 1e-5f))
OPERATION(rmsnorm_in_place, e->rmsnorm(x, out, out, t->w, rows, C, 1e-5f))
OPERATION(softmax, e->softmax(x, out, t->a, rows, C))
OPERATION(softmax_in_place, e->softmax(x, out, out, rows, C))
OPERATION(linear, engine_linear(e, out, t->a, t->w, t->v, rows, C, K))
OPERATION(linear_activation,
          engine_linear_activation(e, out, t->a, t->w, t->v, rows, C, K, NN_GELU))
OPERATION(residual_layernorm, engine_residual_layernorm(e, out, out, t->b, NORM, rows, C))
OPERATION(linear_residual_layernorm,
          engine_linear_residual_layernorm(e, out, t->a, t->w, t->v, NORM, t->b, rows, C, K))

/* ---- Numbers that are not ---- */

C_TEST(cpu_engine, a_row_far_from_zero_keeps_its_variance) {
    struct engine engines[ENGINES];
    float x[64], one[64], zero[64], want[64], got[64];
    ASSERT_TRUE(engines_create(engines));
    for (size_t i = 0; i < 64; i++) {
        x[i] = 1e4f + (float)(i % 5);
        one[i] = 1.0f, zero[i] = 0.0f;
    }
    nn_layernorm(want, x, one, zero, 1, 64, 1e-5f);
    EXPECT_OK(engines[ONE].layernorm(engines[ONE].context, got, x, one, zero, 1, 64, 1e-5f));
    expect_close("layernorm", want, got, 64);
    engines_destroy(engines);
}

C_TEST(cpu_engine, not_a_number_stays_one_and_infinities_do_as_in_the_reference) {
    const float in[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e30f, -1e30f, 88.9f, -104.0f};
    struct engine engines[ENGINES];
    float want[COUNT(in)], got[COUNT(in)];
    ASSERT_TRUE(engines_create(engines));
    const struct engine *e = &engines[ONE];
    for (int f = NN_GELU; f <= NN_RELU; f++) {
        nn_activation(want, in, COUNT(in), (enum nn_activation)f);
        EXPECT_OK(e->activation(e->context, got, in, COUNT(in), (enum nn_activation)f));
        for (size_t i = 0; i < COUNT(in); i++) {
            /* The engine has no denormals. */
            bool close = fabsf(want[i] - got[i]) <= 1e-6f * fabsf(want[i]) + 1e-37f;
            if (isnan(want[i]) ? !isnan(got[i]) : want[i] != got[i] && !close) {
                TEST_FAIL("activation %d of %g: got %g, want %g", f, (double)in[i], (double)got[i],
                          (double)want[i]);
            }
        }
    }
    const float none[] = {-INFINITY, -INFINITY, -INFINITY}, bad[] = {0.0f, NAN, 1.0f};
    EXPECT_OK(e->softmax(e->context, got, none, 1, 3));
    EXPECT_TRUE(got[0] == 0.0f && got[1] == 0.0f && got[2] == 0.0f);
    EXPECT_OK(e->softmax(e->context, got, bad, 1, 3));
    EXPECT_TRUE(isnan(got[0]) && isnan(got[1]) && isnan(got[2]));
    engines_destroy(engines);
}

/* ---- Tables and positions ---- */

C_TEST(cpu_engine, embedding) {
    const float table[] = {1, 2, 3, 4, 5, 6};
    const int32_t ids[] = {2, 0, 2};
    struct engine engines[ENGINES];
    float out[6];
    ASSERT_TRUE(engines_create(engines));
    const struct engine *e = &engines[THREE];
    EXPECT_OK(e->embedding(e->context, out, table, ids, 3, 2, false));
    EXPECT_OK(e->embedding(e->context, out, table, ids, 3, 2, true));
    const float want[] = {10, 12, 2, 4, 10, 12};
    EXPECT_INT_EQ(0, memcmp(want, out, sizeof want));
    engines_destroy(engines);
}

/* The table of angles grows, and begins anew for another size or theta. */
C_TEST(cpu_engine, rope) {
    const struct {
        size_t T, heads, HS, gap, position;
        float theta;
        enum nn_rope_layout layout;
    } calls[] = {
        {1, 1, 2, 0, 0, 1e4f, NN_ROPE_INTERLEAVED},     {3, 2, 8, 3, 0, 1e4f, NN_ROPE_INTERLEAVED},
        {1, 2, 8, 0, 3, 1e4f, NN_ROPE_INTERLEAVED},     {1, 2, 8, 0, 4, 1e4f, NN_ROPE_HALVES},
        {5, 3, 34, 0, 900, 1e4f, NN_ROPE_HALVES},       {5, 3, 34, 1, 2, 5e5f, NN_ROPE_HALVES},
        {0, 3, 34, 0, 9000, 5e5f, NN_ROPE_HALVES},      {2, 1, 0, 0, 5, 5e5f, NN_ROPE_HALVES},
        {2, 1, 48, 0, 4000, 1e4f, NN_ROPE_INTERLEAVED},
    };
    struct engine engines[ENGINES];
    ASSERT_TRUE(engines_create(engines));
    for (size_t i = 0; i < COUNT(calls); i++) {
        size_t stride = calls[i].heads * calls[i].HS + calls[i].gap, count = calls[i].T * stride;
        struct tensors t = tensors_create(count);
        memcpy(t.b, t.a, count * sizeof *t.a);
        nn_rope(t.a, calls[i].T, calls[i].heads, calls[i].HS, stride, calls[i].position,
                calls[i].theta, calls[i].layout);
        EXPECT_OK(engines[ONE].rope(engines[ONE].context, t.b, calls[i].T, calls[i].heads,
                                    calls[i].HS, stride, calls[i].position, calls[i].theta,
                                    calls[i].layout));
        expect_close("rope", t.a, t.b, count);
        tensors_free(&t);
    }
    engines_destroy(engines);
}

/* Frequencies of the caller's, which may change, between calls without. */
C_TEST(cpu_engine, rope_table) {
    enum { T = 3, HEADS = 2, HS = 8, COUNT_X = T * HEADS * HS };
    float frequencies[HS / 2] = {1.0f, 0.3f, 0.01f, 0.0f};
    struct engine engines[ENGINES];
    struct tensors t = tensors_create(COUNT_X);
    ASSERT_TRUE(engines_create(engines));
    const struct engine *e = &engines[ONE];
    memcpy(t.b, t.a, COUNT_X * sizeof *t.a);
    for (size_t i = 0; i < 4; i++) {
        frequencies[2] += i == 2 ? 0.5f : 0.0f;
        nn_rope_table(t.a, T, HEADS, HS, HEADS * HS, 5 * i, frequencies, NN_ROPE_HALVES);
        nn_rope(t.a, T, HEADS, HS, HEADS * HS, 7, 1e4f, NN_ROPE_INTERLEAVED);
        EXPECT_OK(e->rope_table(e->context, t.b, T, HEADS, HS, HEADS * HS, 5 * i, frequencies,
                                NN_ROPE_HALVES));
        EXPECT_OK(e->rope(e->context, t.b, T, HEADS, HS, HEADS * HS, 7, 1e4f, NN_ROPE_INTERLEAVED));
    }
    expect_close("rope_table", t.a, t.b, COUNT_X);
    tensors_free(&t);
    engines_destroy(engines);
}

/* ---- Attention ---- */

/* q, k and v in one row of a token with a gap of NaN; masked keys are NaN, too. */
static void check_attention(struct nn_attention a, bool masked, const int32_t *starts) {
    struct engine engines[ENGINES] = {{0}};
    size_t width = (a.NH + 2 * a.KVH) * a.HS + 3, out_width = a.NH * a.HS;
    size_t tokens = a.B * (a.S > a.T ? a.S : a.T), outputs = a.B * a.T * out_width;
    struct rng rng = rng_create(tokens + a.HS);
    float *x = normal(&rng, tokens * width, 1.0f, 0.0f), *results[ENGINES];
    uint8_t *mask = calloc(tokens + 1, 1);
    ASSERT_TRUE(engines_create(engines));
    for (size_t i = 0; i < tokens; i++) {
        mask[i] = !masked || rng_below(&rng, 3) != 0;
        for (size_t c = a.NH * a.HS; c < width; c++) {
            bool gap = c + 3 >= width || (mask[i] == 0 && a.B * a.S == tokens);
            x[i * width + c] = gap ? NAN : x[i * width + c];
        }
    }
    a.q = x, a.k = x + a.NH * a.HS, a.v = a.k + a.KVH * a.HS;
    a.q_stride = a.kv_stride = width;
    a.mask = masked ? mask : NULL;
    a.scale = 1.0f / sqrtf((float)(a.HS + 1));
    for (size_t i = 0; i < ENGINES; i++) {
        const struct engine *e = &engines[i];
        results[i] = calloc(outputs + 1, sizeof *results[i]);
        EXPECT_OK(starts == NULL ? e->attention(e->context, results[i], &a)
                                 : engine_attention_packed(e, results[i], &a, starts, starts));
        EXPECT_TRUE(results[i][outputs] == 0.0f);
    }
    expect_close("attention", results[REFERENCE], results[ONE], outputs);
    EXPECT_INT_EQ(0, memcmp(results[ONE], results[THREE], outputs * sizeof **results));
    for (size_t i = 0; i < ENGINES; i++) {
        free(results[i]);
    }
    free(x);
    free(mask);
    engines_destroy(engines);
}

C_TEST(cpu_engine, attention) {
    const struct nn_attention sizes[] = {
        {.B = 1, .T = 1, .S = 1, .NH = 1, .KVH = 1, .HS = 1},
        {.B = 2, .T = 3, .S = 5, .NH = 3, .KVH = 3, .HS = 7},
        {.B = 1, .T = 1, .S = 37, .NH = 8, .KVH = 4, .HS = 8},
        {.B = 3, .T = 2, .S = 9, .NH = 6, .KVH = 1, .HS = 33},
        {.B = 1, .T = 33, .S = 65, .NH = 2, .KVH = 1, .HS = 65},
        {.B = 2, .T = 31, .S = 31, .NH = 4, .KVH = 4, .HS = 64},
        {.B = 1, .T = 8, .S = 8, .NH = 2, .KVH = 2, .HS = 48},
        {.B = 4, .T = 100, .S = 100, .NH = 3, .KVH = 3, .HS = 32},
        {.B = 2, .T = 2, .S = 0, .NH = 3, .KVH = 3, .HS = 32},
        {.B = 2, .T = 20, .S = 0, .NH = 3, .KVH = 3, .HS = 32},
        {.B = 2, .T = 0, .S = 4, .NH = 3, .KVH = 3, .HS = 32},
    };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct nn_attention causal = sizes[i];
        causal.causal = true;
        check_attention(sizes[i], false, NULL);
        check_attention(sizes[i], true, NULL);
        if (causal.S >= causal.T) {
            check_attention(causal, false, NULL);
            check_attention(causal, true, NULL);
        }
    }
}

C_TEST(cpu_engine, attention_of_packed_sequences) {
    const int32_t starts[] = {0, 5, 6, 70, 79}, one[] = {0, 3};
    struct nn_attention a = {.B = 4, .T = 64, .S = 64, .NH = 4, .KVH = 4, .HS = 24};
    check_attention(a, false, starts);
    a.B = 1, a.T = a.S = 3, a.KVH = 2;
    check_attention(a, false, one);
}

C_TEST(cpu_engine, sizes_that_overflow_are_refused) {
    struct engine engines[ENGINES];
    ASSERT_TRUE(engines_create(engines));
    const struct engine *e = &engines[THREE];
    const struct nn_attention attention = {.S = SIZE_MAX / 4, .HS = 8};
    EXPECT_STATUS(STATUS_OVERFLOW, e->attention(e->context, NULL, &attention));
    EXPECT_STATUS(STATUS_OVERFLOW,
                  e->rope(e->context, NULL, 1, 1, 8, 8, SIZE_MAX / 4, 1e4f, NN_ROPE_HALVES));
    engines_destroy(engines);
}

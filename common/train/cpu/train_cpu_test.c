/**
 * @file train_cpu_test.c
 * @brief Every entry of the CPU's engine next to the reference's in double, on one thread and on
 *        three, which must give the same bits.
 */
#include "common/train/cpu/train_cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"
#include "common/train/occurrences.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { REFERENCE, ONE, THREE, ENGINES, TENSORS = 8 };

/* Sizes of a case; what each means is up to the operation. */
struct sizes {
    size_t M, N, K;
};

/* An operation on tensors in the engine's type; all of them are compared afterwards. */
typedef enum status operation(const struct train_engine *e, void *const *t, const struct sizes *s,
                              int variant);

/* One case: the operation, and how many elements each tensor has. */
struct test_case {
    const char *what;
    operation *run;
    struct sizes sizes;
    size_t counts[TENSORS];
    int variant;
};

static bool engines_create(struct train_engine engines[ENGINES]) {
    return train_reference_create(&engines[REFERENCE]) == STATUS_OK &&
           train_cpu_create(&engines[ONE], 1) == STATUS_OK &&
           train_cpu_create(&engines[THREE], 3) == STATUS_OK;
}

/* Tensor `index`: the same values, exact in fp32, in any type. */
static void *tensor_create(enum train_type type, size_t count, size_t index) {
    struct rng rng = rng_create(index + 1);
    char *memory = calloc(count + 1, train_type_bytes(type));
    for (size_t i = 0; memory != NULL && i < count; i++) {
        float value = rng_normal(&rng);
        if (type == TRAIN_F64) {
            ((double *)(void *)memory)[i] = (double)value;
        } else {
            ((float *)(void *)memory)[i] = value;
        }
    }
    return memory;
}

/* Roundings of fp32 in terms that are as large as the inputs or as the largest result; they may
   cancel in any single one. */
static void expect_close(const struct test_case *c, size_t tensor, const double *want,
                         const float *got) {
    double largest = 0.1;
    for (size_t i = 0; i < c->counts[tensor]; i++) {
        largest = fmax(largest, fabs(want[i]));
    }
    for (size_t i = 0; i < c->counts[tensor]; i++) {
        if (!(fabs((double)got[i] - want[i]) <= 3e-6 * largest)) {
            TEST_FAIL("%s, variant %d, %zu x %zu x %zu: tensor %zu, element %zu: got %.9g, want "
                      "%.9g",
                      c->what, c->variant, c->sizes.M, c->sizes.N, c->sizes.K, tensor, i,
                      (double)got[i], want[i]);
            return;
        }
    }
}

static void check(const struct test_case *c) {
    struct train_engine engines[ENGINES] = {{0}};
    void *tensors[ENGINES][TENSORS];
    ASSERT_TRUE(engines_create(engines));
    for (size_t e = 0; e < ENGINES; e++) {
        for (size_t i = 0; i < TENSORS; i++) {
            tensors[e][i] = tensor_create(engines[e].weights, c->counts[i], i);
        }
        EXPECT_OK(c->run(&engines[e], tensors[e], &c->sizes, c->variant));
    }
    for (size_t i = 0; i < TENSORS; i++) {
        expect_close(c, i, tensors[REFERENCE][i], tensors[ONE][i]);
        size_t bytes = (c->counts[i] + 1) * sizeof(float); /* one more: nothing is written there */
        EXPECT_INT_EQ(0, memcmp(tensors[ONE][i], tensors[THREE][i], bytes));
        EXPECT_TRUE(((float *)tensors[ONE][i])[c->counts[i]] == 0.0f);
    }
    for (size_t e = 0; e < ENGINES; e++) {
        for (size_t i = 0; i < TENSORS; i++) {
            free(tensors[e][i]);
        }
        train_engine_destroy(&engines[e]);
    }
}

/* ---- Linear layers ---- */

enum { BIAS = 1, ADD = 2, IN_PLACE = 4, NO_DIN = 8 };

static enum status run_linear(const struct train_engine *e, void *const *t, const struct sizes *s,
                              int variant) {
    return e->linear(e->context, t[0], t[1], t[2], variant & BIAS ? t[3] : NULL, s->M, s->N, s->K);
}

static enum status run_linear_backward(const struct train_engine *e, void *const *t,
                                       const struct sizes *s, int variant) {
    void *add = variant & IN_PLACE ? t[0] : variant & ADD ? t[1] : NULL;
    return e->linear_backward(e->context, variant & NO_DIN ? NULL : t[0], add, t[2],
                              variant & BIAS ? t[3] : NULL, t[4], t[5], t[6], s->M, s->N, s->K);
}

C_TEST(train_cpu, linear) {
    const struct sizes sizes[] = {{1, 1, 1},     {3, 5, 7},     {13, 33, 17},  {25, 64, 300},
                                  {60, 70, 520}, {300, 40, 48}, {500, 530, 9}, {4, 3, 0}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t M = sizes[i].M, N = sizes[i].N, K = sizes[i].K;
        for (int variant = 0; variant < 16; variant++) {
            const struct test_case forward = {
                "linear", run_linear, sizes[i], {M * N, M * K, N * K, N}, variant};
            const struct test_case backward = {"linear_backward",
                                               run_linear_backward,
                                               sizes[i],
                                               {M * K, M * K, N * K, N, M * N, M * K, N * K},
                                               variant};
            if (variant < 2) {
                check(&forward);
            }
            if (!(variant & ADD && variant & IN_PLACE)) {
                check(&backward);
            }
        }
    }
}

/* ---- Elementwise ---- */

static struct train_dropout dropout_of(int variant) {
    return (struct train_dropout){.p = variant & 1 ? 0.3f : 0.0f, .seed = 5, .site = 2, .step = 9};
}

static enum status run_activation(const struct train_engine *e, void *const *t,
                                  const struct sizes *s, int variant) {
    enum nn_activation f = variant ? NN_GELU : NN_TANH;
    TRY(e->activation(e->context, t[0], t[1], s->M, f));
    TRY(e->activation_backward(e->context, t[2], t[3], t[1], s->M, f));
    return e->activation_backward(e->context, t[3], t[3], t[1], s->M, f);
}

static enum status run_silu_gate(const struct train_engine *e, void *const *t,
                                 const struct sizes *s, int variant) {
    (void)variant;
    TRY(e->silu_gate(e->context, t[0], t[1], s->M, s->N));
    return e->silu_gate_backward(e->context, t[2], t[3], t[1], s->M, s->N);
}

static enum status run_dropout(const struct train_engine *e, void *const *t, const struct sizes *s,
                               int variant) {
    struct train_dropout dropout = dropout_of(variant);
    void *add = variant & 2 ? t[1] : NULL;
    return e->dropout(e->context, variant & 4 ? t[2] : t[0], add, t[2], s->M, &dropout);
}

static enum status run_bias(const struct train_engine *e, void *const *t, const struct sizes *s,
                            int variant) {
    enum nn_activation f = variant & 2 ? NN_GELU : NN_TANH;
    struct train_dropout dropout = dropout_of(variant);
    TRY(e->activation_bias_backward(e->context, t[0], t[3], t[1], t[2], s->M, s->N, f));
    return e->dropout_bias_backward(e->context, t[1], t[3], t[1], s->M, s->N, &dropout);
}

C_TEST(train_cpu, bias_backward) {
    for (int variant = 0; variant < 4; variant++) {
        check(&(struct test_case){"bias", run_bias, {5, 7, 0}, {35, 35, 35, 7}, variant});
        check(&(struct test_case){
            "bias", run_bias, {40, 300, 0}, {40 * 300, 40 * 300, 40 * 300, 300}, variant});
    }
}

C_TEST(train_cpu, elementwise) {
    const size_t sizes[] = {0, 1, 5, 1000, 9001};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t n = sizes[i];
        for (int variant = 0; variant < 8; variant++) {
            check(&(struct test_case){"dropout", run_dropout, {n, 0, 0}, {n, n, n}, variant});
            if (variant < 2) {
                check(&(struct test_case){
                    "activation", run_activation, {n, 0, 0}, {n, n, n, n}, variant});
            }
        }
    }
    check(&(struct test_case){
        "silu_gate", run_silu_gate, {7, 33, 0}, {7 * 33, 14 * 33, 14 * 33, 7 * 33}, 0});
    check(&(struct test_case){
        "silu_gate", run_silu_gate, {40, 257, 0}, {40 * 257, 80 * 257, 80 * 257, 40 * 257}, 0});
}

C_TEST(train_cpu, other_activations_are_refused) {
    struct train_engine engines[ENGINES];
    float x = 0.0f;
    ASSERT_TRUE(engines_create(engines));
    struct train_engine *e = &engines[ONE];
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, e->activation(e->context, &x, &x, 1, NN_RELU));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  e->activation_backward(e->context, &x, &x, &x, 1, NN_SILU));
    for (size_t i = 0; i < ENGINES; i++) {
        train_engine_destroy(&engines[i]);
    }
}

/* ---- Norms ---- */

/* Forward into t[0], stats t[1], sum t[2]; then backward into t[6] and the parameters' t[4], t[5].
 */
static enum status run_layernorm(const struct train_engine *e, void *const *t,
                                 const struct sizes *s, int variant) {
    struct train_dropout dropout = dropout_of(variant);
    const struct train_norm norm = {t[4], t[5], 1e-5f};
    TRY(e->layernorm(e->context, t[0], t[1], t[2], variant & 2 ? t[3] : NULL, t[2], &dropout, &norm,
                     s->M, s->N));
    const struct train_norm_gradient gradient = {t[6], t[5]};
    void *din = variant & 2 ? t[7] : t[3];
    return e->layernorm_backward(e->context, din, &gradient, t[7], t[2], t[1], &norm, s->M, s->N);
}

static enum status run_rmsnorm(const struct train_engine *e, void *const *t, const struct sizes *s,
                               int variant) {
    const struct train_norm norm = {t[4], NULL, 1e-5f};
    TRY(e->rmsnorm(e->context, t[0], t[1], t[2], &norm, s->M, s->N));
    const struct train_norm_gradient gradient = {t[6], NULL};
    void *add = variant & 1 ? t[3] : NULL, *din = variant & 2 ? t[7] : variant & 1 ? t[3] : t[0];
    return e->rmsnorm_backward(e->context, din, add, &gradient, t[7], t[2], t[1], &norm, s->M,
                               s->N);
}

C_TEST(train_cpu, norms) {
    const struct sizes sizes[] = {{1, 3, 0}, {3, 16, 0}, {9, 33, 0}, {300, 257, 0}, {2, 1024, 0}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t rows = sizes[i].M, C = sizes[i].N, all = rows * C;
        for (int variant = 0; variant < 4; variant++) {
            check(&(struct test_case){"layernorm",
                                      run_layernorm,
                                      sizes[i],
                                      {all, 2 * rows, all, all, C, C, C, all},
                                      variant});
            check(&(struct test_case){
                "rmsnorm", run_rmsnorm, sizes[i], {all, rows, all, all, C, C, C, all}, variant});
        }
    }
}

/* ---- Attention ---- */

struct heads {
    size_t NH, KVH, HS, gap;
};

static const struct heads heads[] = {
    {1, 1, 1, 0}, {2, 2, 3, 1}, {4, 2, 8, 0}, {3, 1, 34, 2}, {2, 2, 64, 0}};
static const int32_t starts[][5] = {{0, 1, 1, 1, 1}, {0, 5, 6, 36, 60}, {0, 90, 93, 100, 131}};

/* q, k and v in rows of t[0]; out t[1], lse t[2], dout t[3], gradients t[4]. K counts heads[], M
   starts[]. */
static enum status run_attention(const struct train_engine *e, void *const *t,
                                 const struct sizes *s, int variant) {
    const struct heads *h = &heads[s->K];
    const int32_t *at = starts[s->M];
    size_t bytes = train_type_bytes(e->activations), q = h->NH * h->HS, kv = h->KVH * h->HS;
    size_t B = s->M == 0 ? 1 : 4, longest = 0;
    for (size_t b = 0; b < B; b++) {
        size_t length = (size_t)(at[b + 1] - at[b]);
        longest = length > longest ? length : longest;
    }
    const struct train_attention a = {.q = t[0],
                                      .k = (char *)t[0] + q * bytes,
                                      .v = (char *)t[0] + (q + kv) * bytes,
                                      .starts = at,
                                      .host_starts = at,
                                      .B = B,
                                      .rows = (size_t)at[B],
                                      .longest = longest,
                                      .NH = h->NH,
                                      .KVH = h->KVH,
                                      .HS = h->HS,
                                      .q_stride = s->N,
                                      .kv_stride = s->N,
                                      .causal = variant,
                                      .scale = 1.0f / sqrtf((float)h->HS)};
    const struct train_attention_gradient gradient = {t[4], (char *)t[4] + q * bytes,
                                                      (char *)t[4] + (q + kv) * bytes};
    TRY(e->attention(e->context, t[1], t[2], &a));
    return e->attention_backward(e->context, &gradient, t[3], t[1], t[2], &a);
}

C_TEST(train_cpu, attention) {
    for (size_t i = 0; i < COUNT(heads) * COUNT(starts) * 2; i++) {
        const struct heads *h = &heads[i / 2 % COUNT(heads)];
        const int32_t *at = starts[i / 2 / COUNT(heads)];
        size_t rows = (size_t)at[4], width = (h->NH + 2 * h->KVH) * h->HS + h->gap;
        size_t out = rows * h->NH * h->HS;
        check(&(struct test_case){"attention",
                                  run_attention,
                                  {i / 2 / COUNT(heads), width, i / 2 % COUNT(heads)},
                                  {rows * width, out, rows * h->NH, out, rows * width},
                                  i % 2});
    }
}

static enum status run_rope(const struct train_engine *e, void *const *t, const struct sizes *s,
                            int variant) {
    static const int32_t positions[] = {0, 1, 2, 900, 0, 1, 5};
    return e->rope(e->context, t[0], positions, s->M, s->N, s->K, s->N * s->K + 3, 1e4f,
                   variant & 1 ? NN_ROPE_HALVES : NN_ROPE_INTERLEAVED, variant & 2);
}

C_TEST(train_cpu, rope) {
    for (int variant = 0; variant < 4; variant++) {
        check(&(struct test_case){"rope", run_rope, {7, 3, 8}, {7 * 27}, variant});
        check(&(struct test_case){"rope", run_rope, {5, 1, 34}, {5 * 37}, variant});
        check(&(struct test_case){"rope", run_rope, {0, 1, 34}, {0}, variant});
    }
}

/* ---- Tables and rows ---- */

/* Row i has id i * i % M; t[0], t[2]: tables (M, N); t[1]: out (K, N); t[3]: its gradient. */
static enum status run_embedding(const struct train_engine *e, void *const *t,
                                 const struct sizes *s, int variant) {
    enum { MOST = 400 };
    int32_t ids[MOST], block[4 * MOST + 2], counts[MOST];
    struct train_occurrences occurrences;
    for (size_t i = 0; i < s->K; i++) {
        ids[i] = (int32_t)(i * i % s->M);
    }
    TRY(e->embedding(e->context, t[1], t[0], ids, s->K, s->N, variant));
    TRY(train_occurrences_build(&occurrences, block, counts, ids, s->K, s->M, NULL));
    return e->embedding_backward(e->context, t[2], t[3], &occurrences, s->N);
}

/* t[0]: some rows of t[1] (M, N); then t[2] (M, N) += t[0] at the same rows. */
static enum status run_gather(const struct train_engine *e, void *const *t, const struct sizes *s,
                              int variant) {
    int32_t index[200];
    (void)variant;
    for (size_t i = 0; i < s->K; i++) {
        index[i] = (int32_t)(s->M - 1 - 2 * i);
    }
    TRY(e->gather(e->context, t[0], t[1], index, s->K, s->N));
    return e->scatter(e->context, t[2], t[0], index, s->K, s->N);
}

C_TEST(train_cpu, rows_of_tables) {
    const struct sizes sizes[] = {{3, 5, 7}, {40, 33, 1}, {100, 300, 400}, {2, 4, 200}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t table = sizes[i].M * sizes[i].N, out = sizes[i].K * sizes[i].N;
        for (int variant = 0; variant < 2; variant++) {
            check(&(struct test_case){
                "embedding", run_embedding, sizes[i], {table, out, table, out}, variant});
        }
    }
    check(&(struct test_case){
        "gather", run_gather, {400, 200, 200}, {200 * 200, 400 * 200, 400 * 200}, 0});
    check(&(struct test_case){"gather", run_gather, {1, 3, 0}, {0, 3, 3}, 0});
}

/* Logits t[0] (M, N), loss t[1]; every fifth row has no label. */
static enum status run_cross_entropy(const struct train_engine *e, void *const *t,
                                     const struct sizes *s, int variant) {
    int32_t labels[100];
    for (size_t i = 0; i < s->M; i++) {
        labels[i] = i % 5 == 3 ? -1 : (int32_t)(i * 31 % s->N);
    }
    return e->cross_entropy(e->context, t[0], t[1], labels, variant ? 0.01f : 1.0f, s->M, s->N);
}

C_TEST(train_cpu, cross_entropy) {
    const struct sizes sizes[] = {{0, 3, 0}, {1, 1, 0}, {4, 3, 0}, {100, 515, 0}};
    for (size_t i = 0; i < COUNT(sizes) * 2; i++) {
        const struct sizes *s = &sizes[i / 2];
        check(&(struct test_case){"cross_entropy", run_cross_entropy, *s, {s->M * s->N, 1}, i % 2});
    }
}

/* ---- Optimiser ---- */

/* Two steps: weights t[0], gradient t[1], moments t[2], t[3], scale t[4], norm t[5]. */
static enum status run_adamw(const struct train_engine *e, void *const *t, const struct sizes *s,
                             int variant) {
    size_t bytes = s->M * train_type_bytes(e->weights);
    TRY(e->zero(e->context, t[2], bytes));
    TRY(e->zero(e->context, t[3], bytes));
    for (uint64_t step = 1; step <= 2; step++) {
        const struct train_adamw adamw = {.weights = t[0],
                                          .gradient = t[1],
                                          .m = t[2],
                                          .v = t[3],
                                          .count = s->M,
                                          .decayed = s->N,
                                          .scale = t[4],
                                          .rate = 0.01f,
                                          .beta1 = 0.9f,
                                          .beta2 = 0.999f,
                                          .eps = 1e-6f,
                                          .decay = 0.1f,
                                          .step = step};
        TRY(e->clip(e->context, t[4], t[5], t[1], s->M, (float)variant));
        TRY(e->adamw(e->context, &adamw));
    }
    return STATUS_OK;
}

C_TEST(train_cpu, optimiser) {
    const struct sizes sizes[] = {{1, 0, 0}, {33, 33, 0}, {1000, 7, 0}, {70000, 40001, 0}};
    for (size_t i = 0; i < COUNT(sizes) * 2; i++) {
        size_t n = sizes[i / 2].M;
        check(&(struct test_case){
            "adamw", run_adamw, sizes[i / 2], {n, n, n, n, 1, 1}, (int)(i % 2) * 2});
    }
}

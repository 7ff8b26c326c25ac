#include "common/model/llama2.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/llama2_random.h"
#include "common/testing/testing.h"

enum { V = 67, T = 12 };

static struct llama2_config small_config(enum nn_rope_layout layout) {
    return (struct llama2_config){.C = 24,
                                  .hidden = 36,
                                  .L = 3,
                                  .NH = 6,
                                  .KVH = 2,
                                  .HS = 4,
                                  .V = V,
                                  .T = T,
                                  .rope_theta = 10000.0f,
                                  .norm_eps = 1e-5f,
                                  .rope_layout = layout};
}

static const int32_t text[T] = {1, 5, 66, 0, 23, 23, 9, 41, 2, 60, 33, 7};

/*
 * A second formulation of the decoder, to compare with: all in double, no
 * cache, no engine, the whole text at once, heads cut out one by one.
 */
enum { C = 24, HIDDEN = 36, NH = 6, KVH = 2, HS = 4 };

static void plain_linear(double *out, const double *in, const float *weight, int n, int k) {
    for (int i = 0; i < n; i++) {
        out[i] = 0.0;
        for (int j = 0; j < k; j++) {
            out[i] += in[j] * weight[i * k + j];
        }
    }
}

static void plain_norm(double *out, const double *in, const float *weight) {
    double square = 0.0;
    for (int i = 0; i < C; i++) {
        square += in[i] * in[i] / C;
    }
    for (int i = 0; i < C; i++) {
        out[i] = in[i] / sqrt(square + (double)1e-5f) * weight[i];
    }
}

static void plain_rope(double *head, int position, enum nn_rope_layout layout) {
    for (int i = 0; i < HS / 2; i++) {
        double angle = position * pow(10000.0, -2.0 * i / HS);
        double *a = layout == NN_ROPE_INTERLEAVED ? &head[2 * i] : &head[i];
        double *b = layout == NN_ROPE_INTERLEAVED ? &head[2 * i + 1] : &head[i + HS / 2];
        double x = *a * cos(angle) - *b * sin(angle);
        *b = *a * sin(angle) + *b * cos(angle);
        *a = x;
    }
}

static double plain_dot(const double *a, const double *b) {
    double sum = 0.0;
    for (int i = 0; i < HS; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* mixed (C) = attention of query row q over keys and values 0..last. */
static void plain_attention(double *mixed, const double *q, double k[T][KVH * HS],
                            double v[T][KVH * HS], int last) {
    for (int h = 0; h < NH; h++) {
        int kv = h / (NH / KVH) * HS;
        double total = 0.0;
        double *out = mixed + h * HS;
        memset(out, 0, HS * sizeof *out);
        for (int s = 0; s <= last; s++) {
            double weight = exp(plain_dot(q + h * HS, k[s] + kv) / sqrt(HS));
            total += weight;
            for (int i = 0; i < HS; i++) {
                out[i] += weight * v[s][kv + i];
            }
        }
        for (int i = 0; i < HS; i++) {
            out[i] /= total;
        }
    }
}

static void plain_layer(double x[T][C], int count, const struct llama2_layer *w,
                        enum nn_rope_layout layout) {
    double k[T][KVH * HS], v[T][KVH * HS];
    for (int t = 0; t < count; t++) {
        double normed[C], q[C], mixed[C], out[C], gate[HIDDEN], up[HIDDEN];
        plain_norm(normed, x[t], w->attention_norm);
        plain_linear(q, normed, w->wq, C, C);
        plain_linear(k[t], normed, w->wk, KVH * HS, C);
        plain_linear(v[t], normed, w->wv, KVH * HS, C);
        for (int h = 0; h < NH; h++) {
            plain_rope(q + h * HS, t, layout);
        }
        for (int h = 0; h < KVH; h++) {
            plain_rope(k[t] + h * HS, t, layout);
        }
        plain_attention(mixed, q, k, v, t);
        plain_linear(out, mixed, w->wo, C, C);
        for (int i = 0; i < C; i++) {
            x[t][i] += out[i];
        }
        plain_norm(normed, x[t], w->ffn_norm);
        plain_linear(gate, normed, w->w1, HIDDEN, C);
        plain_linear(up, normed, w->w3, HIDDEN, C);
        for (int i = 0; i < HIDDEN; i++) {
            gate[i] = gate[i] / (1.0 + exp(-gate[i])) * up[i];
        }
        plain_linear(out, gate, w->w2, C, HIDDEN);
        for (int i = 0; i < C; i++) {
            x[t][i] += out[i];
        }
    }
}

/* Logits (V) after the first count tokens of the text. */
static void plain_forward(const struct llama2_random *m, int count, double *logits) {
    double x[T][C];
    for (int t = 0; t < count; t++) {
        for (int i = 0; i < C; i++) {
            x[t][i] = m->weights.embedding[text[t] * C + i];
        }
    }
    for (size_t l = 0; l < m->config.L; l++) {
        plain_layer(x, count, &m->weights.layers[l], m->config.rope_layout);
    }
    double normed[C];
    plain_norm(normed, x[count - 1], m->weights.final_norm);
    plain_linear(logits, normed, m->weights.classifier, V, C);
}

static void check_against_plain(enum nn_rope_layout layout) {
    struct llama2_config config = small_config(layout);
    struct llama2_random random;
    struct engine engine;
    struct llama2 *model;
    ASSERT_OK(llama2_random_create(&random, &config, 11));
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(llama2_create(&model, &config, &random.weights, &engine, 1, NULL));
    for (int t = 0; t < T; t++) {
        float got[V];
        double want[V];
        ASSERT_OK(llama2_forward(model, &text[t], 1, (size_t)t, got));
        plain_forward(&random, t + 1, want);
        for (int i = 0; i < V; i++) {
            EXPECT_NEAR(want[i], got[i], 1e-5);
        }
    }
    llama2_free(model);
    engine_destroy(&engine);
    llama2_random_free(&random);
}

C_TEST(llama2, equals_a_second_formulation_without_cache) {
    check_against_plain(NN_ROPE_INTERLEAVED);
}

C_TEST(llama2, equals_a_second_formulation_with_halves_rotated) {
    check_against_plain(NN_ROPE_HALVES);
}

C_TEST(llama2, batches_give_the_bits_of_single_tokens) {
    struct llama2_config config = small_config(NN_ROPE_INTERLEAVED);
    struct llama2_random random;
    struct engine engine;
    struct llama2 *model;
    ASSERT_OK(llama2_random_create(&random, &config, 12));
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(llama2_create(&model, &config, &random.weights, &engine, 8, NULL));
    float single[V], batched[V];
    for (int t = 0; t < T; t++) {
        ASSERT_OK(llama2_forward(model, &text[t], 1, (size_t)t, single));
    }
    ASSERT_OK(llama2_forward(model, text, 8, 0, NULL));
    ASSERT_OK(llama2_forward(model, text + 8, T - 8, 8, batched));
    EXPECT_INT_EQ(0, memcmp(single, batched, sizeof single));
    llama2_free(model);
    engine_destroy(&engine);
    llama2_random_free(&random);
}

C_TEST(llama2, refuses_what_does_not_fit) {
    struct llama2_config config = small_config(NN_ROPE_INTERLEAVED);
    struct llama2_random random;
    struct engine engine;
    struct llama2 *model;
    struct error error = {0};
    float logits[V];
    ASSERT_OK(llama2_random_create(&random, &config, 13));
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(llama2_create(&model, &config, &random.weights, &engine, 4, NULL));
    const int32_t negative = -1, large = V;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, llama2_forward(model, &negative, 1, 0, logits));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, llama2_forward(model, &large, 1, 0, logits));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, llama2_forward(model, text, 0, 0, logits));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, llama2_forward(model, text, 5, 0, logits));
    EXPECT_STATUS(STATUS_TOO_LONG, llama2_forward(model, text, 4, T - 3, logits));
    EXPECT_STATUS(STATUS_TOO_LONG, llama2_forward(model, text, 1, SIZE_MAX, logits));
    EXPECT_OK(llama2_forward(model, text, 4, T - 4, logits));
    llama2_free(model);
    config.KVH = 4;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  llama2_create(&model, &config, &random.weights, &engine, 4, &error));
    EXPECT_TRUE(strstr(error.message, "KVH 4") != NULL);
    EXPECT_TRUE(model == NULL);
    engine_destroy(&engine);
    llama2_random_free(&random);
}

/* An engine whose n-th allocation or operator fails. */
struct failing {
    struct engine inner;
    int left;
};

static bool fails(void *context) {
    return ((struct failing *)context)->left-- == 0;
}

static enum status failing_alloc(void *context, size_t bytes, void **memory) {
    struct engine *inner = &((struct failing *)context)->inner;
    return fails(context) ? STATUS_OUT_OF_MEMORY : inner->alloc(inner->context, bytes, memory);
}

static enum status failing_weights(void *context, const void *host, size_t bytes,
                                   const void **resident) {
    struct engine *inner = &((struct failing *)context)->inner;
    return fails(context) ? STATUS_OUT_OF_MEMORY
                          : inner->weights(inner->context, host, bytes, resident);
}

static void failing_release(void *context, void *memory) {
    struct engine *inner = &((struct failing *)context)->inner;
    inner->release(inner->context, memory);
}

static void failing_release_weights(void *context, const void *resident) {
    struct engine *inner = &((struct failing *)context)->inner;
    inner->release_weights(inner->context, resident);
}

/* Every allocation in turn fails; leaks show in the sanitized run of this test. */
C_TEST(llama2, frees_everything_when_an_allocation_fails) {
    struct llama2_config config = small_config(NN_ROPE_INTERLEAVED);
    struct llama2_random random;
    struct failing failing;
    ASSERT_OK(llama2_random_create(&random, &config, 14));
    ASSERT_OK(engine_reference_create(&failing.inner));
    struct engine engine = failing.inner;
    engine.context = &failing;
    engine.alloc = failing_alloc;
    engine.weights = failing_weights;
    engine.release = failing_release;
    engine.release_weights = failing_release_weights;
    int failed = 0;
    for (;; failed++) {
        struct llama2 *model;
        failing.left = failed;
        enum status status = llama2_create(&model, &config, &random.weights, &engine, 4, NULL);
        if (status == STATUS_OK) {
            llama2_free(model);
            break;
        }
        EXPECT_STATUS(STATUS_OUT_OF_MEMORY, status);
        EXPECT_TRUE(model == NULL);
    }
    EXPECT_INT_EQ(2 + 9 * 3 + 10, failed); /* tables, layers, buffers */
    engine_destroy(&failing.inner);
    llama2_random_free(&random);
}

C_TEST(llama2_random, same_seed_same_weights) {
    struct llama2_config config = small_config(NN_ROPE_INTERLEAVED);
    struct llama2_random a, b, c;
    ASSERT_OK(llama2_random_create(&a, &config, 1));
    ASSERT_OK(llama2_random_create(&b, &config, 1));
    ASSERT_OK(llama2_random_create(&c, &config, 2));
    size_t bytes = config.C * config.hidden * sizeof(float);
    EXPECT_INT_EQ(0, memcmp(a.weights.layers[2].w2, b.weights.layers[2].w2, bytes));
    EXPECT_TRUE(memcmp(a.weights.layers[2].w2, c.weights.layers[2].w2, bytes) != 0);
    llama2_random_free(&a);
    llama2_random_free(&b);
    llama2_random_free(&c);
    config.L = SIZE_MAX / 8;
    EXPECT_STATUS(STATUS_OVERFLOW, llama2_random_create(&a, &config, 1));
}

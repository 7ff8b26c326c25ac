#include "common/models/llama2.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/engine_layer.h"
#include "common/models/llama2_random.h"
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
 * A second formulation of the decoder, to compare with: in double, without
 * cache or engine, the whole text at once, one head after the other.
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

/* attended (C) = attention of query row q over keys and values 0..last. */
static void plain_attention(double *attended, const double *q, double k[T][KVH * HS],
                            double v[T][KVH * HS], int last) {
    for (int h = 0; h < NH; h++) {
        int kv = h / (NH / KVH) * HS;
        double total = 0.0;
        double *out = attended + h * HS;
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
        double normed[C], q[C], attended[C], out[C], gate[HIDDEN], up[HIDDEN];
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
        plain_attention(attended, q, k, v, t);
        plain_linear(out, attended, w->wo, C, C);
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

C_TEST(llama2, refuses_tokens_and_sizes_that_do_not_fit) {
    struct llama2_config config = small_config(NN_ROPE_INTERLEAVED);
    struct llama2_random random;
    struct engine engine;
    struct llama2 *model;
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
    EXPECT_ERROR_CONTAINS(STATUS_INVALID_ARGUMENT, "KVH 4",
                          llama2_create(&model, &config, &random.weights, &engine, 4, &error));
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

/* ---- An engine that runs the whole decoder itself ---- */

/* A decoder that does no work: it records its arguments and writes known values. */
struct noting {
    enum status create_status, run_status, begin_status, next_status;
    bool declines;   /* does not support the model: leaves the decoder NULL */
    char order[32];  /* a letter for each call: create, run, begin, next, free */
    size_t resident; /* calls of alloc() and weights() */
    struct llama2_decoder_model model;
    struct llama2_decoder_call call;
    struct llama2_sampling sampling;
    size_t position;
};

static void note(struct noting *n, char letter) {
    size_t length = strlen(n->order);
    if (length + 1 < sizeof n->order) {
        n->order[length] = letter;
    }
}

static enum status noting_create(void *context, const struct llama2_decoder_model *model,
                                 void **decoder, struct error *error) {
    struct noting *n = engine_layer_own(context);
    note(n, 'c');
    n->model = *model;
    *decoder = n->declines || n->create_status != STATUS_OK ? NULL : n;
    return n->create_status == STATUS_OK ? STATUS_OK
                                         : error_set(error, n->create_status, "23 bytes short");
}

static enum status noting_run(void *context, void *decoder,
                              const struct llama2_decoder_call *call) {
    struct noting *n = decoder;
    EXPECT_TRUE(engine_layer_own(context) == decoder);
    note(n, 'r');
    n->call = *call;
    if (call->logits != NULL) {
        call->logits[V - 1] = 42.0f;
    }
    return n->run_status;
}

static void noting_free(void *context, void *decoder) {
    struct noting *n = engine_layer_own(context);
    EXPECT_TRUE(n == decoder);
    note(n, 'f');
}

static enum status noting_begin(void *context, void *decoder,
                                const struct llama2_sampling *sampling) {
    struct noting *n = decoder;
    EXPECT_TRUE(engine_layer_own(context) == decoder);
    note(n, 'b');
    n->sampling = *sampling;
    return n->begin_status;
}

static enum status noting_next(void *context, void *decoder, size_t position, int32_t *token) {
    struct noting *n = decoder;
    EXPECT_TRUE(engine_layer_own(context) == decoder);
    note(n, 'n');
    n->position = position;
    *token = (int32_t)position + 1;
    return n->next_status;
}

static enum status noting_alloc(void *context, size_t bytes, void **memory) {
    const struct engine *base = engine_layer_base(context);
    ((struct noting *)engine_layer_own(context))->resident++;
    return base->alloc(base->context, bytes, memory);
}

static enum status noting_weights(void *context, const void *host, size_t bytes,
                                  const void **resident) {
    const struct engine *base = engine_layer_base(context);
    ((struct noting *)engine_layer_own(context))->resident++;
    return base->weights(base->context, host, bytes, resident);
}

/* The reference engine with that decoder, and random weights. */
struct decoded {
    struct noting noting;
    struct llama2_config config;
    struct llama2_random random;
    struct engine engine;
    struct llama2 *model;
};

static bool decoded_create(struct decoded *d, bool draws) {
    struct engine reference;
    d->config = small_config(NN_ROPE_HALVES);
    if (llama2_random_create(&d->random, &d->config, 21) != STATUS_OK ||
        engine_reference_create(&reference) != STATUS_OK ||
        engine_layer_create(&d->engine, "noting", &reference, &d->noting, NULL) != STATUS_OK) {
        TEST_FAIL("cannot make the engine");
        return false;
    }
    d->engine.alloc = noting_alloc;
    d->engine.weights = noting_weights;
    d->engine.decoder_create = noting_create;
    d->engine.decoder_run = noting_run;
    d->engine.decoder_free = noting_free;
    d->engine.decoder_begin = draws ? noting_begin : NULL;
    d->engine.decoder_next = draws ? noting_next : NULL;
    return true;
}

static void decoded_free(struct decoded *d) {
    llama2_free(d->model);
    engine_destroy(&d->engine);
    llama2_random_free(&d->random);
}

static enum status decoded_model(struct decoded *d, struct error *error) {
    return llama2_create(&d->model, &d->config, &d->random.weights, &d->engine, 8, error);
}

C_TEST(llama2_decoder, is_given_views_of_the_weights_and_nothing_is_resident) {
    struct decoded d = {0};
    ASSERT_TRUE(decoded_create(&d, true));
    ASSERT_OK(decoded_model(&d, NULL));
    const struct llama2_decoder_model *given = &d.noting.model;
    const struct llama2_stored_weights *w = given->weights;
    const struct llama2_layer *layer = &d.random.weights.layers[2];
    EXPECT_INT_EQ(NN_F32, given->dtype);
    EXPECT_INT_EQ(8, given->batch);
    EXPECT_TRUE(given->config == llama2_config(d.model));
    EXPECT_INT_EQ(NN_ROPE_HALVES, given->config->rope_layout);
    EXPECT_TRUE(w->embedding.data == d.random.weights.embedding);
    EXPECT_TRUE(w->classifier.data == w->embedding.data && w->classifier.rows == V);
    EXPECT_TRUE(w->final_norm.data == d.random.weights.final_norm);
    EXPECT_INT_EQ(1, w->final_norm.rows);
    EXPECT_INT_EQ(C, w->final_norm.columns);
    EXPECT_TRUE(w->layers[2].wk.data == layer->wk && w->layers[2].w2.data == layer->w2);
    EXPECT_INT_EQ(KVH * HS, w->layers[2].wk.rows);
    EXPECT_INT_EQ(C, w->layers[2].w2.rows);
    EXPECT_INT_EQ(HIDDEN, w->layers[2].w2.columns);
    EXPECT_INT_EQ(NN_F32, w->layers[2].w2.dtype);
    llama2_free(d.model);
    d.model = NULL;
    EXPECT_STR_EQ("cf", d.noting.order);
    EXPECT_INT_EQ(0, d.noting.resident);
    decoded_free(&d);
}

C_TEST(llama2_decoder, gets_checked_calls_in_their_order) {
    struct decoded d = {0};
    float logits[V] = {0};
    int32_t token = 0;
    const struct llama2_sampling sampling = {0.5f, 0.9f, 7, 23};
    ASSERT_TRUE(decoded_create(&d, true));
    ASSERT_OK(decoded_model(&d, NULL));
    EXPECT_TRUE(llama2_draws(d.model));
    EXPECT_OK(llama2_forward(d.model, text, 3, 0, NULL));
    EXPECT_TRUE(d.noting.call.tokens == text && d.noting.call.logits == NULL);
    EXPECT_INT_EQ(3, d.noting.call.count);
    EXPECT_OK(llama2_forward(d.model, text + 3, 1, 3, logits));
    EXPECT_INT_EQ(3, d.noting.call.position);
    EXPECT_NEAR(42.0, logits[V - 1], 0.0);
    EXPECT_OK(llama2_begin(d.model, &sampling));
    EXPECT_INT_EQ(7, d.noting.sampling.top_k);
    EXPECT_OK(llama2_next(d.model, 4, &token));
    EXPECT_INT_EQ(4, d.noting.position);
    EXPECT_INT_EQ(5, token);
    EXPECT_OK(llama2_next(d.model, T - 1, &token));
    EXPECT_STATUS(STATUS_TOO_LONG, llama2_next(d.model, T, &token));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, llama2_next(d.model, 0, &token));
    const int32_t large = V;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, llama2_forward(d.model, &large, 1, 0, logits));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, llama2_forward(d.model, text, 9, 0, logits));
    EXPECT_STATUS(STATUS_TOO_LONG, llama2_forward(d.model, text, 1, T, logits));
    EXPECT_STR_EQ("crrbnn", d.noting.order);
    decoded_free(&d);
    EXPECT_STR_EQ("crrbnnf", d.noting.order);
}

C_TEST(llama2_decoder, returns_its_errors_to_the_caller) {
    struct decoded d = {.noting = {.create_status = STATUS_OUT_OF_MEMORY}};
    struct error error = {0};
    int32_t token;
    const struct llama2_sampling greedy = {.seed = 1};
    ASSERT_TRUE(decoded_create(&d, true));
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, decoded_model(&d, &error));
    EXPECT_TRUE(d.model == NULL);
    EXPECT_STR_EQ("cannot make the model resident on engine noting: 23 bytes short", error.message);
    d.noting = (struct noting){.run_status = STATUS_DEVICE,
                               .begin_status = STATUS_TOO_LONG,
                               .next_status = STATUS_INTERRUPTED};
    ASSERT_OK(decoded_model(&d, NULL));
    EXPECT_STATUS(STATUS_DEVICE, llama2_forward(d.model, text, 1, 0, NULL));
    EXPECT_STATUS(STATUS_TOO_LONG, llama2_begin(d.model, &greedy));
    EXPECT_STATUS(STATUS_INTERRUPTED, llama2_next(d.model, 1, &token));
    decoded_free(&d);
}

C_TEST(llama2_decoder, may_decline_a_model_which_then_runs_by_operators) {
    struct decoded d = {.noting = {.declines = true}};
    struct llama2 *plain;
    struct engine reference;
    float want[V], got[V];
    int32_t token;
    const struct llama2_sampling greedy = {.seed = 1};
    ASSERT_TRUE(decoded_create(&d, true));
    ASSERT_OK(engine_reference_create(&reference));
    ASSERT_OK(llama2_create(&plain, &d.config, &d.random.weights, &reference, 8, NULL));
    ASSERT_OK(decoded_model(&d, NULL));
    EXPECT_TRUE(d.noting.resident > 0);
    EXPECT_OK(llama2_forward(plain, text, 5, 0, want));
    EXPECT_OK(llama2_forward(d.model, text, 5, 0, got));
    EXPECT_INT_EQ(0, memcmp(want, got, sizeof want));
    EXPECT_TRUE(!llama2_draws(d.model));
    EXPECT_STATUS(STATUS_UNSUPPORTED, llama2_begin(d.model, &greedy));
    EXPECT_STATUS(STATUS_UNSUPPORTED, llama2_next(d.model, 1, &token));
    llama2_free(plain);
    engine_destroy(&reference);
    decoded_free(&d);
    EXPECT_STR_EQ("c", d.noting.order);
}

C_TEST(llama2_decoder, need_not_sample) {
    struct decoded d = {0};
    const struct llama2_sampling greedy = {.seed = 1};
    ASSERT_TRUE(decoded_create(&d, false));
    ASSERT_OK(decoded_model(&d, NULL));
    EXPECT_TRUE(!llama2_draws(d.model));
    EXPECT_STATUS(STATUS_UNSUPPORTED, llama2_begin(d.model, &greedy));
    decoded_free(&d);
}

C_TEST(llama2_decoder, gets_stored_weights_as_they_are) {
    struct decoded d = {0};
    struct error error = {0};
    struct llama2_stored_weights stored = {0};
    struct engine reference;
    ASSERT_TRUE(decoded_create(&d, true));
    ASSERT_OK(llama2_create_stored(&d.model, &d.config, &stored, NN_BF16, &d.engine, 2, NULL));
    EXPECT_TRUE(d.noting.model.weights == &stored);
    EXPECT_INT_EQ(NN_BF16, d.noting.model.dtype);
    EXPECT_INT_EQ(2, d.noting.model.batch);
    EXPECT_INT_EQ(0, d.noting.resident);
    llama2_free(d.model);
    d.noting.declines = true;
    EXPECT_ERROR_CONTAINS(
        STATUS_UNSUPPORTED, "heads of 4 channels",
        llama2_create_stored(&d.model, &d.config, &stored, NN_BF16, &d.engine, 2, &error));
    EXPECT_TRUE(d.model == NULL);
    d.noting.create_status = STATUS_OUT_OF_MEMORY;
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY,
                  llama2_create_stored(&d.model, &d.config, &stored, NN_F16, &d.engine, 2, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  llama2_create_stored(&d.model, &d.config, &stored, NN_F16, &d.engine, 0, &error));
    ASSERT_OK(engine_reference_create(&reference));
    EXPECT_ERROR_CONTAINS(
        STATUS_UNSUPPORTED, reference.name,
        llama2_create_stored(&d.model, &d.config, &stored, NN_F32, &reference, 2, &error));
    engine_destroy(&reference);
    decoded_free(&d);
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

C_TEST(llama2_random, shapes_have_names) {
    static const struct {
        const char *text, *name;
        size_t C, HS, KVH, T, V;
    } want[LLAMA2_SHAPES] = {{"260k", "260K", 64, 8, 4, 512, 512},
                             {"15m", "15M", 288, 48, 6, 256, 32000},
                             {"110m", "110M", 768, 64, 12, 1024, 32000},
                             {"1.1b", "1.1B", 2048, 64, 4, 2048, 32000},
                             {"7b", "7B", 4096, 128, 32, 4096, 32000}};
    for (int i = 0; i < LLAMA2_SHAPES; i++) {
        enum llama2_shape shape;
        ASSERT_OK(llama2_shape_parse(want[i].text, &shape, NULL));
        EXPECT_STR_EQ(want[i].name, llama2_shape_name(shape));
        struct llama2_config config = llama2_shape_config(shape);
        EXPECT_INT_EQ(want[i].C, config.C);
        EXPECT_INT_EQ(want[i].HS, config.HS);
        EXPECT_INT_EQ(want[i].KVH, config.KVH);
        EXPECT_INT_EQ(want[i].T, config.T);
        EXPECT_INT_EQ(want[i].V, config.V);
    }
    enum llama2_shape shape;
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT, "--shape is 260k, 15m, 110m, 1.1b or 7b, not '7B'",
                 llama2_shape_parse("7B", &shape, &error));
}

/* Uses stored fp32 tensors without a copy. */
static enum status plain_view(void *context, const struct decoder_weight *tensor) {
    (void)context;
    EXPECT_INT_EQ(NN_F32, tensor->stored->dtype);
    *tensor->plain[0] = tensor->stored->data;
    return STATUS_OK;
}

/* 32 layers, as the largest shape has them. */
C_TEST(llama2_random, stored_weights_keep_activations_in_range) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_260K);
    struct llama2_layer layers[32] = {0};
    struct llama2_weights weights = {.layers = layers};
    struct llama2_random_stored random;
    struct engine engine;
    struct llama2 *model;
    config.L = 32;
    float logits[512];
    ASSERT_OK(llama2_random_stored_create(&random, &config, NN_F32, false, 5));
    ASSERT_OK(llama2_tensors_visit(&config, false, &random.weights, &weights, plain_view, NULL));
    EXPECT_TRUE(weights.classifier != weights.embedding);
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(llama2_create(&model, &config, &weights, &engine, T, NULL));
    ASSERT_OK(llama2_forward(model, text, T, 0, logits));
    double square = 0.0;
    for (size_t i = 0; i < config.V; i++) {
        square += (double)logits[i] * (double)logits[i] / (double)config.V;
    }
    EXPECT_NEAR(1.0, sqrt(square), 0.3); /* a normalised vector times rows of length 1 */
    llama2_free(model);
    engine_destroy(&engine);
    llama2_random_stored_free(&random);
}

/* The last element of every tensor is within its block: the sanitized run reads it. */
static enum status touch(void *context, const struct decoder_weight *tensor) {
    const struct decoder_stored_tensor *s = tensor->stored;
    size_t wide = nn_dtype_bytes(s->dtype), last = s->rows * s->columns - 1;
    float value;
    EXPECT_INT_EQ(tensor->rank == 1 ? 1 : tensor->shape[0], s->rows);
    nn_dtype_load(&value, (const char *)s->data + last * wide, 1, s->dtype);
    *(double *)context = *(double *)context * 1.01 + (double)value;
    return STATUS_OK;
}

C_TEST(llama2_random, stored_weights_come_from_the_seed) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    const enum nn_dtype types[] = {NN_F32, NN_F16, NN_BF16};
    for (int t = 0; t < 3; t++) {
        double sums[3] = {0};
        for (uint64_t run = 0; run < 3; run++) {
            struct llama2_random_stored r;
            ASSERT_OK(llama2_random_stored_create(&r, &config, types[t], true, 3 + run / 2));
            EXPECT_TRUE(r.weights.classifier.data == r.weights.embedding.data);
            EXPECT_TRUE(r.weights.layers[0].wq.data != r.weights.layers[0].wk.data);
            EXPECT_INT_EQ(types[t], r.weights.layers[5].w3.dtype);
            ASSERT_OK(llama2_tensors_visit(&config, true, &r.weights, NULL, touch, &sums[run]));
            llama2_random_stored_free(&r);
        }
        EXPECT_TRUE(sums[0] == sums[1]);
        EXPECT_TRUE(sums[0] != sums[2]);
    }
}

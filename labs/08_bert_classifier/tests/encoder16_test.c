/* The 16-bit encoder inside BERT, next to the CPU's reference in fp32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/device/device.h"
#include "common/models/bert.h"
#include "common/testing/testing.h"
#include "labs/08_bert_classifier/given/encoder16.h"
#include "labs/08_bert_classifier/given/engine.h"
#include "labs/08_bert_classifier/given/engine16.h"

enum { MOST_ROWS = 160, MOST_SEQUENCES = 6 };

/* A batch, and what a BERT says of it. */
struct sample {
    struct bert_config config;
    int32_t ids[MOST_ROWS], types[MOST_ROWS], starts[MOST_SEQUENCES + 1];
    size_t B;
    bool typed;
};

struct answer {
    float *hidden, *logits; /* (rows, C), (B, labels) */
};

static struct bert_config config_of(size_t C, size_t hidden, size_t L, size_t NH,
                                    enum nn_activation activation) {
    return (struct bert_config){.C = C,
                                .hidden = hidden,
                                .L = L,
                                .NH = NH,
                                .V = 61,
                                .T = 64,
                                .types = 3,
                                .labels = 3,
                                .norm_eps = 1e-12f,
                                .activation = activation};
}

static void draw_batch(struct sample *s, const size_t *lengths, size_t B) {
    struct rng rng = rng_create(s->config.C + B);
    s->B = B;
    s->starts[0] = 0;
    for (size_t b = 0; b < B; b++) {
        s->starts[b + 1] = s->starts[b] + (int32_t)lengths[b];
    }
    for (int32_t row = 0; row < s->starts[B]; row++) {
        s->ids[row] = (int32_t)rng_below(&rng, s->config.V);
        s->types[row] = (int32_t)rng_below(&rng, s->config.types);
    }
}

/* `hidden`: whether all rows are wanted, or the logits alone. */
static enum status ask(const struct sample *s, const struct bert_random *random,
                       const struct engine *engine, bool hidden, struct answer *answer,
                       struct error *error) {
    struct bert *bert = NULL;
    size_t rows = (size_t)s->starts[s->B];
    answer->hidden = calloc(rows * s->config.C + 1, sizeof(float));
    answer->logits = calloc(s->B * s->config.labels + 1, sizeof(float));
    enum status status =
        bert_create(&bert, &random->config, &random->weights, engine, MOST_ROWS, error);
    const struct bert_input input = {
        .ids = s->ids, .types = s->typed ? s->types : NULL, .B = s->B, .starts = s->starts};
    const struct bert_output output = {.hidden = hidden ? answer->hidden : NULL,
                                       .logits = answer->logits};
    if (status == STATUS_OK) {
        status = bert_forward(bert, &input, &output);
    }
    bert_free(bert);
    return status;
}

static void answer_free(struct answer *a) {
    free(a->hidden);
    free(a->logits);
}

/* ||got - want|| / ||want||; infinite for what is not finite. */
static double distance(const float *got, const float *want, size_t count) {
    double difference = 0.0, norm = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(got[i])) {
            return INFINITY;
        }
        difference += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += (double)want[i] * want[i];
    }
    return sqrt(difference / norm);
}

/*
 * A layer rounds four matrices, and on its way twelve times what it passes on, each time by at most
 * nn_dtype_rounding() of each element. Roundings go in all directions, so they add up like their
 * number's root; LayerNorm brings each row back to the same norm, so nothing grows beyond that.
 * The bound counts fourteen of these sixteen, as most are smaller.
 */
static double allowed(const struct sample *s, enum nn_dtype dtype) {
    return nn_dtype_rounding(dtype) * sqrt(14.0 * (double)s->config.L + 2.0);
}

/* The label with the largest logit is the same, unless another one is closer than the error. */
static void check_labels(const struct sample *s, const float *got, const float *want,
                         double error) {
    size_t labels = s->config.labels;
    for (size_t b = 0; b < s->B; b++) {
        const float *g = got + b * labels, *w = want + b * labels;
        size_t best = 0, chosen = 0;
        double norm = 0.0, second = -INFINITY;
        for (size_t i = 0; i < labels; i++) {
            best = w[i] > w[best] ? i : best;
            chosen = g[i] > g[chosen] ? i : chosen;
            norm += (double)w[i] * w[i];
        }
        for (size_t i = 0; i < labels; i++) {
            second = i != best && w[i] > second ? w[i] : second;
        }
        double margin = (double)w[best] - second;
        if (chosen != best && margin > 2.0 * error * sqrt(norm)) {
            TEST_FAIL("sequence %zu: label %zu, want %zu, by %g", b, chosen, best, margin);
        }
    }
}

static void compare(const struct sample *s, enum nn_dtype dtype, bool hidden,
                    const struct answer *got, const struct answer *want) {
    size_t rows = (size_t)s->starts[s->B];
    double most = allowed(s, dtype);
    /* The pooler and the classifier pass an error of their input on; tanh only makes it smaller. */
    double logits = distance(got->logits, want->logits, s->B * s->config.labels);
    double all = hidden ? distance(got->hidden, want->hidden, rows * s->config.C) : 0.0;
    printf("C %zu, hidden %zu, L %zu, %s: rows %.5f, logits %.5f, allowed %.5f\n", s->config.C,
           s->config.hidden, s->config.L, nn_dtype_name(dtype), all, logits, most);
    if (!(all <= most) || !(logits <= 2.0 * most)) {
        TEST_FAIL("%s: rows are off by %g, logits by %g; allowed %g and %g", nn_dtype_name(dtype),
                  all, logits, most, 2.0 * most);
    }
    check_labels(s, got->logits, want->logits, 2.0 * most);
}

/* A type, and whether all rows are wanted. */
struct way {
    enum nn_dtype dtype;
    bool hidden;
};

static void check_way(const struct sample *s, const struct bert_random *random, struct way way,
                      const struct answer *want) {
    struct engine engine;
    struct answer got = {0};
    struct error error = {0};
    EXPECT_OK(engine_encoder16_create(&engine, way.dtype, &error));
    EXPECT_STR_EQ("08_bert_classifier", engine.name);
    enum status status = ask(s, random, &engine, way.hidden, &got, &error);
    if (status == STATUS_OK) {
        compare(s, way.dtype, way.hidden, &got, want);
    } else {
        TEST_FAIL("%s: %s", nn_dtype_name(way.dtype), error.message);
    }
    answer_free(&got);
    engine_destroy(&engine);
}

static void check_ways(const struct sample *s, const struct way *ways, size_t count) {
    struct bert_random random = {0};
    struct engine reference;
    struct answer want = {0};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(bert_random_create(&random, &s->config, 7));
    ASSERT_OK(engine_reference_create(&reference));
    EXPECT_OK(ask(s, &random, &reference, true, &want, &error));
    for (size_t i = 0; i < count; i++) {
        check_way(s, &random, ways[i], &want);
    }
    answer_free(&want);
    engine_destroy(&reference);
    bert_random_free(&random);
}

static void check_sample(const struct sample *s) {
    static const struct way all[] = {
        {NN_BF16, false}, {NN_BF16, true}, {NN_F16, false}, {NN_F16, true}};
    check_ways(s, all, 4);
}

C_TEST(encoder16, equals_the_reference_within_rounding) {
    struct sample s = {.config = config_of(64, 256, 2, 4, NN_GELU), .typed = true};
    draw_batch(&s, (const size_t[]){17, 1, 40}, 3);
    check_sample(&s);
}

/* The sample's texts, each padded to T rows. */
struct padded {
    int32_t ids[MOST_ROWS], types[MOST_ROWS];
    uint8_t mask[MOST_ROWS];
};

static struct padded pad(const struct sample *s, size_t T) {
    struct padded p = {0};
    for (size_t b = 0; b < s->B; b++) {
        for (int32_t row = s->starts[b]; row < s->starts[b + 1]; row++) {
            size_t place = b * T + (size_t)(row - s->starts[b]);
            p.ids[place] = s->ids[row];
            p.types[place] = s->types[row];
            p.mask[place] = 1;
        }
    }
    return p;
}

/* The answer to the padded batch is that to the packed one, bit for bit: fp32 would differ. */
static void check_padded(const struct sample *s, struct bert *bert, size_t T) {
    static float got[MOST_ROWS * 64], want[MOST_ROWS * 64];
    float logits[MOST_SEQUENCES * 3], want_logits[MOST_SEQUENCES * 3];
    const struct padded padded = pad(s, T);
    size_t C = s->config.C, labels = s->config.labels;
    const struct bert_input packed = {
        .ids = s->ids, .types = s->types, .B = s->B, .starts = s->starts};
    const struct bert_input masked = {
        .ids = padded.ids, .types = padded.types, .mask = padded.mask, .B = s->B, .T = T};
    EXPECT_OK(bert_forward(bert, &packed, &(struct bert_output){want, NULL, want_logits}));
    EXPECT_OK(bert_forward(bert, &masked, &(struct bert_output){got, NULL, logits}));
    EXPECT_TRUE(memcmp(want_logits, logits, s->B * labels * sizeof *logits) == 0);
    for (size_t b = 0; b < s->B; b++) {
        size_t length = (size_t)(s->starts[b + 1] - s->starts[b]);
        EXPECT_TRUE(memcmp(want + (size_t)s->starts[b] * C, got + b * T * C,
                           length * C * sizeof *got) == 0);
    }
}

C_TEST(encoder16, leaves_padding_out) {
    struct sample s = {.config = config_of(64, 256, 2, 4, NN_GELU)};
    struct bert_random random = {0};
    struct error error = {0};
    draw_batch(&s, (const size_t[]){17, 1, 40}, 3);
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(bert_random_create(&random, &s.config, 7));
    for (int dtype = NN_F16; dtype <= NN_BF16; dtype++) {
        struct engine engine;
        struct bert *bert = NULL;
        EXPECT_OK(engine_encoder16_create(&engine, (enum nn_dtype)dtype, &error));
        EXPECT_OK(bert_create(&bert, &s.config, &random.weights, &engine, MOST_ROWS, &error));
        if (bert != NULL) {
            check_padded(&s, bert, 45);
        }
        bert_free(bert);
        engine_destroy(&engine);
    }
    bert_random_free(&random);
}

/* The logits of a BERT that was made for this batch alone, so that nothing of it is recorded. */
static void ask_new(const struct sample *s, const struct bert_random *random,
                    const struct engine *engine, const struct bert_input *input, float *logits) {
    struct bert *bert = NULL;
    EXPECT_OK(bert_create(&bert, &s->config, &random->weights, engine, MOST_ROWS, NULL));
    if (bert != NULL) {
        EXPECT_OK(bert_forward(bert, input, &(struct bert_output){NULL, NULL, logits}));
    }
    bert_free(bert);
}

/* Lengths in turns, each three times with other tokens: launched, recorded, launched at once. */
static void check_again(struct sample *s, const struct bert_random *random,
                        const struct engine *engine) {
    static const size_t lengths[2][3] = {{17, 1, 40}, {40, 17, 1}};
    struct bert *bert = NULL;
    EXPECT_OK(bert_create(&bert, &s->config, &random->weights, engine, MOST_ROWS, NULL));
    for (int32_t i = 0; bert != NULL && i < 6; i++) {
        float got[MOST_SEQUENCES * 3] = {0}, want[MOST_SEQUENCES * 3] = {0};
        draw_batch(s, lengths[i % 2], 3);
        for (int32_t row = 0; row < s->starts[s->B]; row++) {
            s->ids[row] = (s->ids[row] + i) % (int32_t)s->config.V;
        }
        const struct bert_input input = {.ids = s->ids, .B = s->B, .starts = s->starts};
        EXPECT_OK(bert_forward(bert, &input, &(struct bert_output){NULL, NULL, got}));
        ask_new(s, random, engine, &input, want);
        if (memcmp(got, want, sizeof got) != 0) {
            TEST_FAIL("call %d: %g where a new BERT says %g", (int)i, (double)got[0],
                      (double)want[0]);
        }
    }
    bert_free(bert);
}

C_TEST(encoder16, says_the_same_of_a_shape_that_comes_again) {
    struct sample s = {.config = config_of(32, 64, 2, 2, NN_GELU)};
    struct bert_random random = {0};
    struct engine engine = {0};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(bert_random_create(&random, &s.config, 7));
    EXPECT_OK(engine_encoder16_create(&engine, NN_BF16, &error));
    check_again(&s, &random, &engine);
    engine_destroy(&engine);
    bert_random_free(&random);
}

C_TEST(encoder16, takes_sizes_that_fit_nothing) {
    struct sample s = {.config = config_of(39, 67, 3, 3, NN_GELU_TANH), .typed = true};
    draw_batch(&s, (const size_t[]){5, 31, 2, 64, 1, 19}, 6);
    check_sample(&s);
    s = (struct sample){.config = config_of(20, 28, 1, 2, NN_RELU)};
    draw_batch(&s, (const size_t[]){9}, 1);
    check_sample(&s);
    s = (struct sample){.config = config_of(5, 3, 2, 1, NN_SILU)};
    draw_batch(&s, (const size_t[]){1, 1}, 2);
    check_sample(&s);
}

/* 1032 channels are more than a warp keeps in registers, 776 are four pieces a lane. Millions of
   weights: each type and each choice of rows once a length. */
C_TEST(encoder16, takes_rows_longer_than_registers) {
    static const struct way some[] = {{NN_BF16, true}, {NN_F16, false}},
                            others[] = {{NN_F16, true}, {NN_BF16, false}};
    struct sample s = {.config = config_of(1032, 40, 1, 12, NN_GELU)};
    draw_batch(&s, (const size_t[]){3, 6}, 2);
    check_ways(&s, some, 2);
    s.config = config_of(776, 24, 1, 97, NN_GELU);
    check_ways(&s, others, 2);
}

C_TEST(encoder16, stays_within_its_error_for_many_layers) {
    struct sample s = {.config = config_of(96, 192, 12, 3, NN_GELU)};
    draw_batch(&s, (const size_t[]){11, 26}, 2);
    check_sample(&s);
}

/* Lab 12's fastest tiles add a residual of the result's type; other pairs of types cost a second
 * kernel. */
static enum status residual_like_result(const struct gemm16_problem *p, void *workspace,
                                        device_stream stream, struct error *error) {
    if (p->residual != NULL && p->residual_is_float != (p->out_dtype == NN_F32)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "a residual of %s, a result of %s",
                         p->residual_is_float ? "fp32" : nn_dtype_name(p->dtype),
                         nn_dtype_name(p->out_dtype));
    }
    return gemm16(p, workspace, stream, error);
}

static enum status create_checked(const void *context, struct encoder **encoder,
                                  const struct encoder_model *model, size_t max_tokens,
                                  device_stream stream, struct error *error) {
    (void)context;
    return encoder16_create_with((struct encoder16 **)encoder, model, NN_BF16, residual_like_result,
                                 max_tokens, stream, error);
}

static enum status run_checked(struct encoder *encoder, const struct encoder_batch *batch,
                               struct error *error) {
    return encoder16_run((struct encoder16 *)encoder, batch, error);
}

static void free_checked(struct encoder *encoder) {
    encoder16_free((struct encoder16 *)encoder);
}

C_TEST(encoder16, adds_residuals_of_the_type_of_the_result) {
    static const struct encoder_functions functions = {create_checked, run_checked, free_checked,
                                                       NULL};
    struct sample s = {.config = config_of(32, 64, 2, 2, NN_GELU)};
    struct bert_random random = {0};
    struct engine engine = {0};
    struct answer got = {0};
    struct error error = {0};
    draw_batch(&s, (const size_t[]){9, 4}, 2);
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(bert_random_create(&random, &s.config, 7));
    EXPECT_OK(engine_encoder_create_with(&engine, &functions, &error));
    EXPECT_OK(ask(&s, &random, &engine, false, &got, &error));
    answer_free(&got);
    engine_destroy(&engine);
    bert_random_free(&random);
}

C_TEST(encoder16, refuses_what_it_does_not_take) {
    struct engine engine;
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, engine_encoder16_create(&engine, NN_F32, &error));
    EXPECT_STR_EQ("the 16-bit encoder computes in fp16 or bf16", error.message);
    engine_destroy(&engine);
    struct encoder16 *encoder;
    const struct encoder_model wide = {.C = 258, .hidden = 4, .L = 1, .NH = 2};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  encoder16_create(&encoder, &wide, NN_F16, 8, NULL, &error));
    EXPECT_STR_EQ("the encoder: 258 channels in 2 heads; a head has 1 to 128", error.message);
    EXPECT_TRUE(encoder == NULL);
}

/* What a model promises, on the reference: its list, batches that it refuses, sums over batches. */
#include "common/train/models/train_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/bert/bert_tensors.h"
#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/testing/fixture.h"
#include "common/train/models/model_testing.h"

/* A model of the reference. */
struct fixture {
    size_t kind; /* below KINDS */
    struct train_config config;
    struct train_engine engine;
    struct train_model *model;
};

static bool fixture_create(struct fixture *f, const struct train_config *config) {
    *f = (struct fixture){.config = *config};
    return model_testing_create(&f->model, &f->engine, config);
}

static void fixture_free(struct fixture *f) {
    train_model_free(f->model);
    train_engine_destroy(&f->engine);
}

enum { KINDS = 5 };

static struct train_config config_of(size_t kind) {
    return kind == 0   ? model_testing_bert(TRAIN_CLASSIFY, 0.0f)
           : kind == 1 ? model_testing_bert(TRAIN_MLM, 0.0f)
           : kind == 4 ? model_testing_gpt_neox(false, true)
                       : model_testing_llama2(kind == 3, NN_ROPE_HALVES);
}

static bool fixture_of_kind(struct fixture *f, size_t kind) {
    const struct train_config config = config_of(kind);
    bool made = fixture_create(f, &config);
    f->kind = kind;
    return made;
}

/* A test of a model of one kind. */
#define MODEL_TEST(name, kind) \
    FIXTURE_TEST(train_model, name, struct fixture, f, fixture_of_kind(f, kind), fixture_free(f))

static void for_each_kind(void (*test)(struct fixture *f)) {
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct fixture f;
        ASSERT_TRUE(fixture_of_kind(&f, kind));
        test(&f);
        fixture_free(&f);
    }
}

/* A test that holds for every kind of model. */
#define KINDS_TEST(name)                         \
    static void kinds_##name(struct fixture *f); \
    C_TEST(train_model, name) {                  \
        for_each_kind(kinds_##name);             \
    }                                            \
    static void kinds_##name(struct fixture *f)

/* ---- The list ---- */

/* What the loaders of checkpoints ask for. */
struct wanted {
    const struct train_model *model;
    const char *prefix;
    size_t count;
};

static void want_tensor(struct wanted *w, const char *name, bool prefixed, const size_t shape[2],
                        size_t rank) {
    char whole[192];
    snprintf(whole, sizeof whole, "%s%s", prefixed ? w->prefix : "", name);
    const struct train_parameter *parameter = train_model_find(w->model, whole);
    if (parameter == NULL) {
        TEST_FAIL("there is no %s", whole);
        return;
    }
    EXPECT_INT_EQ(shape[0], parameter->rows);
    EXPECT_INT_EQ(rank == 2 ? shape[1] : 0, parameter->columns);
    w->count++;
}

static enum status want_bert(void *context, const struct bert_tensor *tensor) {
    want_tensor(context, tensor->name, !tensor->outside, tensor->shape, tensor->rank);
    return STATUS_OK;
}

static enum status want_llama2(void *context, const struct decoder_weight *tensor) {
    want_tensor(context, tensor->name, false, tensor->shape, tensor->rank);
    return STATUS_OK;
}

static enum status want_gpt_neox(void *context, const struct decoder_weight *tensor) {
    want_tensor(context, tensor->name, false, tensor->shape, tensor->rank);
    return STATUS_OK;
}

static size_t count_parameters(const struct train_model *model) {
    size_t count;
    (void)train_model_parameters(model, &count);
    return count;
}

MODEL_TEST(has_what_a_classifiers_checkpoint_has, 0) {
    struct bert_weights weights = {0};
    struct wanted w = {.model = f->model, .prefix = "bert."};
    EXPECT_OK(bert_tensors_visit(&f->config.bert, (struct bert_heads){true, true}, &weights,
                                 want_bert, &w));
    EXPECT_INT_EQ(w.count, count_parameters(f->model));
}

MODEL_TEST(has_what_a_masked_language_models_checkpoint_has, 1) {
    struct bert_weights weights = {0};
    struct wanted w = {.model = f->model, .prefix = "bert."};
    EXPECT_OK(bert_tensors_visit(&f->config.bert, (struct bert_heads){false, false}, &weights,
                                 want_bert, &w));
    const size_t C = f->config.bert.C, square[] = {C, C}, vector[] = {C, 0};
    want_tensor(&w, "cls.predictions.transform.dense.weight", false, square, 2);
    want_tensor(&w, "cls.predictions.transform.dense.bias", false, vector, 1);
    want_tensor(&w, "cls.predictions.transform.LayerNorm.weight", false, vector, 1);
    want_tensor(&w, "cls.predictions.transform.LayerNorm.bias", false, vector, 1);
    want_tensor(&w, "cls.predictions.bias", false, (const size_t[]){f->config.bert.V, 0}, 1);
    EXPECT_INT_EQ(w.count, count_parameters(f->model));
}

C_TEST(train_model, has_what_a_llama2s_checkpoint_has) {
    for (size_t tied = 0; tied < 2; tied++) {
        struct fixture f;
        const struct train_config config = model_testing_llama2(tied == 1, NN_ROPE_HALVES);
        ASSERT_TRUE(fixture_create(&f, &config));
        struct wanted w = {.model = f.model, .prefix = ""};
        EXPECT_OK(llama2_tensors_visit(&config.llama2, tied == 1, NULL, NULL, want_llama2, &w));
        EXPECT_INT_EQ(w.count, count_parameters(f.model));
        fixture_free(&f);
    }
}

C_TEST(train_model, has_what_a_gpt_neoxs_checkpoint_has) {
    for (size_t tied = 0; tied < 2; tied++) {
        struct fixture f;
        const struct train_config config = model_testing_gpt_neox(tied == 1, true);
        ASSERT_TRUE(fixture_create(&f, &config));
        struct wanted w = {.model = f.model, .prefix = ""};
        EXPECT_OK(
            gpt_neox_tensors_visit(&config.gpt_neox, tied == 1, NULL, NULL, want_gpt_neox, &w));
        EXPECT_INT_EQ(w.count, count_parameters(f.model));
        fixture_free(&f);
    }
}

/* Expects that a tensor lies directly after the other. */
static void expect_after(const struct train_model *model, const char *second, const char *first) {
    const struct train_parameter *a = train_model_find(model, first);
    const struct train_parameter *b = train_model_find(model, second);
    ASSERT_TRUE(a != NULL && b != NULL);
    EXPECT_INT_EQ(a->offset + a->count, b->offset);
}

KINDS_TEST(places_its_tensors_for_products) {
    size_t count, end = 0;
    bool decays = true;
    const struct train_parameter *list = train_model_parameters(f->model, &count);
    for (size_t i = 0; i < count; i++) {
        EXPECT_TRUE(list[i].offset >= end && list[i].offset < end + 8);
        EXPECT_INT_EQ(0, list[i].offset % 8);
        EXPECT_INT_EQ(list[i].columns > 0, list[i].decays);
        EXPECT_TRUE(decays || !list[i].decays);
        decays = list[i].decays;
        end = list[i].offset + list[i].count;
    }
}

C_TEST(train_model, places_query_key_and_value_one_after_the_other) {
    struct fixture f;
    struct train_config config = config_of(0);
    ASSERT_TRUE(fixture_create(&f, &config));
#define SELF "bert.encoder.layer.1.attention.self."
    expect_after(f.model, SELF "key.weight", SELF "query.weight");
    expect_after(f.model, SELF "value.weight", SELF "key.weight");
    expect_after(f.model, SELF "key.bias", SELF "query.bias");
    expect_after(f.model, SELF "value.bias", SELF "key.bias");
#undef SELF
    fixture_free(&f);
    config = config_of(2);
    ASSERT_TRUE(fixture_create(&f, &config));
    expect_after(f.model, "model.layers.1.self_attn.k_proj.weight",
                 "model.layers.1.self_attn.q_proj.weight");
    expect_after(f.model, "model.layers.1.self_attn.v_proj.weight",
                 "model.layers.1.self_attn.k_proj.weight");
    expect_after(f.model, "model.layers.1.mlp.up_proj.weight",
                 "model.layers.1.mlp.gate_proj.weight");
    EXPECT_TRUE(train_model_find(f.model, "model.layers.2.mlp.up_proj.weight") == NULL);
    fixture_free(&f);
}

/* ---- In and out ---- */

MODEL_TEST(gives_back_what_was_written, 2) {
    static const enum train_state states[] = {TRAIN_WEIGHTS, TRAIN_GRADIENT, TRAIN_M, TRAIN_V};
    const struct train_parameter *norm = train_model_find(f->model, "model.norm.weight");
    ASSERT_TRUE(norm != NULL && norm->count == 16);
    for (size_t s = 0; s < 4; s++) {
        float values[16], got[16];
        for (size_t i = 0; i < 16; i++) {
            values[i] = (float)(s + 1) + 0.25f * (float)i;
        }
        EXPECT_OK(train_model_write(f->model, states[s], norm, values, NULL));
        EXPECT_OK(train_model_read(f->model, states[s], norm, got, NULL));
        EXPECT_TRUE(memcmp(values, got, sizeof got) == 0);
    }
    double exact[16], weight;
    EXPECT_OK(train_model_read_f64(f->model, TRAIN_M, norm, exact, NULL));
    EXPECT_NEAR(3.0 + 0.25 * 15, exact[15], 0.0);
    exact[15] = 1.0 / 3.0;
    EXPECT_OK(train_model_write_f64(f->model, TRAIN_M, norm, exact, NULL));
    exact[15] = 0.0;
    EXPECT_OK(train_model_read_f64(f->model, TRAIN_M, norm, exact, NULL));
    EXPECT_NEAR(1.0 / 3.0, exact[15], 0.0);
    EXPECT_OK(train_model_read_f64(f->model, TRAIN_WEIGHTS, norm, exact, NULL));
    weight = exact[0];
    EXPECT_NEAR(1.0, weight, 0.0);
}

/* Mean and deviation of a tensor's weights. */
static void expect_drawn(const struct train_model *model, const char *name, double mean,
                         double deviation) {
    const struct train_parameter *parameter = train_model_find(model, name);
    ASSERT_TRUE(parameter != NULL);
    double *values = calloc(parameter->count, sizeof *values);
    ASSERT_TRUE(values != NULL);
    EXPECT_OK(train_model_read_f64(model, TRAIN_WEIGHTS, parameter, values, NULL));
    double sum = 0.0, squares = 0.0, n = (double)parameter->count;
    for (size_t i = 0; i < parameter->count; i++) {
        sum += values[i];
        squares += (values[i] - mean) * (values[i] - mean);
    }
    EXPECT_NEAR(mean, sum / n, 5.0 * deviation / sqrt(n));
    EXPECT_NEAR(deviation, sqrt(squares / n), 5.0 * deviation / sqrt(2.0 * n));
    free(values);
}

C_TEST(train_model, draws_its_weights) {
    struct fixture f;
    struct train_config config = config_of(2);
    ASSERT_TRUE(fixture_create(&f, &config));
    EXPECT_OK(train_model_draw(f.model, 5, NULL));
    expect_drawn(f.model, "model.embed_tokens.weight", 0.0, 0.02);
    expect_drawn(f.model, "model.layers.1.mlp.up_proj.weight", 0.0, 0.02);
    expect_drawn(f.model, "model.layers.1.mlp.down_proj.weight", 0.0, 0.01); /* 2 L is 4 */
    expect_drawn(f.model, "model.layers.0.self_attn.o_proj.weight", 0.0, 0.01);
    expect_drawn(f.model, "model.layers.0.input_layernorm.weight", 1.0, 0.0);
    fixture_free(&f);
    config = config_of(1);
    ASSERT_TRUE(fixture_create(&f, &config));
    EXPECT_OK(train_model_draw(f.model, 5, NULL));
    expect_drawn(f.model, "bert.encoder.layer.0.output.dense.weight", 0.0, 0.02);
    expect_drawn(f.model, "bert.encoder.layer.0.output.dense.bias", 0.0, 0.0);
    expect_drawn(f.model, "cls.predictions.bias", 0.0, 0.0);
    expect_drawn(f.model, "cls.predictions.transform.LayerNorm.weight", 1.0, 0.0);
    fixture_free(&f);
}

MODEL_TEST(draws_the_same_from_the_same_seed, 0) {
    size_t count;
    EXPECT_OK(train_model_draw(f->model, 5, NULL));
    double *first = model_testing_read(f->model, TRAIN_WEIGHTS, &count);
    EXPECT_OK(train_model_draw(f->model, 6, NULL));
    double *other = model_testing_read(f->model, TRAIN_WEIGHTS, &count);
    EXPECT_OK(train_model_draw(f->model, 5, NULL));
    double *again = model_testing_read(f->model, TRAIN_WEIGHTS, &count);
    ASSERT_TRUE(first != NULL && other != NULL && again != NULL);
    EXPECT_TRUE(memcmp(first, again, count * sizeof *first) == 0);
    EXPECT_TRUE(model_testing_distance(other, first, count) > 0.1);
    free(first);
    free(other);
    free(again);
}

/* ---- Batches that add up ---- */

static const float SCALE = 0.125f;

/* Expects that all gradients are 0. */
static void expect_no_gradient(const struct train_model *model) {
    size_t count;
    double *gradient = model_testing_read(model, TRAIN_GRADIENT, &count);
    ASSERT_TRUE(gradient != NULL);
    for (size_t i = 0; i < count; i++) {
        EXPECT_NEAR(0.0, gradient[i], 0.0);
    }
    free(gradient);
}

/* Gradients and loss of some batches, one after the other. The caller frees. */
static double *add_up(struct train_model *model, const struct train_batch *batches, size_t count,
                      double *loss, size_t *elements) {
    *loss = 0.0;
    if (!model_testing_clear(model)) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        *loss += model_testing_backward(model, &batches[i], SCALE, 1, 1);
    }
    return model_testing_read(model, TRAIN_GRADIENT, elements);
}

static void expect_same_gradient(struct train_model *model, const struct train_batch *whole,
                                 const struct train_batch *parts, size_t count) {
    double want_loss, got_loss;
    size_t elements;
    double *want = add_up(model, whole, 1, &want_loss, &elements);
    double *got = add_up(model, parts, count, &got_loss, &elements);
    ASSERT_TRUE(want != NULL && got != NULL);
    EXPECT_TRUE(want_loss > 0.1);
    EXPECT_NEAR(want_loss, got_loss, 1e-12 * want_loss);
    EXPECT_TRUE(model_testing_distance(got, want, elements) < 1e-12);
    free(want);
    free(got);
}

KINDS_TEST(adds_up_two_batches_as_if_they_were_one) {
    static const size_t lengths[] = {5, 9, 2, 7};
    struct model_testing_batch drawn;
    const struct train_batch whole = model_testing_draw(&drawn, f->config.task, lengths, 4, 21);
    const int32_t second_starts[] = {0, 9, 11, 18};
    const struct train_batch parts[] = {
        {.ids = drawn.ids, .starts = drawn.starts, .B = 1, .labels = drawn.labels},
        {.ids = drawn.ids + 5,
         .starts = second_starts,
         .B = 3,
         .labels = drawn.labels + (f->config.task == TRAIN_CLASSIFY ? 1 : 5)},
    };
    expect_same_gradient(f->model, &whole, parts, 2);
}

KINDS_TEST(does_not_mind_the_order_of_sequences) {
    static const size_t lengths[] = {5, 9};
    struct model_testing_batch a, b = {.starts = {0, 9, 14}, .B = 2};
    model_testing_draw(&a, f->config.task, lengths, 2, 22);
    for (size_t i = 0; i < 14; i++) {
        b.ids[i] = a.ids[(i + 5) % 14];
        b.labels[i] = a.labels[(i + 5) % 14];
    }
    if (f->config.task == TRAIN_CLASSIFY) {
        b.labels[0] = a.labels[1];
        b.labels[1] = a.labels[0];
    }
    const struct train_batch whole = model_testing_view(&a), rotated = model_testing_view(&b);
    expect_same_gradient(f->model, &whole, &rotated, 1);
}

KINDS_TEST(evaluates_the_same_loss_and_leaves_gradients_alone) {
    static const size_t lengths[] = {3, 8};
    struct model_testing_batch drawn;
    size_t count;
    const struct train_batch batch = model_testing_draw(&drawn, f->config.task, lengths, 2, 23);
    double loss = model_testing_backward(f->model, &batch, SCALE, 1, 1);
    double *before = model_testing_read(f->model, TRAIN_GRADIENT, &count);
    EXPECT_NEAR(loss, model_testing_evaluate(f->model, &batch, SCALE), 0.0);
    double *after = model_testing_read(f->model, TRAIN_GRADIENT, &count);
    ASSERT_TRUE(before != NULL && after != NULL);
    EXPECT_TRUE(memcmp(before, after, count * sizeof *before) == 0);
    free(before);
    free(after);
}

/* More rows than go through the head at once. */
C_TEST(train_model, takes_more_labels_than_its_head) {
    enum { SEQUENCES = 450, LENGTH = 5, ROWS = SEQUENCES * LENGTH };
    static int32_t ids[ROWS], labels[ROWS], starts[SEQUENCES + 1];
    for (size_t kind = 1; kind < 3; kind++) {
        struct fixture f;
        struct train_config config = config_of(kind);
        config.most_rows = ROWS;
        config.most_sequences = SEQUENCES;
        config.bert.L = config.llama2.L = 1;
        ASSERT_TRUE(fixture_create(&f, &config));
        for (size_t i = 0; i < ROWS; i++) {
            ids[i] = (int32_t)(i * 7 % MODEL_TESTING_V);
            labels[i] = (int32_t)(i * 5 % MODEL_TESTING_V);
            starts[i / LENGTH + 1] = (int32_t)((i / LENGTH + 1) * LENGTH);
        }
        enum { HALF = SEQUENCES / 2 };
        const struct train_batch whole = {ids, starts, SEQUENCES, labels};
        const struct train_batch parts[] = {
            {ids, starts, HALF, labels},
            {ids + HALF * LENGTH, starts, HALF, labels + HALF * LENGTH},
        };
        expect_same_gradient(f.model, &whole, parts, 2);
        fixture_free(&f);
    }
}

MODEL_TEST(learns_nothing_where_no_label_is, 1) {
    const int32_t ids[] = {1, 2, 3}, starts[] = {0, 3}, labels[] = {-1, -1, -1};
    const struct train_batch batch = {ids, starts, 1, labels};
    EXPECT_NEAR(0.0, model_testing_backward(f->model, &batch, SCALE, 1, 1), 0.0);
    expect_no_gradient(f->model);
}

/* ---- Dropout ---- */

C_TEST(train_model, drops_by_seed_and_step) {
    static const size_t lengths[] = {9, 4};
    for (size_t task = TRAIN_CLASSIFY; task <= TRAIN_MLM; task++) {
        struct fixture f;
        const struct train_config config = model_testing_bert((enum train_task)task, 0.25f);
        struct model_testing_batch drawn;
        ASSERT_TRUE(fixture_create(&f, &config));
        const struct train_batch batch = model_testing_draw(&drawn, config.task, lengths, 2, 24);
        double loss = model_testing_backward(f.model, &batch, SCALE, 1, 1);
        EXPECT_NEAR(loss, model_testing_backward(f.model, &batch, SCALE, 1, 1), 0.0);
        EXPECT_TRUE(loss != model_testing_backward(f.model, &batch, SCALE, 1, 2));
        EXPECT_TRUE(loss != model_testing_backward(f.model, &batch, SCALE, 2, 1));
        EXPECT_TRUE(loss != model_testing_evaluate(f.model, &batch, SCALE));
        fixture_free(&f);
    }
}

/* The reference, which has no use for a context, and notes of which dropouts ran. */
enum { SITES = 8 };

struct noting {
    struct train_engine real;
    /* In layernorm(), and in dropout() and dropout_bias_backward(): both ways. */
    size_t forward[SITES], alone[SITES];
};

static enum status noting_dropout(void *context, void *out, const void *add, const void *in,
                                  size_t count, const struct train_dropout *dropout) {
    struct noting *n = context;
    n->alone[dropout->site % SITES]++;
    return n->real.dropout(n->real.context, out, add, in, count, dropout);
}

static enum status noting_dropout_bias(void *context, void *din, void *dbias, const void *dout,
                                       size_t rows, size_t C, const struct train_dropout *dropout) {
    struct noting *n = context;
    n->alone[dropout->site % SITES]++;
    return n->real.dropout_bias_backward(n->real.context, din, dbias, dout, rows, C, dropout);
}

static enum status noting_layernorm(void *context, void *out, void *stats, void *sum,
                                    const void *add, const void *in,
                                    const struct train_dropout *dropout,
                                    const struct train_norm *norm, size_t rows, size_t C) {
    struct noting *n = context;
    n->forward[dropout->site % SITES] += dropout->p > 0.0f;
    return n->real.layernorm(n->real.context, out, stats, sum, add, in, dropout, norm, rows, C);
}

/* Embeddings 0, layers 1 to 4, the classifier 5: each once forward and once back. */
C_TEST(train_model, gives_each_dropout_a_site_of_its_own) {
    static const size_t want_forward[SITES] = {0, 1, 1, 1, 1},
                        want_alone[SITES] = {2, 1, 1, 1, 1, 2};
    static const size_t lengths[] = {9, 4};
    struct fixture f;
    const struct train_config config = model_testing_bert(TRAIN_CLASSIFY, 0.25f);
    struct model_testing_batch drawn;
    ASSERT_TRUE(fixture_create(&f, &config));
    const struct train_batch batch = model_testing_draw(&drawn, config.task, lengths, 2, 27);
    struct noting n = {.real = f.engine};
    f.engine.context = &n;
    f.engine.dropout = noting_dropout;
    f.engine.dropout_bias_backward = noting_dropout_bias;
    f.engine.layernorm = noting_layernorm;
    (void)model_testing_backward(f.model, &batch, SCALE, 1, 1);
    for (size_t i = 0; i < SITES; i++) {
        EXPECT_INT_EQ(want_forward[i], n.forward[i]);
        EXPECT_INT_EQ(want_alone[i], n.alone[i]);
    }
    f.engine = n.real;
    fixture_free(&f);
}

/* ---- Updates ---- */

KINDS_TEST(learns_a_fixed_batch) {
    static const size_t lengths[] = {6, 3, 8};
    struct model_testing_batch drawn;
    double first = 0.0, norm = 0.0;
    const struct train_batch batch = model_testing_draw(&drawn, f->config.task, lengths, 3, 25);
    struct train_update update = {.rate = 0.02f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.999f,
                                  .eps = 1e-8f,
                                  .decay = 0.01f,
                                  .most_norm = 1.0f};
    for (size_t step = 1; step <= 20; step++) {
        double loss = model_testing_backward(f->model, &batch, SCALE, 1, (uint32_t)step);
        first = step == 1 ? loss : first;
        update.step = step;
        EXPECT_OK(train_model_update(f->model, &update, NULL));
        EXPECT_OK(train_model_take_loss(f->model, &loss, &norm, NULL));
        EXPECT_NEAR(0.0, loss, 0.0);
        EXPECT_TRUE(isfinite(norm) && norm > 0.0);
    }
    double last = model_testing_evaluate(f->model, &batch, SCALE);
    if (!(last < first / 10.0)) {
        TEST_FAIL("kind %zu: the loss went from %g to %g", f->kind, first, last);
    }
}

MODEL_TEST(starts_with_new_gradients_after_an_update, 0) {
    static const size_t lengths[] = {6, 3};
    struct model_testing_batch drawn;
    const struct train_batch batch = model_testing_draw(&drawn, f->config.task, lengths, 2, 26);
    (void)model_testing_backward(f->model, &batch, SCALE, 1, 1);
    const struct train_update update = {
        .rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .decay = 0.5f, .step = 1};
    EXPECT_OK(train_model_update(f->model, &update, NULL));
    expect_no_gradient(f->model);
}

/* With a gradient of 0 only weight decay acts, and only on matrices. */
MODEL_TEST(decays_only_matrices, 0) {
    const struct train_update update = {
        .rate = 0.5f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .decay = 0.5f, .step = 1};
    size_t count, tensors, at = 0;
    double *before = model_testing_read(f->model, TRAIN_WEIGHTS, &count);
    EXPECT_OK(train_model_update(f->model, &update, NULL));
    double *after = model_testing_read(f->model, TRAIN_WEIGHTS, &count);
    const struct train_parameter *list = train_model_parameters(f->model, &tensors);
    ASSERT_TRUE(before != NULL && after != NULL);
    for (size_t p = 0; p < tensors; at += list[p++].count) {
        for (size_t i = at; i < at + list[p].count; i++) {
            EXPECT_NEAR(before[i] * (list[p].columns > 0 ? 0.75 : 1.0), after[i], 1e-15);
        }
    }
    free(before);
    free(after);
}

MODEL_TEST(refuses_updates_without_sense, 0) {
    const struct train_update good = {
        .rate = 0.5f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .step = 1};
    struct train_update bad[6];
    for (size_t i = 0; i < 6; i++) {
        bad[i] = good;
    }
    bad[0].step = 0;
    bad[1].rate = NAN;
    bad[2].beta1 = 1.0f;
    bad[3].beta2 = -0.1f;
    bad[4].eps = 0.0f;
    bad[5].most_norm = -1.0f;
    for (size_t i = 0; i < 6; i++) {
        EXPECT_ERROR_CONTAINS(STATUS_INVALID_ARGUMENT, "an update cannot have",
                              train_model_update(f->model, &bad[i], &error));
    }
}

KINDS_TEST(continues_adding_to_a_restored_loss) {
    static const size_t lengths[] = {3, 5};
    struct model_testing_batch drawn;
    double want = 0.0, left = 1.0, got = 0.0;
    const struct train_batch batch = model_testing_draw(&drawn, f->config.task, lengths, 2, 5);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(train_model_backward(f->model, &batch, 0.3f, 1, 1, NULL));
    }
    EXPECT_OK(train_model_take_loss(f->model, &want, NULL, NULL));
    EXPECT_OK(train_model_backward(f->model, &batch, 0.3f, 1, 1, NULL));
    EXPECT_OK(train_model_read_loss(f->model, &left, NULL, NULL));
    EXPECT_OK(train_model_take_loss(f->model, &got, NULL, NULL)); /* reading left it there */
    EXPECT_TRUE(left == got && left > 0.0);
    EXPECT_OK(train_model_write_loss(f->model, left, NULL));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(train_model_backward(f->model, &batch, 0.3f, 1, 1, NULL));
    }
    EXPECT_OK(train_model_take_loss(f->model, &got, NULL, NULL));
    EXPECT_TRUE(want == got);
}

/* ---- Bad batches ---- */

struct bad_batch {
    const char *line;
    enum status status;
    struct train_batch batch;
};

#define INVALID(line, ...)               \
    {                                    \
        line, STATUS_INVALID_ARGUMENT, { \
            __VA_ARGS__                  \
        }                                \
    }
#define TOO_LONG(line, ...)      \
    {                            \
        line, STATUS_TOO_LONG, { \
            __VA_ARGS__          \
        }                        \
    }

/* Both ways in say the same line, and leave everything as it was. */
static void expect_refused(const struct train_config *config, const struct bad_batch *bad,
                           size_t count) {
    struct fixture f;
    ASSERT_TRUE(fixture_create(&f, config));
    for (size_t i = 0; i < count; i++) {
        EXPECT_ERROR(bad[i].status, bad[i].line,
                     train_model_backward(f.model, &bad[i].batch, 1.0f, 1, 1, &error));
        EXPECT_ERROR(bad[i].status, bad[i].line,
                     train_model_evaluate(f.model, &bad[i].batch, 1.0f, NULL, &error));
    }
    double loss = 1.0;
    EXPECT_OK(train_model_take_loss(f.model, &loss, NULL, NULL));
    EXPECT_NEAR(0.0, loss, 0.0);
    expect_no_gradient(f.model);
    fixture_free(&f);
}

static const int32_t some_ids[50] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const int32_t no_labels[50] = {0};

C_TEST(train_model, refuses_bad_batches_of_a_classifier) {
    static const int32_t high[] = {1, 37, 3}, negative[] = {1, -1, 3}, starts[] = {0, 3},
                         two[] = {0, 1, 3}, late[] = {1, 3}, empty[] = {0, 2, 2, 3},
                         falls[] = {0, 3, 2}, longest[] = {0, 10},
                         many[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, wrong[] = {0, 3}, none[] = {-1},
                         rows[] = {0, 9, 18, 27, 36, 45};
    const struct bad_batch bad[] = {
        INVALID("row 1 has id 37, which is not one of 37", high, starts, 1, no_labels),
        INVALID("row 1 has id -1, which is not one of 37", negative, starts, 1, no_labels),
        INVALID("sequence 1 has label 3, which is not one of 3", some_ids, two, 2, wrong),
        INVALID("sequence 0 has label -1, which is not one of 3", some_ids, starts, 1, none),
        INVALID("the first sequence begins at row 1", some_ids, late, 1, no_labels),
        INVALID("sequence 1 begins at row 2 and ends at row 2", some_ids, empty, 3, no_labels),
        INVALID("sequence 1 begins at row 3 and ends at row 2", some_ids, falls, 2, no_labels),
        INVALID("a batch without sequences", some_ids, starts, 0, no_labels),
        TOO_LONG("sequence 0 has 10 tokens, the model takes 9", some_ids, longest, 1, no_labels),
        TOO_LONG("a batch of 9 sequences, the model was made for 8", some_ids, many, 9, no_labels),
        TOO_LONG("a batch of 45 rows, the model was made for 40", some_ids, rows, 5, no_labels),
    };
    const struct train_config config = config_of(0);
    expect_refused(&config, bad, sizeof bad / sizeof *bad);
}

C_TEST(train_model, refuses_bad_labels_of_language_models) {
    static const int32_t starts[] = {0, 3}, high[] = {-1, 5, 37}, low[] = {-1, -2, 5};
    const struct bad_batch bad[] = {
        INVALID("row 2 has label 37, which is not one of 37", some_ids, starts, 1, high),
        INVALID("row 1 has label -2, which is not one of 37", some_ids, starts, 1, low),
    };
    for (size_t kind = 1; kind < KINDS; kind++) {
        const struct train_config config = config_of(kind);
        expect_refused(&config, bad, sizeof bad / sizeof *bad);
    }
}

MODEL_TEST(gives_logits_of_a_classifier_only, 1) {
    float logits[MODEL_TESTING_V];
    static const int32_t starts[] = {0, 3};
    const struct train_batch batch = {some_ids, starts, 1, no_labels};
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT,
                 "logits can be read of a classifier only, not of a language model",
                 train_model_evaluate(f->model, &batch, 1.0f, logits, &error));
}

/* ---- Bad models, and engines that fail ---- */

static void expect_no_model(const struct train_config *config, const char *part) {
    struct train_engine engine;
    struct train_model *model = (struct train_model *)&engine;
    ASSERT_OK(train_reference_create(&engine));
    EXPECT_ERROR_CONTAINS(STATUS_INVALID_ARGUMENT, part,
                          train_model_create(&model, config, &engine, &error));
    EXPECT_TRUE(model == NULL);
    train_engine_destroy(&engine);
}

/* Expects that a model of this kind is refused after the change of its configuration `c`. */
#define EXPECT_NO_MODEL(kind, change, part)      \
    do {                                         \
        struct train_config c = config_of(kind); \
        change;                                  \
        expect_no_model(&c, part);               \
    } while (0)

C_TEST(train_model, refuses_sizes_of_bert) {
    EXPECT_NO_MODEL(0, c.bert.NH = 3, "BERT sizes do not fit together: C 16, hidden 20, L 2, NH 3");
    EXPECT_NO_MODEL(0, c.bert.labels = 0, "labels 0");
    EXPECT_NO_MODEL(0, c.bert.C = 12, "C 12: training needs a multiple of 8 channels");
    EXPECT_NO_MODEL(0, c.bert.activation = NN_RELU, "only BERT with \"gelu\"");
    EXPECT_NO_MODEL(0, c.dropout = 1.0f, "dropout 1: must be at least 0 and below 1");
    EXPECT_NO_MODEL(0, c.dropout = NAN, "dropout nan: must be at least 0 and below 1");
    EXPECT_NO_MODEL(0, c.most_rows = 0, "a batch of 0 rows");
    EXPECT_NO_MODEL(0, c.most_sequences = c.most_rows + 1, "41 sequences");
    EXPECT_NO_MODEL(0, c.task = (enum train_task)7, "there is no task 7");
}

C_TEST(train_model, refuses_sizes_of_llama2) {
    EXPECT_NO_MODEL(2, c.llama2.KVH = 3,
                    "Llama2 sizes do not fit together: C 16, hidden 20, L 2, NH 4, KVH 3");
    EXPECT_NO_MODEL(2, c.llama2.HS = 3, "HS 3");
    EXPECT_NO_MODEL(2, c.llama2.KVH = 1, "C 16, KVH * HS 4: training needs multiples of 8");
    struct train_config c = config_of(2);
    c.llama2.V = c.llama2.C = c.llama2.hidden = (size_t)1 << 30;
    c.llama2.L = 1024;
    expect_no_model(&c, "more parameters than memory can hold");
    c = config_of(2);
    c.most_rows = INT32_MAX;
    c.llama2.V = c.llama2.hidden = INT32_MAX;
    c.llama2.L = 1024;
    c.llama2.C = 8;
    c.llama2.NH = c.llama2.KVH = (size_t)1 << 30;
    c.llama2.HS = 1 << 10;
    expect_no_model(&c, "more than memory can hold");
}

/* The reference, which has no use for a context, with memory that runs out. */
struct failing {
    size_t allocations, alive, fail_at;
};

static enum status failing_alloc(void *context, size_t bytes, void **memory, struct error *error) {
    struct failing *f = context;
    *memory = NULL;
    if (++f->allocations == f->fail_at) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no %zu bytes", bytes);
    }
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (*memory == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memset(*memory, 0, bytes);
    f->alive++;
    return STATUS_OK;
}

static void failing_release(void *context, void *memory) {
    struct failing *f = context;
    f->alive -= memory != NULL;
    free(memory);
}

static enum status failing_linear(void *context, void *out, const void *in, const void *weight,
                                  const void *bias, size_t M, size_t N, size_t K) {
    (void)context, (void)out, (void)in, (void)weight, (void)bias, (void)M, (void)N, (void)K;
    return STATUS_DEVICE;
}

C_TEST(train_model, cleans_up_where_memory_runs_out) {
    for (size_t kind = 0; kind < KINDS; kind++) {
        const struct train_config config = config_of(kind);
        struct train_engine engine;
        ASSERT_OK(train_reference_create(&engine));
        engine.alloc = failing_alloc;
        engine.release = failing_release;
        size_t total = 1;
        for (size_t n = 0; n <= total; n++) {
            struct failing f = {.fail_at = n};
            struct train_model *model = NULL;
            struct error error = {0};
            engine.context = &f;
            enum status status = train_model_create(&model, &config, &engine, &error);
            EXPECT_STATUS(n == 0 ? STATUS_OK : STATUS_OUT_OF_MEMORY, status);
            EXPECT_TRUE((model != NULL) == (n == 0));
            EXPECT_TRUE(n == 0 || strncmp(error.message, "no ", 3) == 0);
            total = n == 0 ? f.allocations : total;
            train_model_free(model);
            EXPECT_INT_EQ(0, f.alive);
        }
        EXPECT_TRUE(total >= 6);
    }
}

C_TEST(train_model, says_which_engine_failed) {
    static const int32_t starts[] = {0, 3};
    const struct train_batch batch = {some_ids, starts, 1, no_labels};
    struct train_config config = config_of(0);
    struct fixture f;
    ASSERT_TRUE(fixture_create(&f, &config));
    f.engine.linear = failing_linear;
    f.engine.name = "broken";
    EXPECT_ERROR(STATUS_DEVICE, "engine broken: the GPU reported an error",
                 train_model_backward(f.model, &batch, 1.0f, 1, 1, &error));
    fixture_free(&f);
    train_model_free(NULL);
}

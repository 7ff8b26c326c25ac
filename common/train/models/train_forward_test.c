/* A model in training gives the same results as bert.h, llama2.h and gpt_neox.h with the same
 * weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/checkpoints/bert/bert_tensors.h"
#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/models/bert.h"
#include "common/models/engine.h"
#include "common/models/gpt_neox.h"
#include "common/models/llama2.h"
#include "common/testing/testing.h"
#include "common/train/models/model_testing.h"

enum { MOST_TENSORS = 64 };

/* fp32 weights of a model in training, found by name as a loader finds them. */
struct exported {
    const struct train_model *model;
    float *tensors[MOST_TENSORS];
    size_t count;
};

static float *export_tensor(struct exported *e, const char *name) {
    const struct train_parameter *parameter = train_model_find(e->model, name);
    if (parameter == NULL || e->count == MOST_TENSORS) {
        TEST_FAIL("cannot export %s", name);
        return NULL;
    }
    float *values = calloc(parameter->count, sizeof *values);
    EXPECT_OK(train_model_read(e->model, TRAIN_WEIGHTS, parameter, values, NULL));
    e->tensors[e->count++] = values;
    return values;
}

static enum status export_bert(void *context, const struct bert_tensor *tensor) {
    char name[192];
    snprintf(name, sizeof name, "%s%s", tensor->outside ? "" : "bert.", tensor->name);
    *tensor->slot = export_tensor(context, name);
    return *tensor->slot != NULL ? STATUS_OK : STATUS_NOT_FOUND;
}

static enum status export_llama2(void *context, const struct decoder_weight *tensor) {
    *tensor->plain[0] = export_tensor(context, tensor->name);
    return *tensor->plain[0] != NULL ? STATUS_OK : STATUS_NOT_FOUND;
}

static enum status export_gpt_neox(void *context, const struct decoder_weight *tensor) {
    const float *values = export_tensor(context, tensor->name);
    *tensor->stored = (struct decoder_stored_tensor){
        .data = values, .dtype = NN_F32, .rows = 1, .columns = decoder_weight_count(tensor)};
    return values != NULL ? STATUS_OK : STATUS_NOT_FOUND;
}

static void exported_free(struct exported *e) {
    for (size_t i = 0; i < e->count; i++) {
        free(e->tensors[i]);
    }
}

/* A model in training and its engine, and the reference engine for inference. */
struct pair {
    struct train_engine train_engine;
    struct train_model *train;
    struct engine engine;
    struct exported exported;
};

static bool pair_create(struct pair *p, const struct train_config *config) {
    *p = (struct pair){0};
    bool made = engine_reference_create(&p->engine) == STATUS_OK &&
                model_testing_create(&p->train, &p->train_engine, config);
    p->exported.model = p->train;
    return made;
}

static void pair_free(struct pair *p) {
    exported_free(&p->exported);
    train_model_free(p->train);
    train_engine_destroy(&p->train_engine);
    engine_destroy(&p->engine);
}

/* -log of the softmax of logits at label. */
static double cross_entropy(const float *logits, size_t count, int32_t label) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += exp((double)logits[i] - (double)logits[label]);
    }
    return log(sum);
}

/* The classifier's logits by bert.h. @param logits (B, labels) */
static void classify(struct pair *p, const struct train_config *config,
                     const struct train_batch *batch, float *logits) {
    struct bert_layer layers[2] = {0};
    struct bert_weights weights = {.layers = layers};
    struct bert *bert = NULL;
    EXPECT_OK(bert_tensors_visit(&config->bert, (struct bert_heads){true, true}, &weights,
                                 export_bert, &p->exported));
    EXPECT_OK(bert_create(&bert, &config->bert, &weights, &p->engine, MODEL_TESTING_ROWS, NULL));
    ASSERT_TRUE(bert != NULL);
    const struct bert_input input = {.ids = batch->ids, .B = batch->B, .starts = batch->starts};
    EXPECT_OK(bert_forward(bert, &input, &(struct bert_output){.logits = logits}));
    bert_free(bert);
}

C_TEST(train_forward, gives_the_logits_of_bert) {
    enum { B = 4, LABELS = MODEL_TESTING_LABELS };
    static const size_t lengths[B] = {5, 1, 9, 3};
    struct pair p;
    struct model_testing_batch drawn;
    const struct train_config config = model_testing_bert(TRAIN_CLASSIFY, 0.5f);
    float want[B * LABELS] = {0}, got[B * LABELS] = {0};
    double loss = 0.0, want_loss = 0.0;
    ASSERT_TRUE(pair_create(&p, &config));
    const struct train_batch batch = model_testing_draw(&drawn, config.task, lengths, B, 31);
    classify(&p, &config, &batch, want);
    EXPECT_OK(train_model_evaluate(p.train, &batch, 0.25f, got, NULL));
    EXPECT_OK(train_model_take_loss(p.train, &loss, NULL, NULL));
    for (size_t i = 0; i < B * LABELS; i++) {
        EXPECT_NEAR(want[i], got[i], 1e-6);
    }
    for (size_t b = 0; b < B; b++) {
        want_loss += 0.25 * cross_entropy(want + b * LABELS, LABELS, drawn.labels[b]);
    }
    EXPECT_NEAR(want_loss, loss, 1e-6);
    EXPECT_TRUE(fabs(want[0] - want[LABELS]) > 1e-3);
    pair_free(&p);
}

/* losses = the loss of each next token, by llama2.h. */
static void predict(struct pair *p, const struct train_config *config, const int32_t *ids,
                    size_t count, double *losses) {
    struct llama2_layer layers[2] = {0};
    struct llama2_weights weights = {.layers = layers};
    struct llama2 *llama2 = NULL;
    float logits[MODEL_TESTING_V];
    EXPECT_OK(llama2_tensors_visit(&config->llama2, config->tied, NULL, &weights, export_llama2,
                                   &p->exported));
    weights.classifier = config->tied ? weights.embedding : weights.classifier;
    EXPECT_OK(llama2_create(&llama2, &config->llama2, &weights, &p->engine, 1, NULL));
    ASSERT_TRUE(llama2 != NULL);
    for (size_t t = 0; t + 1 < count; t++) {
        EXPECT_OK(llama2_forward(llama2, ids + t, 1, t, logits));
        losses[t] = cross_entropy(logits, MODEL_TESTING_V, ids[t + 1]);
    }
    llama2_free(llama2);
}

/* The same by gpt_neox.h. */
static void predict_gpt_neox(struct pair *p, const struct train_config *config, const int32_t *ids,
                             size_t count, double *losses) {
    struct gpt_neox_stored_layer layers[2] = {0};
    struct gpt_neox_checkpoint checkpoint = {.config = config->gpt_neox,
                                             .shared_classifier = config->tied,
                                             .weights = {.layers = layers}};
    struct gpt_neox_fp32 fp32;
    struct gpt_neox *model = NULL;
    float logits[MODEL_TESTING_V];
    EXPECT_OK(gpt_neox_tensors_visit(&config->gpt_neox, config->tied, &checkpoint.weights, NULL,
                                     export_gpt_neox, &p->exported));
    ASSERT_OK(gpt_neox_checkpoint_convert(&checkpoint, 0, &fp32, NULL));
    EXPECT_OK(gpt_neox_create(&model, &config->gpt_neox, &fp32.weights, &p->engine, 1, NULL));
    ASSERT_TRUE(model != NULL);
    for (size_t t = 0; t + 1 < count; t++) {
        EXPECT_OK(gpt_neox_forward(model, ids + t, 1, t, logits));
        losses[t] = cross_entropy(logits, MODEL_TESTING_V, ids[t + 1]);
    }
    gpt_neox_free(model);
    gpt_neox_fp32_free(&fp32);
}

/* Compares the loss of each row of the second of two sequences, whose positions begin at 0. */
static void check_decoder(const struct train_config *config) {
    enum { FIRST = 4, COUNT = MODEL_TESTING_T };
    static const size_t lengths[] = {FIRST, COUNT};
    struct pair p;
    struct model_testing_batch drawn;
    double want[COUNT] = {0};
    ASSERT_TRUE(pair_create(&p, config));
    const struct train_batch batch = model_testing_draw(&drawn, config->task, lengths, 2, 32);
    const int32_t *ids = drawn.ids + FIRST;
    (config->is_gpt_neox ? predict_gpt_neox : predict)(&p, config, ids, COUNT, want);
    for (size_t t = 0; t + 1 < COUNT; t++) {
        for (size_t i = 0; i < FIRST + COUNT; i++) {
            drawn.labels[i] = i == FIRST + t ? ids[t + 1] : -1;
        }
        EXPECT_NEAR(want[t], model_testing_evaluate(p.train, &batch, 1.0f), 1e-5);
    }
    EXPECT_TRUE(fabs(want[0] - want[1]) > 1e-3);
    pair_free(&p);
}

C_TEST(train_forward, gives_the_losses_of_llama2) {
    for (size_t tied = 0; tied < 2; tied++) {
        struct train_config config = model_testing_llama2(tied == 1, NN_ROPE_HALVES);
        check_decoder(&config);
        config.llama2.rope_layout = NN_ROPE_INTERLEAVED;
        check_decoder(&config);
    }
}

C_TEST(train_forward, gives_the_losses_of_gpt_neox) {
    for (int tied = 0; tied < 2; tied++) {
        for (int parallel = 0; parallel < 2; parallel++) {
            const struct train_config config = model_testing_gpt_neox(tied, parallel);
            check_decoder(&config);
        }
    }
}

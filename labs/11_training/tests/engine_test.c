/*
 * Whole models on the engine with the subject's three functions, next to the reference engine in
 * double: losses, every gradient, and the weights after updates; and twice with the same bits.
 */
#include "labs/11_training/given/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/train/models/model_testing.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { STEPS = 2 };

/* What a run of some steps gives. */
struct outcome {
    double loss[STEPS], norm[STEPS];
    double *gradient; /* of the first step */
    double *weights;  /* after the last one */
    size_t count;
};

static void outcome_free(struct outcome *o) {
    free(o->gradient);
    free(o->weights);
}

static enum status step(struct train_model *model, const struct model_testing_batch *batch, int i,
                        struct outcome *o, struct error *error) {
    const struct train_batch view = model_testing_view(batch);
    const struct train_update update = {.rate = 1e-3f,
                                        .beta1 = 0.9f,
                                        .beta2 = 0.999f,
                                        .eps = 1e-6f,
                                        .decay = 0.01f,
                                        .most_norm = 0.5f,
                                        .step = (uint64_t)i + 1};
    TRY(train_model_backward(model, &view, 0.25f, 3, (uint32_t)i, error));
    if (i == 0) {
        o->gradient = model_testing_read(model, TRAIN_GRADIENT, &o->count);
    }
    TRY(train_model_update(model, &update, error));
    return train_model_take_loss(model, &o->loss[i], &o->norm[i], error);
}

/* The same weights, batches and dropout on any engine. */
static bool run(const struct train_engine *engine, const struct train_config *config,
                struct outcome *o) {
    static const size_t lengths[] = {9, 1, 4, 7, 9};
    struct train_model *model = NULL;
    struct error error = {0};
    *o = (struct outcome){.count = 0};
    enum status status = train_model_create(&model, config, engine, &error);
    bool good = status == STATUS_OK && model_testing_fill(model);
    for (int i = 0; i < STEPS && good; i++) {
        struct model_testing_batch batch;
        model_testing_draw(&batch, config->task, lengths, COUNT(lengths), (uint64_t)i + 1);
        status = step(model, &batch, i, o, &error);
        good = status == STATUS_OK;
    }
    if (good) {
        o->weights = model_testing_read(model, TRAIN_WEIGHTS, &o->count);
        good = o->gradient != NULL && o->weights != NULL;
    }
    if (!good) {
        TEST_FAIL("%s: %s", engine->name, error_text(&error, status));
    }
    train_model_free(model);
    return good;
}

/* Shares of the right value: of a gradient's norm, and of a loss. fp32's roundings, of which a sum
   has a few dozen, with room for a GPU's exp; of bf16's 2^-9 each, some ten lie one behind the
   other in the gradient, while the loss is a mean. */
struct allowed {
    double gradient, loss;
};

static const struct allowed allowed_f32 = {1e-5, 2e-6}, allowed_bf16 = {3e-2, 2e-3};

static void compare(const struct outcome *want, const struct outcome *got, struct allowed allowed,
                    const char *what) {
    double distance = model_testing_distance(got->gradient, want->gradient, want->count);
    if (!(distance <= allowed.gradient)) {
        TEST_FAIL("%s: the gradient is %.3g of its norm off, more than %.3g", what, distance,
                  allowed.gradient);
    }
    for (int i = 0; i < STEPS; i++) {
        EXPECT_NEAR(want->loss[i], got->loss[i], allowed.loss * fabs(want->loss[i]));
        EXPECT_NEAR(want->norm[i], got->norm[i], allowed.gradient * want->norm[i]);
    }
}

/* AdamW's first steps go by the gradient's sign: an element whose gradient is nearly 0 may go the
   other way, but most must agree. */
static void compare_weights(const struct outcome *want, const struct outcome *got,
                            const char *what) {
    size_t off = 0;
    for (size_t i = 0; i < want->count; i++) {
        off += !(fabs(got->weights[i] - want->weights[i]) <= 2e-4);
    }
    if (off > want->count / 20) {
        TEST_FAIL("%s: %zu of %zu weights are more than 2e-4 off", what, off, want->count);
    }
}

static void check_same(const struct outcome *first, const struct outcome *second,
                       const char *what) {
    size_t bytes = first->count * sizeof *first->weights;
    if (memcmp(first->gradient, second->gradient, bytes) != 0 ||
        memcmp(first->weights, second->weights, bytes) != 0 ||
        memcmp(first->loss, second->loss, sizeof first->loss) != 0) {
        TEST_FAIL("%s: other bits the second time", what);
    }
}

static void check_on(const struct train_engine *gpu, const struct train_config *config,
                     const struct outcome *want, struct allowed allowed, const char *what) {
    struct outcome first, second = {.count = 0};
    if (run(gpu, config, &first) && run(gpu, config, &second)) {
        compare(want, &first, allowed, what);
        compare_weights(want, &first, what);
        check_same(&first, &second, what);
    }
    outcome_free(&first);
    outcome_free(&second);
}

static void check(const struct train_config *config, const char *what) {
    static const enum nn_dtype types[] = {NN_F32, NN_BF16};
    struct train_engine reference, gpu;
    struct outcome want;
    struct error error = {0};
    ASSERT_OK(train_reference_create(&reference));
    bool good = run(&reference, config, &want);
    for (size_t i = 0; i < COUNT(types) && good; i++) {
        enum status status = training_engine_create(&gpu, types[i], &error);
        if (status == STATUS_NO_DEVICE) {
            test_stop(__FILE__, __LINE__, "%s", error.message);
        } else if (status != STATUS_OK) {
            TEST_FAIL("%s: %s", what, error_text(&error, status));
        } else {
            check_on(&gpu, config, &want, i == 0 ? allowed_f32 : allowed_bf16, what);
        }
        train_engine_destroy(&gpu);
    }
    outcome_free(&want);
    train_engine_destroy(&reference);
}

C_TEST(engine, classifies) {
    const struct train_config config = model_testing_bert(TRAIN_CLASSIFY, 0.1f);
    check(&config, "BERT, classify");
}

C_TEST(engine, finds_masked_tokens) {
    const struct train_config config = model_testing_bert(TRAIN_MLM, 0.1f);
    check(&config, "BERT, mlm");
}

/* Heads of 8 channels, the fewest that attention_backward() takes. */
static struct train_config llama2(bool tied, enum nn_rope_layout layout) {
    struct train_config config = model_testing_llama2(tied, layout);
    config.llama2.HS = 8;
    config.llama2.C = config.llama2.NH * config.llama2.HS;
    return config;
}

C_TEST(engine, predicts_tokens) {
    const struct train_config config = llama2(false, NN_ROPE_INTERLEAVED);
    check(&config, "Llama2");
}

C_TEST(engine, predicts_tokens_with_a_tied_embedding) {
    const struct train_config config = llama2(true, NN_ROPE_HALVES);
    check(&config, "Llama2, tied");
}

/**
 * @file train_cpu_model_test.c
 * @brief Whole models on the CPU's engine next to the reference in double: losses, every gradient
 *        and the weights after updates; on one thread and on three with the same bits.
 */
#include "common/train/cpu/train_cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/train/models/model_testing.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { STEPS = 3 };

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
static void run(struct train_engine *engine, const struct train_config *config, struct outcome *o) {
    static const size_t lengths[] = {9, 1, 4, 7, 9};
    struct train_model *model = NULL;
    *o = (struct outcome){.count = 0};
    ASSERT_OK(train_model_create(&model, config, engine, NULL));
    ASSERT_TRUE(model_testing_fill(model));
    for (int i = 0; i < STEPS; i++) {
        struct model_testing_batch batch;
        model_testing_draw(&batch, config->task, lengths, COUNT(lengths), (uint64_t)i + 1);
        EXPECT_OK(step(model, &batch, i, o, NULL));
    }
    o->weights = model_testing_read(model, TRAIN_WEIGHTS, &o->count);
    train_model_free(model);
    train_engine_destroy(engine);
}

/* Shares of the gradient's norm and of the loss: fp32's roundings, of which a sum has a few dozen.
 */
static const double MOST_GRADIENT = 1e-5, MOST_LOSS = 2e-6;

/* AdamW's first steps go by the gradient's sign: where that is nearly 0, it may go the other way.
 */
static void compare(const struct outcome *want, const struct outcome *got) {
    size_t off = 0;
    double distance = model_testing_distance(got->gradient, want->gradient, want->count);
    if (!(distance <= MOST_GRADIENT)) {
        TEST_FAIL("the gradient is %.3g of its norm off", distance);
    }
    for (int i = 0; i < STEPS; i++) {
        EXPECT_NEAR(want->loss[i], got->loss[i], MOST_LOSS * fabs(want->loss[i]));
        EXPECT_NEAR(want->norm[i], got->norm[i], MOST_GRADIENT * want->norm[i]);
    }
    for (size_t i = 0; i < want->count; i++) {
        off += !(fabs(got->weights[i] - want->weights[i]) <= 2e-4);
    }
    if (off > want->count / 20) {
        TEST_FAIL("%zu of %zu weights are more than 2e-4 off", off, want->count);
    }
}

static void check(const struct train_config *config) {
    struct train_engine reference, one, three;
    struct outcome want, first, second;
    ASSERT_OK(train_reference_create(&reference));
    ASSERT_OK(train_cpu_create(&one, 1));
    ASSERT_OK(train_cpu_create(&three, 3));
    run(&reference, config, &want);
    run(&one, config, &first);
    run(&three, config, &second);
    compare(&want, &first);
    EXPECT_INT_EQ(0, memcmp(first.gradient, second.gradient, first.count * sizeof(double)));
    EXPECT_INT_EQ(0, memcmp(first.weights, second.weights, first.count * sizeof(double)));
    outcome_free(&want);
    outcome_free(&first);
    outcome_free(&second);
}

C_TEST(train_cpu_model, classifies) {
    const struct train_config config = model_testing_bert(TRAIN_CLASSIFY, 0.1f);
    check(&config);
}

C_TEST(train_cpu_model, finds_masked_tokens) {
    const struct train_config config = model_testing_bert(TRAIN_MLM, 0.1f);
    check(&config);
}

C_TEST(train_cpu_model, predicts_tokens) {
    const struct train_config config = model_testing_llama2(false, NN_ROPE_INTERLEAVED);
    check(&config);
}

C_TEST(train_cpu_model, predicts_tokens_with_a_tied_embedding) {
    const struct train_config config = model_testing_llama2(true, NN_ROPE_HALVES);
    check(&config);
}

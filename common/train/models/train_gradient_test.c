/* Compares the whole model's gradient with central differences of its loss, on the reference. */
#include <math.h>
#include <stdlib.h>

#include "common/testing/testing.h"
#include "common/train/models/model_testing.h"

enum { SAMPLES = 7 };
static const double TOLERANCE = 1e-6;
static const float SCALE = 0.25f;

/* A model, a batch, and the loss to check: with dropout or without. */
struct setting {
    struct train_engine engine;
    struct train_model *model;
    struct model_testing_batch drawn;
    struct train_batch batch;
    bool with_dropout;
};

static bool setting_create(struct setting *s, const struct train_config *config) {
    static const size_t lengths[] = {5, 1, 9, 3};
    *s = (struct setting){.with_dropout = config->dropout > 0.0f};
    s->batch = model_testing_draw(&s->drawn, config->task, lengths, 4, 11);
    return model_testing_create(&s->model, &s->engine, config);
}

static void setting_free(struct setting *s) {
    train_model_free(s->model);
    train_engine_destroy(&s->engine);
}

/* The loss whose gradient is checked: of an evaluation, or with the same dropout. */
static double loss_of(struct setting *s) {
    return s->with_dropout ? model_testing_backward(s->model, &s->batch, SCALE, 3, 8)
                           : model_testing_evaluate(s->model, &s->batch, SCALE);
}

/* The loss with element i of values changed by `by`. */
static double loss_at(struct setting *s, const struct train_parameter *parameter, double *values,
                      size_t i, double by) {
    double before = values[i];
    values[i] = before + by;
    EXPECT_OK(train_model_write_f64(s->model, TRAIN_WEIGHTS, parameter, values, NULL));
    values[i] = before;
    return loss_of(s);
}

/* Five points: the error is h^4 / 30 of the fifth derivative, and 1e-16 / h of the loss. */
static double difference(struct setting *s, const struct train_parameter *parameter, double *values,
                         size_t i) {
    const double h = 1e-3;
    double near = loss_at(s, parameter, values, i, h) - loss_at(s, parameter, values, i, -h);
    double far = loss_at(s, parameter, values, i, 2 * h) - loss_at(s, parameter, values, i, -2 * h);
    return (8.0 * near - far) / (12.0 * h);
}

static double largest(const double *values, size_t count) {
    double most = 0.0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs(values[i]));
    }
    return most;
}

/* Checks some elements of a tensor and its largest one, relative to the largest; for a tensor
   without influence (a key's bias) relative to 1e-5 of the model's largest. */
static void check_tensor(struct setting *s, const struct train_parameter *parameter,
                         const double *gradient, double model_largest) {
    double *values = calloc(parameter->count, sizeof *values);
    ASSERT_TRUE(values != NULL);
    EXPECT_OK(train_model_read_f64(s->model, TRAIN_WEIGHTS, parameter, values, NULL));
    double scale = fmax(largest(gradient, parameter->count), 1e-5 * model_largest);
    size_t stride = parameter->count / SAMPLES + 1;
    for (size_t i = 0, next = 0; i < parameter->count; i++) {
        bool chosen = i == next || fabs(gradient[i]) == scale;
        next += i == next ? stride : 0;
        double want = chosen ? difference(s, parameter, values, i) : 0.0;
        if (chosen && !(fabs(want - gradient[i]) <= TOLERANCE * scale)) {
            TEST_FAIL("%s[%zu]: gradient %.9g, differences say %.9g", parameter->name, i,
                      gradient[i], want);
        }
    }
    EXPECT_OK(train_model_write_f64(s->model, TRAIN_WEIGHTS, parameter, values, NULL));
    free(values);
}

static void check(struct train_config config) {
    struct setting s;
    size_t count, tensors, at = 0;
    ASSERT_TRUE(setting_create(&s, &config));
    model_testing_backward(s.model, &s.batch, SCALE, 3, 8);
    double *gradient = model_testing_read(s.model, TRAIN_GRADIENT, &count);
    ASSERT_TRUE(gradient != NULL);
    double most = largest(gradient, count);
    EXPECT_TRUE(most > 1e-3);
    const struct train_parameter *list = train_model_parameters(s.model, &tensors);
    for (size_t p = 0; p < tensors; at += list[p++].count) {
        check_tensor(&s, &list[p], gradient + at, most);
    }
    free(gradient);
    setting_free(&s);
}

C_TEST(train_gradient, of_a_classifier) {
    check(model_testing_bert(TRAIN_CLASSIFY, 0.0f));
}

C_TEST(train_gradient, of_a_classifier_with_dropout) {
    check(model_testing_bert(TRAIN_CLASSIFY, 0.3f));
}

C_TEST(train_gradient, of_a_masked_language_model) {
    check(model_testing_bert(TRAIN_MLM, 0.0f));
}

C_TEST(train_gradient, of_a_masked_language_model_with_dropout) {
    check(model_testing_bert(TRAIN_MLM, 0.3f));
}

C_TEST(train_gradient, of_a_language_model) {
    check(model_testing_llama2(false, NN_ROPE_HALVES));
}

C_TEST(train_gradient, of_a_tied_language_model_with_the_other_rotary_layout) {
    check(model_testing_llama2(true, NN_ROPE_INTERLEAVED));
}

C_TEST(train_gradient, of_a_gpt_neox) {
    check(model_testing_gpt_neox(false, true));
}

C_TEST(train_gradient, of_a_tied_gpt_neox_with_sublayers_one_after_the_other) {
    check(model_testing_gpt_neox(true, false));
}

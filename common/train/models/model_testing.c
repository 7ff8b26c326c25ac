#include "common/train/models/model_testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

static uint64_t fnv1a(const char *text) {
    uint64_t state = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++) {
        state = (state ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return state;
}

double model_testing_uniform(const char *name, size_t index) {
    uint64_t z = (uint64_t)(index + 1) * 0x9e3779b97f4a7c15u + fnv1a(name);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z = z ^ (z >> 31);
    return (double)(z >> 40) * 0x1p-23 - 1.0;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static float value_of(const struct train_parameter *parameter, size_t index) {
    double u = model_testing_uniform(parameter->name, index);
    bool norm = parameter->columns == 0 && ends_with(parameter->name, ".weight");
    return (float)(norm ? 1.0 + u / 8 : parameter->columns == 0 ? u / 8 : u / 4);
}

bool model_testing_fill(struct train_model *model) {
    size_t count;
    const struct train_parameter *list = train_model_parameters(model, &count);
    bool good = true;
    for (size_t p = 0; p < count && good; p++) {
        float *values = calloc(list[p].count, sizeof *values);
        for (size_t i = 0; values != NULL && i < list[p].count; i++) {
            values[i] = value_of(&list[p], i);
        }
        good = values != NULL &&
               train_model_write(model, TRAIN_WEIGHTS, &list[p], values, NULL) == STATUS_OK;
        free(values);
    }
    if (!good) {
        TEST_FAIL("cannot fill the model");
    }
    return good;
}

bool model_testing_create(struct train_model **model, struct train_engine *engine,
                          const struct train_config *config) {
    struct error error = {0};
    if (train_reference_create(engine) != STATUS_OK ||
        train_model_create(model, config, engine, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return false;
    }
    return model_testing_fill(*model);
}

struct train_config model_testing_bert(enum train_task task, float dropout) {
    return (struct train_config){
        .task = task,
        .bert = {.C = 16,
                 .hidden = 20,
                 .L = 2,
                 .NH = 2,
                 .V = MODEL_TESTING_V,
                 .T = MODEL_TESTING_T,
                 .types = 2,
                 .labels = MODEL_TESTING_LABELS,
                 .norm_eps = 1e-12f,
                 .activation = NN_GELU},
        .dropout = dropout,
        .most_rows = MODEL_TESTING_ROWS,
        .most_sequences = MODEL_TESTING_SEQUENCES,
    };
}

struct train_config model_testing_llama2(bool tied, enum nn_rope_layout layout) {
    return (struct train_config){
        .task = TRAIN_LM,
        .llama2 = {.C = 16,
                   .hidden = 20,
                   .L = 2,
                   .NH = 4,
                   .KVH = 2,
                   .HS = 4,
                   .V = MODEL_TESTING_V,
                   .T = MODEL_TESTING_T,
                   .rope_theta = 100.0f,
                   .norm_eps = 1e-5f,
                   .rope_layout = layout},
        .tied = tied,
        .most_rows = MODEL_TESTING_ROWS,
        .most_sequences = MODEL_TESTING_SEQUENCES,
    };
}

struct train_config model_testing_gpt_neox(bool tied, bool parallel) {
    return (struct train_config){
        .task = TRAIN_LM,
        .is_gpt_neox = true,
        .gpt_neox = {.C = 24,
                     .hidden = 20,
                     .L = 2,
                     .NH = 3,
                     .HS = 8,
                     .V = MODEL_TESTING_V,
                     .T = MODEL_TESTING_T,
                     .rotary = 4,
                     .rope_theta = 100.0f,
                     .norm_eps = 1e-5f,
                     .activation = NN_GELU,
                     .parallel = parallel,
                     .attention_bias = true},
        .tied = tied,
        .most_rows = MODEL_TESTING_ROWS,
        .most_sequences = MODEL_TESTING_SEQUENCES,
    };
}

struct train_batch model_testing_view(const struct model_testing_batch *batch) {
    return (struct train_batch){
        .ids = batch->ids, .starts = batch->starts, .B = batch->B, .labels = batch->labels};
}

struct train_batch model_testing_draw(struct model_testing_batch *batch, enum train_task task,
                                      const size_t *lengths, size_t B, uint64_t seed) {
    struct rng rng = rng_create(seed);
    *batch = (struct model_testing_batch){.B = B};
    int32_t row = 0;
    for (size_t b = 0; b < B; b++) {
        for (size_t i = 0; i < lengths[b]; i++, row++) {
            batch->ids[row] = (int32_t)rng_below(&rng, MODEL_TESTING_V);
            batch->labels[row] = row % 3 != 1 ? (int32_t)rng_below(&rng, MODEL_TESTING_V) : -1;
        }
        batch->starts[b + 1] = row;
    }
    for (size_t b = 0; b < B && task == TRAIN_CLASSIFY; b++) {
        batch->labels[b] = (int32_t)rng_below(&rng, MODEL_TESTING_LABELS);
    }
    return model_testing_view(batch);
}

/* Takes the accumulated loss after a call that returned `called`. @return NaN after a failure */
static double take(struct train_model *model, enum status called, struct error *error) {
    double loss = NAN;
    enum status status =
        called != STATUS_OK ? called : train_model_take_loss(model, &loss, NULL, error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(error, status));
        return NAN;
    }
    return loss;
}

double model_testing_evaluate(struct train_model *model, const struct train_batch *batch,
                              float scale) {
    struct error error = {0};
    return take(model, train_model_evaluate(model, batch, scale, NULL, &error), &error);
}

double model_testing_backward(struct train_model *model, const struct train_batch *batch,
                              float scale, uint64_t seed, uint32_t step) {
    struct error error = {0};
    return take(model, train_model_backward(model, batch, scale, seed, step, &error), &error);
}

double *model_testing_read(const struct train_model *model, enum train_state state, size_t *count) {
    size_t tensors;
    const struct train_parameter *list = train_model_parameters(model, &tensors);
    *count = 0;
    for (size_t p = 0; p < tensors; p++) {
        *count += list[p].count;
    }
    double *values = calloc(*count, sizeof *values);
    size_t at = 0;
    bool good = values != NULL;
    for (size_t p = 0; p < tensors && good; at += list[p++].count) {
        good = train_model_read_f64(model, state, &list[p], values + at, NULL) == STATUS_OK;
    }
    if (!good) {
        TEST_FAIL("cannot read the model");
        free(values);
        return NULL;
    }
    return values;
}

bool model_testing_clear(struct train_model *model) {
    size_t tensors;
    const struct train_parameter *list = train_model_parameters(model, &tensors);
    bool good = true;
    for (size_t p = 0; p < tensors && good; p++) {
        double *zeros = calloc(list[p].count, sizeof *zeros);
        good = zeros != NULL &&
               train_model_write_f64(model, TRAIN_GRADIENT, &list[p], zeros, NULL) == STATUS_OK;
        free(zeros);
    }
    if (!good) {
        TEST_FAIL("cannot clear the gradients");
    }
    return good;
}

double model_testing_distance(const double *got, const double *want, size_t count) {
    double difference = 0.0, norm = 0.0;
    for (size_t i = 0; i < count; i++) {
        difference += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return isfinite(difference) ? sqrt(difference / norm) : INFINITY;
}

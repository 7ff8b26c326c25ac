/*
 * The losses of a training of BERT-base from random weights, a line a step, on this lab's engine;
 * --export writes the weights and the batches, from which notebooks/yardsticks/pytorch_losses.py
 * trains in PyTorch. Dropout is off, and the gradient is clipped to a norm of 1.
 *
 * A text's class shows in its words: those of class 1 are SHIFT further on. Every eighth label is
 * wrong, so that the loss does not go to 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/base/rng.h"
#include "common/programs/dtype_flag.h"
#include "common/train/models/train_model.h"
#include "common/train/program/schedule.h"
#include "labs/11_training/given/engine.h"

enum { WORDS = 1000, SHIFT = 500, LABELS = 2, WRONG_OF = 8 };

struct options {
    int steps, batch, length, layers;
    float rate;
    const char *dtype_name, *folder;
    enum nn_dtype dtype;
    bool tiny;
};

static struct train_config config_of(const struct options *o) {
    size_t B = (size_t)o->batch, T = (size_t)o->length;
    return (struct train_config){.task = TRAIN_CLASSIFY,
                                 .bert = {.C = o->tiny ? 32 : 768,
                                          .hidden = o->tiny ? 64 : 3072,
                                          .L = o->tiny ? 1 : (size_t)o->layers,
                                          .NH = o->tiny ? 2 : 12,
                                          .V = WORDS + SHIFT,
                                          .T = T,
                                          .types = 2,
                                          .labels = LABELS,
                                          .norm_eps = 1e-12f,
                                          .activation = NN_GELU},
                                 .most_rows = B * T,
                                 .most_sequences = B};
}

/* ---- The texts of all steps ---- */

struct texts {
    size_t B, T;
    int32_t *ids, *labels, *starts; /* (steps, B, T), (steps, B), (B + 1) */
};

static void texts_free(struct texts *x) {
    free(x->ids);
    free(x->labels);
    free(x->starts);
}

static enum status texts_create(struct texts *x, const struct options *o, struct error *error) {
    size_t B = (size_t)o->batch, T = (size_t)o->length, count = (size_t)o->steps * B;
    struct rng rng = rng_create(26);
    *x = (struct texts){.B = B,
                        .T = T,
                        .ids = calloc(count * T, sizeof *x->ids),
                        .labels = calloc(count, sizeof *x->labels),
                        .starts = calloc(B + 1, sizeof *x->starts)};
    if (x->ids == NULL || x->labels == NULL || x->starts == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu texts", count);
    }
    for (size_t n = 0; n < count; n++) {
        int32_t class = (int32_t)rng_below(&rng, LABELS);
        bool wrong = rng_below(&rng, WRONG_OF) == 0;
        x->labels[n] = wrong ? 1 - class : class;
        for (size_t t = 0; t < T; t++) {
            x->ids[n * T + t] = (int32_t)rng_below(&rng, WORDS) + SHIFT * class;
        }
    }
    for (size_t b = 0; b <= B; b++) {
        x->starts[b] = (int32_t)(b * T);
    }
    return STATUS_OK;
}

static struct train_batch batch_of(const struct texts *x, size_t step) {
    return (struct train_batch){.ids = x->ids + step * x->B * x->T,
                                .starts = x->starts,
                                .B = x->B,
                                .labels = x->labels + step * x->B};
}

/* ---- What PyTorch starts from ---- */

static enum status open_in(const char *folder, const char *name, FILE **file, struct error *error) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *file = fopen(path, "wb");
    return *file != NULL ? STATUS_OK
                         : error_set(error, STATUS_IO, "--export: cannot write %s", path);
}

static enum status close_written(FILE *file, const char *name, struct error *error) {
    bool failed = ferror(file) != 0;
    failed = fclose(file) != 0 || failed;
    return failed ? error_set(error, STATUS_IO, "--export: cannot write %s", name) : STATUS_OK;
}

static enum status export_numbers(const char *folder, const char *name, const int32_t *numbers,
                                  size_t count, struct error *error) {
    FILE *file;
    TRY(open_in(folder, name, &file, error));
    (void)fwrite(numbers, sizeof *numbers, count, file);
    return close_written(file, name, error);
}

/* A tensor's values behind those of the ones before, and a line with its name and sizes. */
static enum status export_tensor(const struct train_model *model,
                                 const struct train_parameter *parameter, FILE *list, FILE *values,
                                 struct error *error) {
    float *of_tensor = calloc(parameter->count, sizeof *of_tensor);
    if (of_tensor == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %s", parameter->name);
    }
    enum status status = train_model_read(model, TRAIN_WEIGHTS, parameter, of_tensor, error);
    (void)fprintf(list, "%s %zu %zu\n", parameter->name, parameter->rows, parameter->columns);
    (void)fwrite(of_tensor, sizeof *of_tensor, parameter->count, values);
    free(of_tensor);
    return status;
}

static enum status export_weights(const struct train_model *model, const char *folder,
                                  struct error *error) {
    size_t count;
    const struct train_parameter *parameters = train_model_parameters(model, &count);
    FILE *list = NULL, *values = NULL;
    TRY(open_in(folder, "weights.txt", &list, error));
    enum status status = open_in(folder, "weights.f32", &values, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = export_tensor(model, &parameters[i], list, values, error);
    }
    enum status closed = close_written(list, "weights.txt", error);
    status = status == STATUS_OK ? closed : status;
    if (values != NULL) {
        closed = close_written(values, "weights.f32", error);
    }
    return status == STATUS_OK ? closed : status;
}

static enum status export_all(const struct options *o, const struct texts *x,
                              const struct train_model *model, struct error *error) {
    size_t texts = (size_t)o->steps * x->B;
    TRY(export_numbers(o->folder, "ids.i32", x->ids, texts * x->T, error));
    TRY(export_numbers(o->folder, "labels.i32", x->labels, texts, error));
    return export_weights(model, o->folder, error);
}

/* ---- The training ---- */

static enum status run_step(const struct options *o, const struct texts *x,
                            struct train_model *model, size_t step, struct error *error) {
    const uint64_t total = (uint64_t)o->steps;
    const struct train_schedule schedule = {TRAIN_LINEAR, (double)o->rate, total / 10, total};
    const struct train_update update = {.rate = (float)train_schedule_rate(&schedule, step + 1),
                                        .beta1 = 0.9f,
                                        .beta2 = 0.999f,
                                        .eps = 1e-8f,
                                        .decay = 0.01f,
                                        .most_norm = 1.0f,
                                        .step = step + 1};
    const struct train_batch batch = batch_of(x, step);
    double loss, norm;
    TRY(train_model_step(model, &batch, 1.0f / (float)x->B, 1, (uint32_t)step, &update, error));
    TRY(train_model_take_loss(model, &loss, &norm, error));
    printf("%zu %.9g %.9g\n", step + 1, loss, norm);
    return STATUS_OK;
}

static enum status train(const struct options *o, const struct texts *x, struct train_model *model,
                         struct error *error) {
    TRY(train_model_draw(model, 1, error));
    if (o->folder != NULL) {
        TRY(export_all(o, x, model, error));
    }
    for (size_t step = 0; step < (size_t)o->steps; step++) {
        TRY(run_step(o, x, model, step, error));
    }
    return STATUS_OK;
}

static enum status run(const struct options *o, struct error *error) {
    const struct train_config config = config_of(o);
    struct train_engine engine;
    struct train_model *model = NULL;
    struct texts texts = {0};
    TRY(training_engine_create(&engine, o->dtype, error));
    enum status status = texts_create(&texts, o, error);
    if (status == STATUS_OK) {
        status = train_model_create(&model, &config, &engine, error);
    }
    if (status == STATUS_OK) {
        status = train(o, &texts, model, error);
    }
    train_model_free(model);
    texts_free(&texts);
    train_engine_destroy(&engine);
    return status;
}

static enum status check(struct options *o, struct error *error) {
    if (o->steps < 1 || o->batch < 1 || o->length < 1 || o->layers < 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--steps, --batch-size, --max-length and --layers are 1 or more");
    }
    return dtype_flag_parse(o->dtype_name, &o->dtype, error);
}

int main(int argc, char **argv) {
    struct options o = {.steps = 200,
                        .batch = 16,
                        .length = 128,
                        .layers = 12,
                        .rate = 5e-5f,
                        .dtype_name = "fp32"};
    const struct flag table[] = {
        {"steps", 's', FLAG_INT, &o.steps, "N", "steps"},
        {"batch-size", 'b', FLAG_INT, &o.batch, "N", "texts a step"},
        {"max-length", 'l', FLAG_INT, &o.length, "N", "tokens a text"},
        {"layers", 0, FLAG_INT, &o.layers, "N", "layers of the model"},
        {"lr", 0, FLAG_FLOAT, &o.rate, "X", "highest learning rate, after a tenth of the steps"},
        {"dtype", 'd', FLAG_STRING, &o.dtype_name, "fp32|bf16", "type of the activations"},
        {"export", 0, FLAG_STRING, &o.folder, "DIR",
         "write weights.txt, weights.f32, ids.i32, labels.i32 into a folder that exists"},
        {"tiny", 0, FLAG_SWITCH, &o.tiny, NULL, "a model of 32 channels and one layer"},
    };
    const struct flags flags = {.program = "losses",
                                .positional = "",
                                .summary = "The loss and the gradient's norm of each step.",
                                .table = table,
                                .count = sizeof table / sizeof *table};
    struct error error = {0};
    struct arguments arguments = {0};
    enum status status = flags_read(&flags, argc, argv, &arguments, &error);
    if (status == STATUS_OK && !arguments.help) {
        status = check(&o, &error);
        status = status == STATUS_OK ? run(&o, &error) : status;
    }
    free(arguments.values);
    if (status != STATUS_OK) {
        fprintf(stderr, "losses: %s\n", error_text(&error, status));
    }
    return status == STATUS_OK ? 0 : 1;
}

/* Part (b) of the bench: a training step of BERT with the functions of each step of the ladder. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/device_bench.h"
#include "common/model/model_bench.h"
#include "common/train/train_model.h"
#include "labs/11_training/bench_parts.h"
#include "labs/11_training/engine.h"

enum { TEXTS = 16, SMALL_TEXTS = 2, BERT_WORDS = 30522 };

/* A batch of texts of one length, each with a class. Host. */
struct texts {
    int32_t *ids, *starts, *labels;
    struct train_batch batch;
    size_t T;
};

static void texts_free(struct texts *x) {
    free(x->ids);
    free(x->starts);
    free(x->labels);
}

static enum status texts_create(struct texts *x, size_t B, size_t T, size_t V,
                                struct error *error) {
    struct rng rng = rng_create(5);
    *x = (struct texts){.T = T};
    x->ids = calloc(B * T, sizeof *x->ids);
    x->starts = calloc(B + 1, sizeof *x->starts);
    x->labels = calloc(B, sizeof *x->labels);
    if (x->ids == NULL || x->starts == NULL || x->labels == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < B * T; i++) {
        x->ids[i] = (int32_t)rng_below(&rng, V);
    }
    for (size_t b = 0; b < B; b++) {
        x->starts[b + 1] = (int32_t)((b + 1) * T);
        x->labels[b] = (int32_t)(b % MODEL_BENCH_LABELS);
    }
    x->batch =
        (struct train_batch){.ids = x->ids, .starts = x->starts, .B = B, .labels = x->labels};
    return STATUS_OK;
}

/* BERT-base, classifying; tiny where time is modelled. */
static struct train_config config_of(const struct bench_setup *setup, size_t B, size_t T) {
    bool small = setup->gpu.modelled;
    struct train_config config = {.task = TRAIN_CLASSIFY,
                                  .bert = model_bench_bert_config(small),
                                  .dropout = 0.1f,
                                  .most_rows = B * T,
                                  .most_sequences = B};
    config.bert.T = T;
    config.bert.V = small ? 200 : BERT_WORDS;
    if (small) {
        config.bert.C = 64;
        config.bert.hidden = 128;
        config.bert.NH = 2;
    }
    return config;
}

struct run_of_model {
    struct train_model *model;
    const struct texts *texts;
};

/* Rate 0: the weights stay, and each run has the same loss and the same norm, which are compared.
 */
static enum status step_once(void *argument, float *results) {
    struct run_of_model *r = argument;
    const struct train_update update = {.rate = 0.0f,
                                        .beta1 = 0.9f,
                                        .beta2 = 0.999f,
                                        .eps = 1e-8f,
                                        .decay = 0.01f,
                                        .most_norm = 1.0f,
                                        .step = 1};
    double loss, norm;
    float scale = 1.0f / (float)r->texts->batch.B;
    TRY(train_model_backward(r->model, &r->texts->batch, scale, 7, 1, NULL));
    TRY(train_model_update(r->model, &update, NULL));
    TRY(train_model_take_loss(r->model, &loss, &norm, NULL));
    results[0] = (float)loss;
    results[1] = (float)norm;
    return STATUS_OK;
}

static enum status measure_step(const struct bench_setup *setup, const struct train_config *config,
                                const struct texts *texts, enum nn_dtype dtype,
                                const struct training_step *step, struct model_bench_run *run,
                                struct error *error) {
    struct train_engine engine = {0};
    struct run_of_model r = {.texts = texts};
    run->name = step->name;
    TRY(training_engine_create_with(&engine, dtype, &step->functions, error));
    enum status status = train_model_create(&r.model, config, &engine, error);
    if (status == STATUS_OK) {
        status = train_model_draw(r.model, 1, error);
    }
    if (status == STATUS_OK) {
        status = model_bench_time(&setup->gpu, setup->quick, step_once, &r, run);
        error_prefix(error, status, step->name);
    }
    train_model_free(r.model);
    train_engine_destroy(&engine);
    return status;
}

static enum status compare_steps(const struct bench_setup *setup, const struct train_config *config,
                                 const struct texts *texts, enum nn_dtype dtype,
                                 struct model_bench_run *runs, struct error *error) {
    size_t count;
    char shape[96];
    const struct training_step *steps = training_ladder(&count);
    const struct bert_config *bert = &config->bert;
    snprintf(shape, sizeof shape, "BERT C%zu L%zu, %zux%zu tokens, %s", bert->C, bert->L,
             texts->batch.B, texts->T, nn_dtype_name(dtype));
    const struct model_bench_table table = {.lab = "11_training",
                                            .subject = WARPBOOK_SUBJECT,
                                            .op = "training_step",
                                            .shape = shape,
                                            .figure = "tokens_per_second",
                                            .units = (double)config->most_rows,
                                            .logits = 2,
                                            .width = 20,
                                            .digits = 2};
    printf("\ntraining step, %s: forward, backward, update, %s\n", shape,
           device_bench_verb(&setup->gpu));
    printf("  %-20s %9s %12s %9s\n", "functions of", "ms", "tokens/s", "in all");
    for (size_t i = 0; i < count; i++) {
        TRY(measure_step(setup, config, texts, dtype, &steps[i], &runs[i], error));
        TRY(model_bench_report(&table, &setup->gpu, steps[i].name, &runs[i], &runs[0], error));
    }
    return STATUS_OK;
}

static enum status bench_length(const struct bench_setup *setup, size_t B, size_t T,
                                enum nn_dtype dtype, struct error *error) {
    size_t count;
    (void)training_ladder(&count);
    struct texts texts;
    const struct train_config config = config_of(setup, B, T);
    struct model_bench_run *runs = calloc(count, sizeof *runs);
    enum status status = texts_create(&texts, B, T, config.bert.V, error);
    if (status == STATUS_OK && runs == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    if (status == STATUS_OK) {
        status = compare_steps(setup, &config, &texts, dtype, runs, error);
    }
    texts_free(&texts);
    free(runs);
    return status;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    static const size_t lengths[] = {128, 512};
    if (setup->gpu.modelled) {
        TRY(bench_length(setup, SMALL_TEXTS, 24, NN_F32, error));
        return bench_length(setup, SMALL_TEXTS, 24, NN_BF16, error);
    }
    for (int i = 0; i < 4; i++) {
        TRY(bench_length(setup, TEXTS, lengths[i / 2], i % 2 == 0 ? NN_F32 : NN_BF16, error));
    }
    return STATUS_OK;
}

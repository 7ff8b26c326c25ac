#include "common/bench/models/model_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/models/compare_logits.h"

enum { MOST_RUNS = 9, QUICK_RUNS = 3 };

static enum status time_runs(model_bench_function *function, void *argument, int runs,
                             struct model_bench_run *run) {
    double seconds[MOST_RUNS];
    for (int i = 0; i < runs; i++) {
        double start = device_now();
        TRY(function(argument, run->logits));
        seconds[i] = device_now() - start;
    }
    run->timing = bench_summarise(seconds, runs);
    return STATUS_OK;
}

enum status model_bench_time(const struct device_properties *gpu, bool quick,
                             model_bench_function *function, void *argument,
                             struct model_bench_run *run) {
    if (gpu->modelled) {
        return time_runs(function, argument, 1, run);
    }
    TRY(time_runs(function, argument, 2, run)); /* warm-up: the GPU's clock rises */
    return time_runs(function, argument, quick ? QUICK_RUNS : MOST_RUNS, run);
}

struct bert_config model_bench_bert_config(bool small) {
    return (struct bert_config){.C = small ? 256 : 768,
                                .hidden = small ? 1024 : 3072,
                                .L = small ? 1 : 12,
                                .NH = small ? 4 : 12,
                                .V = 1000,
                                .T = small ? 32 : 128,
                                .types = 2,
                                .labels = MODEL_BENCH_LABELS,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

static void describe(struct model_bench_bert *b, const struct bert_config *c) {
    snprintf(b->title, sizeof b->title,
             "BERT, C %zu, %zu layer%s, random weights, %d sentences of %zu tokens", c->C, c->L,
             c->L == 1 ? "" : "s", MODEL_BENCH_SENTENCES, c->T);
    snprintf(b->shape, sizeof b->shape, "BERT C%zu L%zu, %dx%zu tokens", c->C, c->L,
             MODEL_BENCH_SENTENCES, c->T);
}

enum status model_bench_bert_create(struct model_bench_bert *b, const struct bert_config *config,
                                    struct error *error) {
    struct rng rng = rng_create(2);
    size_t words = MODEL_BENCH_SENTENCES * config->T;
    *b = (struct model_bench_bert){.ids = malloc(words * sizeof *b->ids)};
    if (b->ids == NULL || bert_random_create(&b->random, config, 1) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    for (size_t i = 0; i < words; i++) {
        b->ids[i] = (int32_t)rng_below(&rng, config->V);
    }
    b->input = (struct bert_input){.ids = b->ids, .B = MODEL_BENCH_SENTENCES, .T = config->T};
    describe(b, config);
    return STATUS_OK;
}

void model_bench_bert_free(struct model_bench_bert *b) {
    bert_random_free(&b->random);
    free(b->ids);
    *b = (struct model_bench_bert){0};
}

/* A model and a batch of texts. */
struct batch {
    struct bert *bert;
    const struct bert_input *input;
};

static enum status run_batch(void *argument, float *logits) {
    const struct batch *batch = argument;
    const struct bert_output output = {.logits = logits};
    return bert_forward(batch->bert, batch->input, &output);
}

enum status model_bench_time_bert(const struct device_properties *gpu, bool quick,
                                  const struct bert_random *random, const struct bert_input *input,
                                  struct engine *engine, struct model_bench_run *run,
                                  struct error *error) {
    struct batch batch = {.input = input};
    TRY(bert_create(&batch.bert, &random->config, &random->weights, engine, input->B * input->T,
                    error));
    enum status status = model_bench_time(gpu, quick, run_batch, &batch, run);
    bert_free(batch.bert);
    return status;
}

static enum status append(const struct model_bench_table *t, const struct device_properties *gpu,
                          const char *stage, const struct bench_timing *timing,
                          struct error *error) {
    const struct bench_gpu device = bench_gpu_of(gpu);
    const struct bench_record record = {
        .lab = t->lab,
        .subject = t->subject,
        .stage = stage,
        .op = t->op,
        .shape = t->shape,
        .dtype = t->dtype != NULL ? t->dtype : "fp32",
        .threads = 1,
        .gpu = &device,
        .timing = *timing,
        .bytes = NAN,
        .flops = t->flops > 0.0 ? t->flops : NAN,
        .peer_ratio = NAN,
        .figure = t->figure,
        .figure_value = 1e3 * t->units / timing->median_ms,
    };
    return bench_append(&record, error);
}

enum status model_bench_record(const struct model_bench_table *t,
                               const struct device_properties *gpu, const char *stage,
                               const struct model_bench_run *run,
                               const struct model_bench_run *first, struct error *error) {
    double difference;
    if (t->activations == NN_F32) {
        TRY(compare_logits(run->logits, run->name, first->logits, first->name, t->logits, error));
    } else {
        TRY(compare_stage_logits(run->logits, run->name, t->activations, t->shape, first->logits,
                                 first->name, t->logits, &difference, error));
    }
    return append(t, gpu, stage, &run->timing, error);
}

enum status model_bench_report(const struct model_bench_table *t,
                               const struct device_properties *gpu, const char *stage,
                               const struct model_bench_run *run,
                               const struct model_bench_run *first, struct error *error) {
    double ms = run->timing.median_ms;
    printf("  %-*s %9.4f %12.1f %*.*fx\n", t->width, run->name, ms, 1e3 * t->units / ms,
           t->digits + 6, t->digits, first->timing.median_ms / ms);
    return model_bench_record(t, gpu, stage, run, first, error);
}

static enum status measure_engine(const struct model_bench_engines *engines, size_t i,
                                  model_bench_engine_function *time, void *argument,
                                  struct model_bench_run *run, struct error *error) {
    struct engine engine;
    run->name = engines->name(i);
    TRY(engines->create(&engine, i, error));
    enum status status = time(argument, &engine, run, error);
    engine_destroy(&engine);
    return status;
}

enum status model_bench_compare(const struct model_bench_engines *engines,
                                const struct model_bench_table *table,
                                const struct device_properties *gpu, const char *title,
                                const char *unit, model_bench_engine_function *time, void *argument,
                                struct error *error) {
    struct model_bench_table t = *table;
    struct model_bench_run first, run;
    t.lab = engines->lab;
    t.subject = engines->subject;
    t.dtype = nn_dtype_name(engines->dtype);
    t.activations = engines->dtype;
    t.width = engines->width;
    t.digits = engines->digits;
    printf("\n%s, %s\n", title, device_bench_verb(gpu));
    printf("  %-*s %9s %12s %*s\n", t.width, engines->what, "ms", unit, t.digits + 7, "in all");
    for (size_t i = 0; i < engines->count; i++) {
        TRY(measure_engine(engines, i, time, argument, &run, error));
        if (i == 0) {
            first = run;
        }
        TRY(model_bench_report(&t, gpu, run.name, &run, &first, error));
    }
    return STATUS_OK;
}

/* What model_bench_time_bert() wants beside the engine. */
struct bert_workload {
    const struct device_properties *gpu;
    bool quick;
    struct model_bench_bert bert;
};

static enum status time_bert(void *argument, struct engine *engine, struct model_bench_run *run,
                             struct error *error) {
    const struct bert_workload *w = argument;
    return model_bench_time_bert(w->gpu, w->quick, &w->bert.random, &w->bert.input, engine, run,
                                 error);
}

enum status model_bench_compare_bert(const struct model_bench_engines *engines,
                                     const struct device_properties *gpu, bool quick, size_t T,
                                     struct error *error) {
    struct bert_workload w = {.gpu = gpu, .quick = quick};
    const struct model_bench_table table = {.op = "bert_batch",
                                            .shape = w.bert.shape,
                                            .figure = "sentences_per_second",
                                            .units = MODEL_BENCH_SENTENCES,
                                            .logits = MODEL_BENCH_SENTENCES * MODEL_BENCH_LABELS};
    struct bert_config config = model_bench_bert_config(gpu->modelled);
    config.T = T > 0 ? T : config.T;
    enum status status = model_bench_bert_create(&w.bert, &config, error);
    if (status == STATUS_OK) {
        status = model_bench_compare(engines, &table, gpu, w.bert.title, "sentences/s", time_bert,
                                     &w, error);
    }
    model_bench_bert_free(&w.bert);
    return status;
}

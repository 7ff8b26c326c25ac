/*
 * Part (b) of the bench: what norms are worth where they are used, a batch of sentences in BERT and
 * one token after another in Llama2.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/device_bench.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "common/model/llama2.h"
#include "common/model/llama2_random.h"
#include "labs/05_layernorm_softmax/bench_parts.h"
#include "labs/05_layernorm_softmax/engine.h"

enum { SENTENCES = 16, LABELS = 2, MOST_RUNS = 9, MOST_LOGITS = 1024, TOKENS = 8 };

/* One step in one model. */
struct run {
    const char *name;
    struct bench_timing timing;
    float logits[MOST_LOGITS];
};

/* A model of random weights, and what is timed. */
struct workload {
    const char *op;     /* as records name it */
    const char *figure; /* and its figure */
    char title[160];
    char shape[96];
    double units; /* sentences or tokens a run */
    size_t logits;
    enum status (*create)(struct workload *w, struct engine *engine, struct error *error);
    enum status (*run)(struct workload *w, float *logits);
    void (*destroy)(struct workload *w);
    struct bert_config bert_config;
    struct bert_random bert_random;
    struct bert *bert;
    int32_t *ids;
    struct llama2_config llama2_config;
    struct llama2_random llama2_random;
    struct llama2 *llama2;
};

static enum status bert_workload_create(struct workload *w, struct engine *engine,
                                        struct error *error) {
    size_t tokens = SENTENCES * w->bert_config.T;
    return bert_create(&w->bert, &w->bert_config, &w->bert_random.weights, engine, tokens, error);
}

static enum status bert_workload_run(struct workload *w, float *logits) {
    const struct bert_input input = {.ids = w->ids, .B = SENTENCES, .T = w->bert_config.T};
    const struct bert_output output = {.logits = logits};
    return bert_forward(w->bert, &input, &output);
}

static void bert_workload_destroy(struct workload *w) {
    bert_free(w->bert);
    w->bert = NULL;
}

static enum status llama2_workload_create(struct workload *w, struct engine *engine,
                                          struct error *error) {
    return llama2_create(&w->llama2, &w->llama2_config, &w->llama2_random.weights, engine, 1,
                         error);
}

static enum status llama2_workload_run(struct workload *w, float *logits) {
    enum status status = STATUS_OK;
    for (size_t i = 0; i < TOKENS && status == STATUS_OK; i++) {
        const int32_t token = (int32_t)(i + 1);
        status = llama2_forward(w->llama2, &token, 1, i, i + 1 == TOKENS ? logits : NULL);
    }
    return status;
}

static void llama2_workload_destroy(struct workload *w) {
    llama2_free(w->llama2);
    w->llama2 = NULL;
}

/* BERT-base; narrower and with one layer where time is modelled. */
static enum status bert_workload(struct workload *w, bool small) {
    *w = (struct workload){.op = "bert_batch",
                           .figure = "sentences_per_second",
                           .units = SENTENCES,
                           .logits = SENTENCES * LABELS,
                           .create = bert_workload_create,
                           .run = bert_workload_run,
                           .destroy = bert_workload_destroy};
    w->bert_config = (struct bert_config){.C = small ? 256 : 768,
                                          .hidden = small ? 1024 : 3072,
                                          .L = small ? 1 : 12,
                                          .NH = small ? 4 : 12,
                                          .V = 1000,
                                          .T = small ? 32 : 128,
                                          .types = 2,
                                          .labels = LABELS,
                                          .norm_eps = 1e-12f,
                                          .activation = NN_GELU};
    const struct bert_config *c = &w->bert_config;
    struct rng rng = rng_create(2);
    snprintf(w->title, sizeof w->title,
             "BERT, C %zu, %zu layer%s, random weights, %d sentences of %zu tokens", c->C, c->L,
             c->L == 1 ? "" : "s", SENTENCES, c->T);
    snprintf(w->shape, sizeof w->shape, "BERT C%zu L%zu, %dx%zu tokens", c->C, c->L, SENTENCES,
             c->T);
    w->ids = malloc(SENTENCES * c->T * sizeof *w->ids);
    for (size_t i = 0; i < SENTENCES * c->T && w->ids != NULL; i++) {
        w->ids[i] = (int32_t)rng_below(&rng, c->V);
    }
    return w->ids == NULL ? STATUS_OUT_OF_MEMORY : bert_random_create(&w->bert_random, c, 1);
}

/* The 110M shape with a small vocabulary; fewer layers where time is modelled. */
static enum status llama2_workload(struct workload *w, bool small) {
    *w = (struct workload){.op = "llama2_decode",
                           .figure = "tokens_per_second",
                           .units = TOKENS,
                           .create = llama2_workload_create,
                           .run = llama2_workload_run,
                           .destroy = llama2_workload_destroy};
    w->llama2_config = llama2_shape_config(small ? LLAMA2_SHAPE_15M : LLAMA2_SHAPE_110M);
    struct llama2_config *c = &w->llama2_config;
    c->V = MOST_LOGITS;
    c->T = TOKENS;
    c->L = small ? 1 : c->L;
    w->logits = c->V;
    snprintf(w->title, sizeof w->title, "Llama2, C %zu, %zu layer%s, random weights, %d tokens",
             c->C, c->L, c->L == 1 ? "" : "s", TOKENS);
    snprintf(w->shape, sizeof w->shape, "Llama2 C%zu L%zu, %d tokens", c->C, c->L, TOKENS);
    return llama2_random_create(&w->llama2_random, c, 1);
}

static void workload_free(struct workload *w) {
    bert_random_free(&w->bert_random);
    llama2_random_free(&w->llama2_random);
    free(w->ids);
}

/* On the device's clock: real time on a GPU, modelled time on simt. */
static enum status time_runs(struct workload *w, int runs, struct run *run) {
    double seconds[MOST_RUNS];
    enum status status = STATUS_OK;
    for (int i = 0; i < runs && status == STATUS_OK; i++) {
        double start = device_now();
        status = w->run(w, run->logits);
        seconds[i] = device_now() - start;
    }
    if (status == STATUS_OK) {
        run->timing = bench_summarise(seconds, runs);
    }
    return status;
}

static enum status measure_run(const struct bench_setup *setup, struct workload *w,
                               const struct rows_step *step, struct run *run, struct error *error) {
    struct engine engine;
    run->name = step->name;
    enum status status = engine_layernorm_softmax_create_with(&engine, step->run, error);
    if (status == STATUS_OK) {
        status = w->create(w, &engine, error);
    }
    if (status == STATUS_OK && !setup->gpu.modelled) {
        status = time_runs(w, 2, run); /* wakes the clock */
    }
    if (status == STATUS_OK) {
        status = time_runs(w, setup->gpu.modelled ? 1 : setup->quick ? 3 : MOST_RUNS, run);
    }
    w->destroy(w);
    engine_destroy(&engine);
    return status;
}

/* Largest difference of the logits, relative to the largest logit. */
static double logits_difference(const struct run *got, const struct run *want, size_t count) {
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        double difference = fabs((double)got->logits[i] - (double)want->logits[i]);
        worst = isfinite(got->logits[i]) ? fmax(worst, difference) : INFINITY;
        largest = fmax(largest, fabs((double)want->logits[i]));
    }
    return worst / largest;
}

static enum status report_run(const struct bench_setup *setup, const struct workload *w,
                              const struct run *run, const struct run *first, struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    double ms = run->timing.median_ms, rate = 1e3 * w->units / ms;
    double difference = logits_difference(run, first, w->logits);
    printf("  %-20s %9.4f %12.1f %8.2fx\n", run->name, ms, rate, first->timing.median_ms / ms);
    if (!(difference < 1e-3)) {
        return error_set(error, STATUS_MISMATCH,
                         "%s gives other logits than %s: %.3g of the largest", run->name,
                         first->name, difference);
    }
    const struct bench_record record = {
        .lab = "05_layernorm_softmax",
        .subject = WARPBOOK_SUBJECT,
        .stage = run->name,
        .op = w->op,
        .shape = w->shape,
        .dtype = "fp32",
        .threads = 1,
        .gpu = &gpu,
        .timing = run->timing,
        .bytes = NAN,
        .flops = NAN,
        .peer_ratio = NAN,
        .figure = w->figure,
        .figure_value = rate,
    };
    return bench_append(&record, error);
}

/* The first step and the last one. */
static enum status compare_steps(const struct bench_setup *setup, struct workload *w,
                                 struct error *error) {
    size_t count;
    const struct rows_step *steps = layernorm_softmax_ladder(&count);
    struct run *runs = calloc(2, sizeof *runs);
    enum status status = runs != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    printf("\n%s, %s\n", w->title, bench_verb(setup));
    printf("  %-20s %9s %12s %9s\n", "norms", "ms",
           w->units == SENTENCES ? "sentences/s" : "tokens/s", "in all");
    for (size_t i = 0; i < (count > 1 ? 2 : 1) && status == STATUS_OK; i++) {
        status = measure_run(setup, w, &steps[i == 0 ? 0 : count - 1], &runs[i], error);
        if (status == STATUS_OK) {
            status = report_run(setup, w, &runs[i], &runs[0], error);
        }
    }
    free(runs);
    return status;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    enum status (*const makers[])(struct workload *, bool) = {bert_workload, llama2_workload};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        struct workload w;
        status = makers[i](&w, setup->gpu.modelled);
        if (status == STATUS_OK) {
            status = compare_steps(setup, &w, error);
        }
        workload_free(&w);
    }
    return status;
}

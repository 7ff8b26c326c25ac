/*
 * Part (b) of the bench: what norms are worth where they are used, a batch of sentences in BERT and
 * one token after another in Llama2.
 */
#include <stdio.h>

#include "common/bench/device/device_bench.h"
#include "common/bench/models/model_bench.h"
#include "common/models/llama2.h"
#include "common/models/llama2_random.h"
#include "labs/05_layernorm_softmax/bench/parts.h"
#include "labs/05_layernorm_softmax/given/engine.h"

enum { TOKENS = 8 };

/* Random weights, and how a model of them is timed on an engine. */
struct workload {
    const struct bench_setup *setup;
    enum status (*time)(struct workload *w, struct engine *engine, struct model_bench_run *run,
                        struct error *error);
    struct model_bench_bert bert;
    struct llama2_random llama2;
};

static enum status time_bert(struct workload *w, struct engine *engine, struct model_bench_run *run,
                             struct error *error) {
    return model_bench_time_bert(&w->setup->gpu, w->setup->quick, &w->bert.random, &w->bert.input,
                                 engine, run, error);
}

static enum status decode(void *argument, float *logits) {
    struct llama2 *llama2 = argument;
    for (size_t i = 0; i < TOKENS; i++) {
        const int32_t token = (int32_t)(i + 1);
        TRY(llama2_forward(llama2, &token, 1, i, i + 1 == TOKENS ? logits : NULL));
    }
    return STATUS_OK;
}

static enum status time_llama2(struct workload *w, struct engine *engine,
                               struct model_bench_run *run, struct error *error) {
    struct llama2 *llama2 = NULL;
    enum status status =
        llama2_create(&llama2, &w->llama2.config, &w->llama2.weights, engine, 1, error);
    if (status == STATUS_OK) {
        status = model_bench_time(&w->setup->gpu, w->setup->quick, decode, llama2, run);
    }
    llama2_free(llama2);
    return status;
}

static enum status measure_step(struct workload *w, const struct rows_step *step,
                                struct model_bench_run *run, struct error *error) {
    struct engine engine;
    run->name = step->name;
    enum status status = engine_layernorm_softmax_create_with(&engine, step->run, error);
    if (status == STATUS_OK) {
        status = w->time(w, &engine, run, error);
    }
    engine_destroy(&engine);
    return status;
}

/* The first step and the last one. */
static enum status compare_steps(struct workload *w, const struct model_bench_table *table,
                                 struct error *error) {
    size_t count;
    const struct device_properties *gpu = &w->setup->gpu;
    const struct rows_step *steps = layernorm_softmax_ladder(&count);
    struct model_bench_run runs[2];
    for (size_t i = 0; i < (count > 1 ? 2 : 1); i++) {
        TRY(measure_step(w, &steps[i == 0 ? 0 : count - 1], &runs[i], error));
        TRY(model_bench_report(table, gpu, runs[i].name, &runs[i], &runs[0], error));
    }
    return STATUS_OK;
}

static void print_head(const struct bench_setup *setup, const char *title, const char *unit) {
    printf("\n%s, %s\n", title, device_bench_verb(&setup->gpu));
    printf("  %-20s %9s %12s %9s\n", "norms", "ms", unit, "in all");
}

static enum status measure_bert(const struct bench_setup *setup, struct error *error) {
    const struct bert_config config = model_bench_bert_config(setup->gpu.modelled);
    struct workload w = {.setup = setup, .time = time_bert};
    const struct model_bench_table table = {.lab = "05_layernorm_softmax",
                                            .subject = WARPBOOK_SUBJECT,
                                            .op = "bert_batch",
                                            .shape = w.bert.shape,
                                            .figure = "sentences_per_second",
                                            .units = MODEL_BENCH_SENTENCES,
                                            .logits = MODEL_BENCH_SENTENCES * MODEL_BENCH_LABELS,
                                            .width = 20,
                                            .digits = 2};
    enum status status = model_bench_bert_create(&w.bert, &config, error);
    if (status == STATUS_OK) {
        print_head(setup, w.bert.title, "sentences/s");
        status = compare_steps(&w, &table, error);
    }
    model_bench_bert_free(&w.bert);
    return status;
}

/* The 110M shape with a small vocabulary; fewer layers where time is modelled. */
static enum status measure_llama2(const struct bench_setup *setup, struct error *error) {
    char title[160], shape[96];
    bool small = setup->gpu.modelled;
    struct llama2_config c = llama2_shape_config(small ? LLAMA2_SHAPE_15M : LLAMA2_SHAPE_110M);
    struct workload w = {.setup = setup, .time = time_llama2};
    c.V = MODEL_BENCH_LOGITS;
    c.T = TOKENS;
    c.L = small ? 1 : c.L;
    snprintf(title, sizeof title, "Llama2, C %zu, %zu layer%s, random weights, %d tokens", c.C, c.L,
             c.L == 1 ? "" : "s", TOKENS);
    snprintf(shape, sizeof shape, "Llama2 C%zu L%zu, %d tokens", c.C, c.L, TOKENS);
    const struct model_bench_table table = {.lab = "05_layernorm_softmax",
                                            .subject = WARPBOOK_SUBJECT,
                                            .op = "llama2_decode",
                                            .shape = shape,
                                            .figure = "tokens_per_second",
                                            .units = TOKENS,
                                            .logits = c.V,
                                            .width = 20,
                                            .digits = 2};
    enum status status = llama2_random_create(&w.llama2, &c, 1);
    if (status == STATUS_OK) {
        print_head(setup, title, "tokens/s");
        status = compare_steps(&w, &table, error);
    }
    llama2_random_free(&w.llama2);
    return status;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    TRY(measure_bert(setup, error));
    return measure_llama2(setup, error);
}

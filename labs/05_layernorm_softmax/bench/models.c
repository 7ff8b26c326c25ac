/*
 * The norms in the models, first step against last: a batch of sentences in BERT, and one token
 * after another in Llama2.
 */
#include <stdio.h>

#include "common/bench/models/model_bench.h"
#include "common/models/llama2.h"
#include "common/models/llama2_random.h"
#include "labs/05_layernorm_softmax/bench/bench_internal.h"
#include "labs/05_layernorm_softmax/given/engine.h"

enum { TOKENS = 8 };

static const struct rows_step *end_of_ladder(size_t i) {
    size_t count;
    const struct rows_step *steps = layernorm_softmax_ladder(&count);
    return &steps[i == 0 ? 0 : count - 1];
}

static const char *engine_name(size_t i) {
    return end_of_ladder(i)->name;
}

static enum status engine_create(struct engine *engine, size_t i, struct error *error) {
    return engine_layernorm_softmax_create_with(engine, end_of_ladder(i)->run, error);
}

/* Random weights, and where they are run. */
struct workload {
    const struct ladder_setup *setup;
    struct llama2_random llama2;
};

static enum status decode(void *argument, float *logits) {
    struct llama2 *llama2 = argument;
    for (size_t i = 0; i < TOKENS; i++) {
        const int32_t token = (int32_t)(i + 1);
        TRY(llama2_forward(llama2, &token, 1, i, i + 1 == TOKENS ? logits : NULL));
    }
    return STATUS_OK;
}

static enum status time_llama2(void *argument, struct engine *engine, struct model_bench_run *run,
                               struct error *error) {
    struct workload *w = argument;
    struct llama2 *llama2 = NULL;
    enum status status =
        llama2_create(&llama2, &w->llama2.config, &w->llama2.weights, engine, 1, error);
    if (status == STATUS_OK) {
        status = model_bench_time(&w->setup->gpu, w->setup->quick, decode, llama2, run);
    }
    llama2_free(llama2);
    return status;
}

/* The 110M shape with a small vocabulary; the 15M shape with one layer where time is modelled. */
static enum status compare_llama2(const struct model_bench_engines *engines,
                                  const struct ladder_setup *setup, struct error *error) {
    char title[160], shape[96];
    const bool small = setup->gpu.modelled;
    struct workload w = {.setup = setup};
    struct llama2_config c = llama2_shape_config(small ? LLAMA2_SHAPE_15M : LLAMA2_SHAPE_110M);
    c.V = MODEL_BENCH_LOGITS;
    c.T = TOKENS;
    c.L = small ? 1 : c.L;
    snprintf(title, sizeof title, "Llama2, C %zu, %zu layer%s, random weights, %d tokens", c.C, c.L,
             c.L == 1 ? "" : "s", TOKENS);
    snprintf(shape, sizeof shape, "Llama2 C%zu L%zu, %d tokens", c.C, c.L, TOKENS);
    const struct model_bench_table table = {.op = "llama2_decode",
                                            .shape = shape,
                                            .figure = "tokens_per_second",
                                            .units = TOKENS,
                                            .logits = c.V};
    enum status status = llama2_random_create(&w.llama2, &c, 1);
    if (status == STATUS_OK) {
        status = model_bench_compare(engines, &table, &setup->gpu, title, "tokens/s", time_llama2,
                                     &w, error);
    }
    llama2_random_free(&w.llama2);
    return status;
}

enum status bench_models(const struct ladder_setup *setup, struct error *error) {
    size_t count;
    (void)layernorm_softmax_ladder(&count);
    const struct model_bench_engines engines = {.lab = "05_layernorm_softmax",
                                                .subject = WARPBOOK_SUBJECT,
                                                .what = "norms",
                                                .width = 20,
                                                .digits = 2,
                                                .count = count > 1 ? 2 : 1,
                                                .name = engine_name,
                                                .create = engine_create};
    TRY(model_bench_compare_bert(&engines, &setup->gpu, setup->quick, 0, error));
    return compare_llama2(&engines, setup, error);
}

/* Part (b) of the bench: what fusing is worth where it is used, a batch of sentences in BERT. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "labs/06_fused_epilogues/bench_parts.h"
#include "labs/06_fused_epilogues/engine.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { SENTENCES = 16, LABELS = 2, MOST_RUNS = 9 };

/* What is compared: the stage below, one lone add fused, all. */
static const struct variant {
    const char *name;
    enum status (*create)(struct engine *engine, struct error *error);
} variants[] = {
    {"nothing fused", engine_unfused_create},
    {"the lone add fused", engine_lone_add_create},
    {"all fused", engine_fused_create},
};

/* Milliseconds of one batch, and its logits. */
struct batch {
    struct bench_timing timing;
    float logits[SENTENCES * LABELS];
};

/* BERT-base; narrower and with one layer where time is modelled. */
static struct bert_config config_of(const struct bench_setup *setup, size_t T) {
    bool small = setup->gpu.modelled;
    return (struct bert_config){.C = small ? 256 : 768,
                                .hidden = small ? 1024 : 3072,
                                .L = small ? 1 : 12,
                                .NH = small ? 4 : 12,
                                .V = 1000,
                                .T = T,
                                .types = 2,
                                .labels = LABELS,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

/* On the device's clock: real time on a GPU, modelled time on simt. */
static enum status time_batches(struct bert *bert, const struct bert_input *input, int runs,
                                struct batch *batch) {
    double seconds[MOST_RUNS];
    const struct bert_output output = {.logits = batch->logits};
    for (int i = 0; i < runs; i++) {
        double start = device_now();
        TRY(bert_forward(bert, input, &output));
        seconds[i] = device_now() - start;
    }
    batch->timing = bench_summarise(seconds, runs);
    return STATUS_OK;
}

static enum status measure_batch(const struct bench_setup *setup, const struct bert_random *random,
                                 const struct bert_input *input, const struct variant *variant,
                                 struct batch *batch, struct error *error) {
    struct engine engine;
    struct bert *bert = NULL;
    TRY(variant->create(&engine, error));
    enum status status =
        bert_create(&bert, &random->config, &random->weights, &engine, input->B * input->T, error);
    if (status == STATUS_OK && !setup->gpu.modelled) {
        status = time_batches(bert, input, 2, batch); /* wakes the clock */
    }
    if (status == STATUS_OK) {
        int runs = setup->gpu.modelled ? 1 : setup->quick ? 3 : MOST_RUNS;
        status = time_batches(bert, input, runs, batch);
    }
    bert_free(bert);
    engine_destroy(&engine);
    return status;
}

/* Largest difference of the logits, relative to the largest logit. */
static double logits_difference(const struct batch *got, const struct batch *want) {
    double worst = 0.0, largest = 0.0;
    for (int i = 0; i < SENTENCES * LABELS; i++) {
        double difference = fabs((double)got->logits[i] - (double)want->logits[i]);
        worst = isfinite(got->logits[i]) ? fmax(worst, difference) : INFINITY;
        largest = fmax(largest, fabs((double)want->logits[i]));
    }
    return worst / largest;
}

static enum status report_batch(const struct bench_setup *setup, const struct bert_config *config,
                                const char *name, const struct batch *batch,
                                const struct batch *first, struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    double ms = batch->timing.median_ms;
    double difference = logits_difference(batch, first);
    printf("  %-22s %9.4f %12.1f %9.3fx\n", name, ms, 1e3 * SENTENCES / ms,
           first->timing.median_ms / ms);
    if (!(difference < 1e-3)) {
        return error_set(error, STATUS_MISMATCH,
                         "%s gives other logits than the stage below: %.3g of the largest", name,
                         difference);
    }
    snprintf(shape, sizeof shape, "BERT C%zu L%zu, %dx%zu tokens", config->C, config->L, SENTENCES,
             config->T);
    const struct bench_record record = {
        .lab = "06_fused_epilogues",
        .subject = WARPBOOK_SUBJECT,
        .stage = name,
        .op = "bert_batch",
        .shape = shape,
        .dtype = "fp32",
        .threads = 1,
        .gpu = &gpu,
        .timing = batch->timing,
        .bytes = NAN,
        .flops = NAN,
        .peer_ratio = NAN,
        .figure = "sentences_per_second",
        .figure_value = 1e3 * SENTENCES / ms,
    };
    return bench_append(&record, error);
}

static enum status compare_variants(const struct bench_setup *setup,
                                    const struct bert_random *random,
                                    const struct bert_input *input, struct error *error) {
    struct batch first = {0}, batch;
    const struct bert_config *c = &random->config;
    printf("\nBERT, C %zu, %zu layer%s, random weights, %d sentences of %zu tokens, %s\n", c->C,
           c->L, c->L == 1 ? "" : "s", SENTENCES, c->T, bench_verb(setup));
    printf("  %-22s %9s %12s %10s\n", "engine", "ms", "sentences/s", "in all");
    for (size_t i = 0; i < COUNT(variants); i++) {
        TRY(measure_batch(setup, random, input, &variants[i], &batch, error));
        if (i == 0) {
            first = batch;
        }
        TRY(report_batch(setup, c, variants[i].name, &batch, &first, error));
    }
    return STATUS_OK;
}

/* Sentences of T tokens. */
static enum status measure_length(const struct bench_setup *setup, size_t T, struct error *error) {
    struct bert_config config = config_of(setup, T);
    struct bert_random random;
    struct rng rng = rng_create(2);
    int32_t *ids = malloc(SENTENCES * T * sizeof *ids);
    enum status status = bert_random_create(&random, &config, 1);
    if (ids == NULL || status != STATUS_OK) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    for (size_t i = 0; i < SENTENCES * T && ids != NULL; i++) {
        ids[i] = (int32_t)rng_below(&rng, config.V);
    }
    if (status == STATUS_OK) {
        const struct bert_input input = {.ids = ids, .B = SENTENCES, .T = T};
        status = compare_variants(setup, &random, &input, error);
    }
    bert_random_free(&random);
    free(ids);
    return status;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    TRY(measure_length(setup, setup->gpu.modelled ? 32 : 128, error));
    bool longer = !setup->gpu.modelled && !setup->quick;
    return longer ? measure_length(setup, 512, error) : STATUS_OK;
}

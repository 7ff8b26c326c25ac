/* Part (b) of the bench: what the product is worth where it is used, a batch of sentences in BERT.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/device_bench.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "labs/04_sgemm/bench_parts.h"
#include "labs/04_sgemm/engine.h"

enum { SENTENCES = 16, LABELS = 2, MOST_RUNS = 9 };

/* Milliseconds of one batch with one step as matmul, and its logits. */
struct batch {
    const char *name;
    struct bench_timing timing;
    float logits[SENTENCES * LABELS];
};

/* BERT-base; narrower and with one layer where time is modelled. */
static struct bert_config config_of(const struct bench_setup *setup) {
    bool small = setup->gpu.modelled;
    return (struct bert_config){.C = small ? 256 : 768,
                                .hidden = small ? 1024 : 3072,
                                .L = small ? 1 : 12,
                                .NH = small ? 4 : 12,
                                .V = 1000,
                                .T = small ? 32 : 128,
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
    enum status status = STATUS_OK;
    for (int i = 0; i < runs && status == STATUS_OK; i++) {
        double start = device_now();
        status = bert_forward(bert, input, &output);
        seconds[i] = device_now() - start;
    }
    if (status == STATUS_OK) {
        batch->timing = bench_summarise(seconds, runs);
    }
    return status;
}

static enum status measure_batch(const struct bench_setup *setup, const struct bert_random *random,
                                 const struct bert_input *input, const struct sgemm_step *step,
                                 struct batch *batch, struct error *error) {
    struct engine engine;
    struct bert *bert = NULL;
    batch->name = step->name;
    enum status status = engine_sgemm_create_with(&engine, step->run, error);
    if (status == STATUS_OK) {
        status = bert_create(&bert, &random->config, &random->weights, &engine, input->B * input->T,
                             error);
    }
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
                                const struct batch *batch, const struct batch *first,
                                struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    double ms = batch->timing.median_ms;
    double difference = logits_difference(batch, first);
    printf("  %-22s %9.4f %12.1f %8.2fx\n", batch->name, ms, 1e3 * SENTENCES / ms,
           first->timing.median_ms / ms);
    if (!(difference < 1e-3)) {
        return error_set(error, STATUS_MISMATCH,
                         "%s gives other logits than %s: %.3g of the largest", batch->name,
                         first->name, difference);
    }
    snprintf(shape, sizeof shape, "BERT C%zu L%zu, %dx%zu tokens", config->C, config->L, SENTENCES,
             config->T);
    const struct bench_record record = {
        .lab = "04_sgemm",
        .subject = WARPBOOK_SUBJECT,
        .stage = batch->name,
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

/* The first step and the last one. */
static enum status compare_steps(const struct bench_setup *setup, const struct bert_random *random,
                                 const struct bert_input *input, struct error *error) {
    size_t count;
    const struct sgemm_step *steps = sgemm_ladder(&count);
    struct batch batches[2] = {{0}, {0}};
    const struct bert_config *c = &random->config;
    size_t rows = count > 1 ? 2 : 1;
    enum status status = STATUS_OK;
    printf("\nBERT, C %zu, %zu layer%s, random weights, %d sentences of %zu tokens, %s\n", c->C,
           c->L, c->L == 1 ? "" : "s", SENTENCES, c->T, bench_verb(setup));
    printf("  %-22s %9s %12s %9s\n", "matmul", "ms", "sentences/s", "in all");
    for (size_t i = 0; i < rows && status == STATUS_OK; i++) {
        status =
            measure_batch(setup, random, input, &steps[i == 0 ? 0 : count - 1], &batches[i], error);
        if (status == STATUS_OK) {
            status = report_batch(setup, c, &batches[i], &batches[0], error);
        }
    }
    return status;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    struct bert_config config = config_of(setup);
    struct bert_random random;
    struct rng rng = rng_create(2);
    int32_t *ids = malloc(SENTENCES * config.T * sizeof *ids);
    enum status status = bert_random_create(&random, &config, 1);
    if (ids == NULL) {
        status = STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < SENTENCES * config.T && ids != NULL; i++) {
        ids[i] = (int32_t)rng_below(&rng, config.V);
    }
    if (status == STATUS_OK) {
        const struct bert_input input = {.ids = ids, .B = SENTENCES, .T = config.T};
        status = compare_steps(setup, &random, &input, error);
    }
    bert_random_free(&random);
    free(ids);
    return status;
}

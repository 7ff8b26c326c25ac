/* Part (d) of the bench: BERT with the first step and the last, padded and packed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "labs/07_attention/bench_parts.h"
#include "labs/07_attention/engine.h"

enum { MOST_TEXTS = 16, LABELS = 2, MOST_RUNS = 9 };

/* A batch of texts, once padded and once packed; host. */
struct texts {
    size_t B, T;
    int32_t lengths[MOST_TEXTS], starts[MOST_TEXTS + 1];
    int32_t *padded_ids, *packed_ids;
    uint8_t *mask;
};

/* BERT-base; narrower and with one layer where time is modelled. */
static struct bert_config config_of(const struct bench_setup *setup) {
    bool small = setup->gpu.modelled;
    return (struct bert_config){.C = small ? 128 : 768,
                                .hidden = small ? 256 : 3072,
                                .L = small ? 1 : 12,
                                .NH = small ? 2 : 12,
                                .V = 1000,
                                .T = small ? 128 : 512,
                                .types = 2,
                                .labels = LABELS,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

static enum status texts_create(struct texts *x, size_t B, size_t T, size_t V,
                                struct error *error) {
    struct rng rng = rng_create(3);
    *x = (struct texts){.B = B, .T = T};
    bench_draw_lengths(x->lengths, B, T);
    x->padded_ids = calloc(B * T, sizeof *x->padded_ids);
    x->packed_ids = calloc(B * T, sizeof *x->packed_ids);
    x->mask = calloc(B * T, 1);
    if (x->padded_ids == NULL || x->packed_ids == NULL || x->mask == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t b = 0; b < B; b++) {
        x->starts[b + 1] = x->starts[b] + x->lengths[b];
        for (size_t t = 0; t < (size_t)x->lengths[b]; t++) {
            int32_t id = (int32_t)rng_below(&rng, V);
            x->padded_ids[b * T + t] = id;
            x->packed_ids[(size_t)x->starts[b] + t] = id;
            x->mask[b * T + t] = 1;
        }
    }
    return STATUS_OK;
}

static void texts_free(struct texts *x) {
    free(x->padded_ids);
    free(x->packed_ids);
    free(x->mask);
}

/* One row of the table. */
struct batch {
    const char *name;
    const struct attention_step *step;
    bool packed;
    struct bench_timing timing;
    float logits[MOST_TEXTS * LABELS];
};

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
                                 const struct texts *texts, struct batch *batch,
                                 struct error *error) {
    struct engine engine;
    struct bert *bert = NULL;
    const struct bert_input input = {.ids = batch->packed ? texts->packed_ids : texts->padded_ids,
                                     .mask = batch->packed ? NULL : texts->mask,
                                     .starts = batch->packed ? texts->starts : NULL,
                                     .B = texts->B,
                                     .T = texts->T};
    enum status status = engine_attention_create_with(&engine, batch->step->run, error);
    if (status == STATUS_OK) {
        status = bert_create(&bert, &random->config, &random->weights, &engine, texts->B * texts->T,
                             error);
    }
    if (status == STATUS_OK && !setup->gpu.modelled) {
        status = time_batches(bert, &input, 2, batch); /* wakes the clock */
    }
    if (status == STATUS_OK) {
        int runs = setup->gpu.modelled ? 1 : setup->quick ? 3 : MOST_RUNS;
        status = time_batches(bert, &input, runs, batch);
    }
    bert_free(bert);
    engine_destroy(&engine);
    return status;
}

/* Largest difference of the logits, relative to the largest logit. */
static double logits_difference(const struct batch *got, const struct batch *want, size_t count) {
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        double difference = fabs((double)got->logits[i] - (double)want->logits[i]);
        worst = isfinite(got->logits[i]) ? fmax(worst, difference) : INFINITY;
        largest = fmax(largest, fabs((double)want->logits[i]));
    }
    return worst / largest;
}

static enum status report_batch(const struct bench_setup *setup, const struct bert_config *config,
                                const struct texts *texts, const struct batch *batch,
                                const struct batch *first, struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    double ms = batch->timing.median_ms, per_second = 1e3 * (double)texts->B / ms;
    double difference = logits_difference(batch, first, texts->B * LABELS);
    printf("  %-26s %9.4f %12.1f %8.2fx\n", batch->name, ms, per_second,
           first->timing.median_ms / ms);
    if (!(difference < 1e-3)) {
        return error_set(error, STATUS_MISMATCH,
                         "%s gives other logits than %s: %.3g of the largest", batch->name,
                         first->name, difference);
    }
    snprintf(shape, sizeof shape, "BERT C%zu L%zu, %zu texts of up to %zu tokens, %s", config->C,
             config->L, texts->B, texts->T, batch->packed ? "packed" : "padded");
    const struct bench_record record = {
        .lab = "07_attention",
        .subject = WARPBOOK_SUBJECT,
        .stage = batch->step->name,
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
        .figure_value = per_second,
    };
    return bench_append(&record, error);
}

static enum status compare_batches(const struct bench_setup *setup,
                                   const struct bert_random *random, const struct texts *texts,
                                   struct error *error) {
    size_t count;
    const struct attention_step *steps = attention_ladder(&count);
    struct batch batches[] = {
        {.name = "first step, padded", .step = &steps[0]},
        {.name = "last step, padded", .step = &steps[count - 1]},
        {.name = "last step, packed", .step = &steps[count - 1], .packed = true},
    };
    const struct bert_config *c = &random->config;
    enum status status = STATUS_OK;
    printf("\nBERT, C %zu, %zu layer%s, random weights, %zu texts of up to %zu tokens, %.0f%% "
           "text, %s\n",
           c->C, c->L, c->L == 1 ? "" : "s", texts->B, texts->T,
           100.0 * (double)texts->starts[texts->B] / (double)(texts->B * texts->T),
           bench_verb(setup));
    printf("  %-26s %9s %12s %9s\n", "attention", "ms", "texts/s", "in all");
    for (size_t i = 0; i < 3 && status == STATUS_OK; i++) {
        status = measure_batch(setup, random, texts, &batches[i], error);
        if (status == STATUS_OK) {
            status = report_batch(setup, c, texts, &batches[i], &batches[0], error);
        }
    }
    return status;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    struct bert_random random;
    struct texts texts;
    const struct bert_config config = config_of(setup);
    if (bert_random_create(&random, &config, 1) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    enum status status =
        texts_create(&texts, setup->gpu.modelled ? 4 : MOST_TEXTS, config.T, config.V, error);
    if (status == STATUS_OK) {
        status = compare_batches(setup, &random, &texts, error);
    }
    texts_free(&texts);
    bert_random_free(&random);
    return status;
}

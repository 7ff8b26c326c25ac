/* BERT with the first step and the last, padded and packed. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/models/model_bench.h"
#include "labs/07_attention/bench/trial.h"
#include "labs/07_attention/given/engine.h"

enum { MOST_TEXTS = 16 };

/* A batch of texts, once padded and once packed; host. */
struct texts {
    size_t B, T;
    int32_t lengths[MOST_TEXTS], starts[MOST_TEXTS + 1];
    int32_t *padded_ids, *packed_ids;
    uint8_t *mask;
};

/* BERT-base on long texts; narrower, with heads of their right size, where time is modelled. */
static struct bert_config config_of(const struct ladder_setup *setup) {
    bool small = setup->gpu.modelled;
    struct bert_config config = model_bench_bert_config(small);
    config.T = small ? 128 : 512;
    if (small) {
        config.C = 128;
        config.hidden = 256;
        config.NH = 2;
    }
    return config;
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
};

static enum status measure_batch(const struct ladder_setup *setup, const struct bert_random *random,
                                 const struct texts *texts, const struct batch *batch,
                                 struct model_bench_run *run, struct error *error) {
    struct engine engine;
    const struct bert_input input = {.ids = batch->packed ? texts->packed_ids : texts->padded_ids,
                                     .mask = batch->packed ? NULL : texts->mask,
                                     .starts = batch->packed ? texts->starts : NULL,
                                     .B = texts->B,
                                     .T = texts->T};
    run->name = batch->name;
    enum status status = engine_attention_create_with(&engine, batch->step->run, error);
    if (status == STATUS_OK) {
        status =
            model_bench_time_bert(&setup->gpu, setup->quick, random, &input, &engine, run, error);
    }
    engine_destroy(&engine);
    return status;
}

static enum status report_batch(const struct ladder_setup *setup, const struct bert_config *config,
                                const struct texts *texts, const struct batch *batch,
                                const struct model_bench_run *run,
                                const struct model_bench_run *first, struct error *error) {
    char shape[96];
    snprintf(shape, sizeof shape, "BERT C%zu L%zu, %zu texts of up to %zu tokens, %s", config->C,
             config->L, texts->B, texts->T, batch->packed ? "packed" : "padded");
    const struct model_bench_table table = {.lab = "07_attention",
                                            .subject = WARPBOOK_SUBJECT,
                                            .op = "bert_batch",
                                            .shape = shape,
                                            .figure = "sentences_per_second",
                                            .units = (double)texts->B,
                                            .logits = texts->B * config->labels,
                                            .width = 26,
                                            .digits = 2};
    return model_bench_report(&table, &setup->gpu, batch->step->name, run, first, error);
}

static enum status compare_batches(const struct ladder_setup *setup,
                                   const struct bert_random *random, const struct texts *texts,
                                   struct error *error) {
    size_t count;
    const struct attention_step *steps = attention_ladder(&count);
    const struct batch batches[] = {
        {.name = "first step, padded", .step = &steps[0]},
        {.name = "last step, padded", .step = &steps[count - 1]},
        {.name = "last step, packed", .step = &steps[count - 1], .packed = true},
    };
    struct model_bench_run runs[3];
    const struct bert_config *c = &random->config;
    printf("\nBERT, C %zu, %zu layer%s, random weights, %zu texts of up to %zu tokens, %.0f%% "
           "text, %s\n",
           c->C, c->L, c->L == 1 ? "" : "s", texts->B, texts->T,
           100.0 * (double)texts->starts[texts->B] / (double)(texts->B * texts->T),
           device_bench_verb(&setup->gpu));
    printf("  %-26s %9s %12s %9s\n", "attention", "ms", "texts/s", "in all");
    for (size_t i = 0; i < 3; i++) {
        TRY(measure_batch(setup, random, texts, &batches[i], &runs[i], error));
        TRY(report_batch(setup, c, texts, &batches[i], &runs[i], &runs[0], error));
    }
    return STATUS_OK;
}

enum status bench_model(const struct ladder_setup *setup, struct error *error) {
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

/* Part (b) of the bench: what fusing is worth where it is used, a batch of sentences in BERT. */
#include <stdio.h>

#include "common/bench/models/model_bench.h"
#include "labs/06_fused_epilogues/bench/parts.h"
#include "labs/06_fused_epilogues/given/engine.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What is compared: the stage below, one lone add fused, all. */
static const struct variant {
    const char *name;
    enum status (*create)(struct engine *engine, struct error *error);
} variants[] = {
    {"nothing fused", engine_unfused_create},
    {"the lone add fused", engine_lone_add_create},
    {"all fused", engine_fused_create},
};

static enum status measure_variant(const struct bench_setup *setup,
                                   const struct model_bench_bert *b, const struct variant *variant,
                                   struct model_bench_run *run, struct error *error) {
    struct engine engine;
    run->name = variant->name;
    TRY(variant->create(&engine, error));
    enum status status = model_bench_time_bert(&setup->gpu, setup->quick, &b->random, &b->input,
                                               &engine, run, error);
    engine_destroy(&engine);
    return status;
}

static enum status compare_variants(const struct bench_setup *setup,
                                    const struct model_bench_bert *b, struct error *error) {
    struct model_bench_run runs[COUNT(variants)];
    const struct model_bench_table table = {.lab = "06_fused_epilogues",
                                            .subject = WARPBOOK_SUBJECT,
                                            .op = "bert_batch",
                                            .shape = b->shape,
                                            .figure = "sentences_per_second",
                                            .units = MODEL_BENCH_SENTENCES,
                                            .logits = MODEL_BENCH_SENTENCES * MODEL_BENCH_LABELS,
                                            .width = 22,
                                            .digits = 3};
    printf("\n%s, %s\n", b->title, device_bench_verb(&setup->gpu));
    printf("  %-22s %9s %12s %10s\n", "engine", "ms", "sentences/s", "in all");
    for (size_t i = 0; i < COUNT(variants); i++) {
        TRY(measure_variant(setup, b, &variants[i], &runs[i], error));
        TRY(model_bench_report(&table, &setup->gpu, runs[i].name, &runs[i], &runs[0], error));
    }
    return STATUS_OK;
}

/* Sentences of T tokens. */
static enum status measure_length(const struct bench_setup *setup, size_t T, struct error *error) {
    struct bert_config config = model_bench_bert_config(setup->gpu.modelled);
    struct model_bench_bert b;
    config.T = T;
    enum status status = model_bench_bert_create(&b, &config, error);
    if (status == STATUS_OK) {
        status = compare_variants(setup, &b, error);
    }
    model_bench_bert_free(&b);
    return status;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    TRY(measure_length(setup, setup->gpu.modelled ? 32 : 128, error));
    bool longer = !setup->gpu.modelled && !setup->quick;
    return longer ? measure_length(setup, 512, error) : STATUS_OK;
}

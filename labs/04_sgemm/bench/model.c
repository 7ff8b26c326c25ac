/* Part (b) of the bench: what the product is worth where it is used, a batch of sentences in BERT.
 */
#include <stdio.h>

#include "common/bench/device/device_bench.h"
#include "common/bench/models/model_bench.h"
#include "labs/04_sgemm/bench/parts.h"
#include "labs/04_sgemm/given/engine.h"

static enum status measure_step(const struct bench_setup *setup, const struct model_bench_bert *b,
                                const struct sgemm_step *step, struct model_bench_run *run,
                                struct error *error) {
    struct engine engine;
    run->name = step->name;
    enum status status = engine_sgemm_create_with(&engine, step->run, error);
    if (status == STATUS_OK) {
        status = model_bench_time_bert(&setup->gpu, setup->quick, &b->random, &b->input, &engine,
                                       run, error);
    }
    engine_destroy(&engine);
    return status;
}

/* The first step and the last one. */
static enum status compare_steps(const struct bench_setup *setup, const struct model_bench_bert *b,
                                 struct error *error) {
    size_t count;
    const struct sgemm_step *steps = sgemm_ladder(&count);
    struct model_bench_run runs[2];
    const struct model_bench_table table = {.lab = "04_sgemm",
                                            .subject = WARPBOOK_SUBJECT,
                                            .op = "bert_batch",
                                            .shape = b->shape,
                                            .figure = "sentences_per_second",
                                            .units = MODEL_BENCH_SENTENCES,
                                            .logits = MODEL_BENCH_SENTENCES * MODEL_BENCH_LABELS,
                                            .width = 22,
                                            .digits = 2};
    printf("\n%s, %s\n", b->title, device_bench_verb(&setup->gpu));
    printf("  %-22s %9s %12s %9s\n", "matmul", "ms", "sentences/s", "in all");
    for (size_t i = 0; i < (count > 1 ? 2 : 1); i++) {
        TRY(measure_step(setup, b, &steps[i == 0 ? 0 : count - 1], &runs[i], error));
        TRY(model_bench_report(&table, &setup->gpu, runs[i].name, &runs[i], &runs[0], error));
    }
    return STATUS_OK;
}

enum status bench_model(const struct bench_setup *setup, struct error *error) {
    const struct bert_config config = model_bench_bert_config(setup->gpu.modelled);
    struct model_bench_bert b;
    enum status status = model_bench_bert_create(&b, &config, error);
    if (status == STATUS_OK) {
        status = compare_steps(setup, &b, error);
    }
    model_bench_bert_free(&b);
    return status;
}

/* Part (c) of the bench: tokens a second, stage by stage. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "labs/09_kv_cache/bench/bench_internal.h"

/* A stage's timing under way. */
struct stage_run {
    const struct bench_setup *setup;
    const struct bench_stage *stage;
    size_t tokens;
    double *seconds; /* (tokens) */
    float *logits;   /* (V) */
    struct bench_timing timing;
};

static enum status decode(struct stage_run *t, const struct bench_lane *lane, struct error *error) {
    for (size_t i = 0; i < t->tokens; i++) {
        int32_t token = decode_text_token(i, t->setup->config.V);
        TRY(bench_forward(lane, &token, 1, i, t->logits, &t->seconds[i], error));
    }
    return STATUS_OK;
}

/* On a GPU the first of two texts raises its clock and is not counted. */
static enum status decode_on(struct stage_run *t, struct bench_lane *lane,
                             struct stored_model *model, struct error *error) {
    TRY(bench_lane_open(lane, t->stage, model, t->setup, 1, error));
    for (int i = t->setup->driver->gpu.modelled ? 1 : 0; i < 2; i++) {
        TRY(decode(t, lane, error));
    }
    return STATUS_OK;
}

static enum status time_stage(struct stage_run *t, struct stored_model *model,
                              struct error *error) {
    struct bench_lane lane;
    enum status status = decode_on(t, &lane, model, error);
    bench_lane_close(&lane);
    TRY(status);
    t->timing = bench_summarise(t->seconds, (int)t->tokens);
    return STATUS_OK;
}

static enum status report(const struct stage_run *t, double first_ms, double difference,
                          struct error *error) {
    const struct bench_setup *setup = t->setup;
    const struct bench_gpu gpu = bench_gpu_of(&setup->driver->gpu);
    enum nn_dtype dtype = t->stage->stored ? setup->dtype : NN_F32;
    double bytes = decode_token_bytes(&setup->config, dtype);
    printf("  %-20s %6s %10.4f %11.1f %9.0f %8.2fx", t->stage->name, nn_dtype_name(dtype),
           t->timing.median_ms, 1e3 / t->timing.median_ms, 1e-6 * bytes / t->timing.median_ms,
           first_ms / t->timing.median_ms);
    bench_print_number("%*.1e", 10, difference, "");
    putchar('\n');
    struct bench_record record =
        bench_record_of(&gpu, t->stage->name, "decode", setup->shape, dtype);
    record.timing = t->timing;
    record.bytes = bytes;
    record.flops = 2.0 * bytes / (double)nn_dtype_bytes(dtype);
    record.figure = "tokens_per_second";
    record.figure_value = 1e3 / t->timing.median_ms;
    return bench_append(&record, error);
}

/* One row after the other; the first stage's logits (V) are kept in `want`. */
static enum status run_stages(struct stage_run *t, struct stored_model *model, float *got,
                              float *want, struct error *error) {
    static const int order[] = {STAGE_03, STAGE_04, STAGE_09};
    double first_ms = 0.0;
    for (int i = 0; i < 3; i++) {
        double difference = NAN;
        t->stage = &bench_stages()[order[i]];
        t->logits = i == 0 ? want : got;
        TRY(time_stage(t, model, error));
        if (i == 0) {
            first_ms = t->timing.median_ms;
        } else {
            TRY(bench_check_logits(t->setup, got, want, t->stage->name, &difference, error));
        }
        TRY(report(t, first_ms, difference, error));
    }
    return STATUS_OK;
}

enum status bench_decode(const struct bench_setup *setup, struct stored_model *model,
                         struct error *error) {
    size_t most = setup->driver->gpu.modelled ? 8 : setup->driver->quick ? 32 : 256;
    struct stage_run t = {.setup = setup,
                          .tokens = setup->config.T < most ? setup->config.T : most};
    float *got = malloc(setup->config.V * sizeof *got),
          *want = malloc(setup->config.V * sizeof *want);
    t.seconds = malloc(t.tokens * sizeof *t.seconds);
    enum status status = got != NULL && want != NULL && t.seconds != NULL
                             ? STATUS_OK
                             : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    printf("\ndecoding, %zu tokens from the first on, the median one, %s\n", t.tokens,
           device_bench_verb(&setup->driver->gpu));
    printf("  %-20s %6s %10s %11s %9s %9s %10s\n", "stage", "dtype", "ms/token", "tokens/s", "GB/s",
           "speed-up", "logits");
    if (status == STATUS_OK) {
        status = run_stages(&t, model, got, want, error);
    }
    free(t.seconds);
    free(got);
    free(want);
    return status;
}

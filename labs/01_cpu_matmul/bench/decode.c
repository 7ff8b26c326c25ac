/* Part (b) of the bench: how much the matmul speeds up decoding Llama2, one token at a time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/bench/models/compare_logits.h"
#include "common/bench/models/decode_model.h"
#include "common/cpu/cpu_engine.h"
#include "common/models/llama2.h"
#include "common/models/plain_decoder.h"
#include "common/models/profile.h"
#include "labs/01_cpu_matmul/bench/bench_internal.h"
#include "labs/01_cpu_matmul/given/engine.h"
#include "labs/01_cpu_matmul/matmul.h"

/* One way to decode; exactly one of plain and engine is set. */
struct decoder {
    const char *name;  /* as the table shows it */
    const char *stage; /* as the record names it */
    int threads;
    struct plain_decoder *plain;
    const struct engine *engine;
    struct bench_timing timing;
    float *logits; /* (V), of the last token */
};

/* One token at position i, by the plain decoder or by the engine's model. */
static enum status decode_token(const struct decoder *d, struct llama2 *llama2, int32_t token,
                                size_t i, size_t V) {
    if (d->plain == NULL) {
        return llama2_forward(llama2, &token, 1, i, d->logits);
    }
    const float *logits = plain_decoder_forward(d->plain, token, i);
    memcpy(d->logits, logits, V * sizeof *logits);
    return STATUS_OK;
}

static enum status decode_tokens(const struct decoder *d, struct llama2 *llama2, size_t V,
                                 size_t steps, double *seconds) {
    for (size_t i = 0; i < steps; i++) {
        double start = bench_now();
        TRY(decode_token(d, llama2, decode_text_token(i, V), i, V));
        seconds[i] = bench_now() - start;
    }
    return STATUS_OK;
}

/* Decodes `steps` tokens from an empty context; seconds (steps) receives the time of each. */
static enum status decode(const struct decoder *d, const struct decode_model *m, size_t steps,
                          double *seconds) {
    struct llama2 *llama2 = NULL;
    if (d->plain == NULL) {
        TRY(llama2_create(&llama2, m->config, m->weights, d->engine, 1, NULL));
    }
    enum status status = decode_tokens(d, llama2, m->config->V, steps, seconds);
    llama2_free(llama2);
    return status;
}

/* Runs once to warm up, then three times, and keeps the run with the best median. */
static enum status measure_runs(struct decoder *d, const struct decode_model *m, size_t steps,
                                double *seconds) {
    usleep(60000); /* threads of the decoder before may still spin */
    TRY(decode(d, m, steps < 4 ? steps : 4, seconds));
    for (int repeat = 0; repeat < 3; repeat++) {
        TRY(decode(d, m, steps, seconds));
        struct bench_timing timing = bench_summarise(seconds, (int)steps);
        if (repeat == 0 || timing.median_ms < d->timing.median_ms) {
            d->timing = timing;
        }
    }
    return STATUS_OK;
}

static enum status measure_decoder(struct decoder *d, const struct decode_model *m, size_t steps) {
    double *seconds = malloc(steps * sizeof *seconds);
    d->logits = malloc(m->config->V * sizeof *d->logits);
    enum status status = seconds != NULL && d->logits != NULL ? measure_runs(d, m, steps, seconds)
                                                              : STATUS_OUT_OF_MEMORY;
    free(seconds);
    return status;
}

static enum status append_decoder(const struct decoder *d, const struct decode_model *m,
                                  struct error *error) {
    const struct bench_record record = {
        .lab = "01_cpu_matmul",
        .subject = WARPBOOK_SUBJECT,
        .stage = d->stage,
        .op = "decode",
        .shape = m->name,
        .dtype = "fp32",
        .threads = d->threads,
        .timing = d->timing,
        .bytes = decode_token_bytes(m->config, NN_F32),
        .flops = 0.5 * decode_token_bytes(m->config, NN_F32),
        .peer_ratio = NAN,
        .figure = "tokens_per_second",
        .figure_value = 1e3 / d->timing.median_ms,
    };
    return bench_append(&record, error);
}

static enum status measure_decoders(struct decoder *decoders, size_t count,
                                    const struct decode_model *m, size_t steps) {
    struct progress progress = progress_create("decoding", count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = measure_decoder(&decoders[i], m, steps);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

/* Prints and records one decoder, unless its logits differ from those of the plain one. */
static enum status report_decoder(const struct decoder *d, const struct decoder *plain,
                                  const struct decode_model *m, struct error *error) {
    printf("  %-28s %8d %10.3f %11.1f %8.1f %14.2fx\n", d->name, d->threads, d->timing.median_ms,
           1e3 / d->timing.median_ms,
           1e-6 * decode_token_bytes(m->config, NN_F32) / d->timing.median_ms,
           plain->timing.median_ms / d->timing.median_ms);
    TRY(compare_logits(d->logits, d->name, plain->logits, "the plain decoder", m->config->V,
                       error));
    return append_decoder(d, m, error);
}

/* Measures all decoders, prints the table; the first one is the plain decoder. */
static enum status compare_decoders(struct decoder *decoders, size_t count,
                                    const struct decode_model *m, size_t steps,
                                    struct error *error) {
    TRY(measure_decoders(decoders, count, m, steps));
    printf("\nLlama2 decode, %s, %zu tokens one at a time\n", m->name, steps);
    printf("  %-28s %8s %10s %11s %8s %15s\n", "decoder", "threads", "ms/token", "tokens/s", "GB/s",
           "of plain C");
    for (size_t i = 0; i < count; i++) {
        TRY(report_decoder(&decoders[i], &decoders[0], m, error));
    }
    return STATUS_OK;
}

/* Prints how an engine's time divides among its operators, as the engine itself measures it. */
static void print_profile(const char *name, int threads, const struct profile *profile) {
    printf("\nWhere the time goes: %s, %d thread%s: matmul is %.1f%% of decoding\n", name, threads,
           threads == 1 ? "" : "s",
           100.0 * profile->entries[PROFILE_MATMUL].seconds / profile_total(profile));
    profile_print(profile, stdout);
}

static enum status run_profile(const char *name, int threads, const struct engine *inner,
                               const struct decode_model *m, size_t steps) {
    struct profile profile;
    struct engine engine = {0};
    double *seconds = malloc(steps * sizeof *seconds);
    struct decoder d = {.engine = &engine, .logits = malloc(m->config->V * sizeof(float))};
    enum status status = engine_profile_create(&engine, inner, &profile);
    if (status == STATUS_OK) {
        status = seconds != NULL && d.logits != NULL ? decode(&d, m, steps, seconds)
                                                     : STATUS_OUT_OF_MEMORY;
    }
    if (status == STATUS_OK) {
        print_profile(name, threads, &profile);
    }
    free(seconds);
    free(d.logits);
    engine_destroy(&engine);
    return status;
}

/* The engines that are compared: naive, yours on one thread, yours on all. */
struct engines {
    struct engine naive, one, all;
    struct plain_decoder *plain;
};

static enum status engines_create(struct engines *e, const struct decode_model *m, int threads) {
    *e = (struct engines){0};
    size_t count;
    const struct cpu_matmul_step *ladder = cpu_matmul_ladder(&count);
    TRY(cpu_engine_create(&e->naive, ladder[0].name, ladder[0].run, 1));
    TRY(engine_cpu_matmul_create(&e->one, 1));
    TRY(engine_cpu_matmul_create(&e->all, threads));
    return plain_decoder_create(&e->plain, m->config, m->weights);
}

static void engines_free(struct engines *e) {
    engine_destroy(&e->naive);
    engine_destroy(&e->one);
    engine_destroy(&e->all);
    plain_decoder_free(e->plain);
}

/* The rows of the table. With a single step, all engines are the first one. */
enum { PLAIN, NAIVE, BEST_ONE, BEST_ALL, DECODERS };

/* The table, then the profiles of the first step and of the last. */
static enum status report_decoders(const struct bench_setup *setup, const struct engines *e,
                                   struct decoder *decoders, bool single_step,
                                   const struct decode_model *m, size_t steps,
                                   struct error *error) {
    size_t rows = single_step ? NAIVE + 1 : setup->threads > 1 ? DECODERS : BEST_ALL;
    const struct decoder *best = &decoders[single_step ? NAIVE : BEST_ONE];
    TRY(compare_decoders(decoders, rows, m, steps, error));
    printf("  engine against plain C, one thread each: %.2fx\n",
           decoders[PLAIN].timing.median_ms / best->timing.median_ms);
    TRY(run_profile(decoders[NAIVE].stage, 1, &e->naive, m, steps));
    return single_step ? STATUS_OK : run_profile(best->stage, setup->threads, &e->all, m, steps);
}

static enum status run_decoders(const struct bench_setup *setup, const struct engines *e,
                                const struct decode_model *m, struct error *error) {
    size_t count, steps = (size_t)setup->steps;
    const struct cpu_matmul_step *ladder = cpu_matmul_ladder(&count);
    const char *first = ladder[0].name;
    const char *best = ladder[count - 1].name;
    char names[2][64];
    snprintf(names[0], sizeof names[0], "engine, %s", first);
    snprintf(names[1], sizeof names[1], "engine, %s", best);
    struct decoder decoders[DECODERS] = {
        {.name = "plain C, one file, -O3", .stage = "plain", .threads = 1, .plain = e->plain},
        {.name = names[0], .stage = first, .threads = 1, .engine = &e->naive},
        {.name = names[1], .stage = best, .threads = 1, .engine = &e->one},
        {.name = names[1], .stage = best, .threads = setup->threads, .engine = &e->all},
    };
    steps = steps < m->config->T ? steps : m->config->T;
    enum status status = report_decoders(setup, e, decoders, count == 1, m, steps, error);
    for (size_t i = 0; i < DECODERS; i++) {
        free(decoders[i].logits);
    }
    return status;
}

static enum status run_model(const struct bench_setup *setup, struct decode_model *model,
                             struct engines *engines, struct error *error) {
    TRY(decode_model_open(model, setup->checkpoint, LLAMA2_SHAPE_15M, error));
    TRY(engines_create(engines, model, setup->threads));
    return run_decoders(setup, engines, model, error);
}

enum status bench_decode(const struct bench_setup *setup, struct error *error) {
    struct decode_model model = {0};
    struct engines engines = {0};
    enum status status = run_model(setup, &model, &engines, error);
    engines_free(&engines);
    decode_model_close(&model);
    return status;
}

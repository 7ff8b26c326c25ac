#include "common/bench/models/decode_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/terminal.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/models/compare_logits.h"
#include "common/models/llama2.h"

static double stage_now(const struct decode_stage *s) {
    return s->on_device ? device_now() : bench_now();
}

/* Decodes `steps` tokens from an empty context; seconds (steps) receives the time of each. */
static enum status decode(const struct decode_stage *s, struct llama2 *llama2, size_t V,
                          size_t steps, double *seconds) {
    for (size_t i = 0; i < steps; i++) {
        int32_t token = decode_text_token(i, V);
        double start = stage_now(s);
        TRY(llama2_forward(llama2, &token, 1, i, s->logits));
        seconds[i] = stage_now(s) - start;
    }
    return STATUS_OK;
}

/* Decodes the same tokens with each copy and allocation timed; averages go into s. */
static enum status trace(struct decode_stage *s, struct llama2 *llama2, size_t V, size_t steps,
                         double *seconds) {
    struct device_traffic before = device_traffic();
    device_trace(true);
    enum status status = decode(s, llama2, V, steps, seconds);
    device_trace(false);
    TRY(status);
    struct device_traffic after = device_traffic();
    double tokens = (double)steps;
    s->traced_ms = 0.0;
    for (size_t i = 0; i < steps; i++) {
        s->traced_ms += 1e3 * seconds[i] / tokens;
    }
    s->copy_ms = 1e3 * (after.copy_seconds - before.copy_seconds) / tokens;
    s->alloc_ms = 1e3 * (after.alloc_seconds - before.alloc_seconds) / tokens;
    s->bytes_to_device = (double)(after.bytes_to_device - before.bytes_to_device) / tokens;
    s->bytes_to_host = (double)(after.bytes_to_host - before.bytes_to_host) / tokens;
    s->allocations = (double)(after.allocations - before.allocations) / tokens;
    return STATUS_OK;
}

static size_t steps_of(const struct decode_bench *bench, const struct decode_model *m) {
    return bench->steps < m->config->T ? bench->steps : m->config->T;
}

/* Describes a failure, as operators return only a status. An engine on the GPU may have run out of
   the GPU's memory or the host's; the message says what the user can do then. */
static enum status describe(const struct decode_stage *s, enum status status, struct error *error) {
    char cause[sizeof error->message];
    bool described = error != NULL && error->message[0] != '\0';
    if (status == STATUS_OK || (described && status != STATUS_OUT_OF_MEMORY)) {
        return status;
    }
    if (described) {
        snprintf(cause, sizeof cause, "%s", error->message);
    } else {
        snprintf(cause, sizeof cause, "decoding on engine %s: %s", s->engine->name,
                 status_message(status));
    }
    bool gpu = s->on_device && status == STATUS_OUT_OF_MEMORY;
    return error_set(error, status, "%s%s", cause,
                     gpu ? " on the GPU or the host; take a smaller model, or end other programs "
                           "that use the GPU"
                         : "");
}

/* Decodes three times: to warm up, traced, and timed. */
static enum status time_decode(struct decode_stage *s, struct llama2 *llama2, size_t V,
                               size_t steps, double *seconds) {
    TRY(decode(s, llama2, V, steps < 4 ? steps : 4, seconds));
    TRY(trace(s, llama2, V, steps, seconds));
    TRY(decode(s, llama2, V, steps, seconds));
    s->timing = bench_summarise(seconds, (int)steps);
    return STATUS_OK;
}

static enum status time_model(const struct decode_bench *bench, struct decode_stage *s,
                              const struct decode_model *m, double *seconds, struct error *error) {
    struct llama2 *llama2;
    usleep(60000); /* threads of the stage before may still spin */
    TRY(llama2_create(&llama2, m->config, m->weights, s->engine, 1, error));
    enum status status = time_decode(s, llama2, m->config->V, steps_of(bench, m), seconds);
    llama2_free(llama2);
    return status;
}

static enum status measure(const struct decode_bench *bench, struct decode_stage *s,
                           const struct decode_model *m, struct error *error) {
    double *seconds = malloc(steps_of(bench, m) * sizeof *seconds);
    s->logits = malloc(m->config->V * sizeof *s->logits);
    if (seconds == NULL || s->logits == NULL) {
        free(seconds);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = time_model(bench, s, m, seconds, error);
    free(seconds);
    return describe(s, status, error);
}

static enum status measure_all(const struct decode_bench *bench, const struct decode_model *m,
                               struct decode_stage *stages, size_t count, struct progress *progress,
                               struct error *error) {
    for (size_t i = 0; i < count; i++) {
        enum status status = measure(bench, &stages[i], m, error);
        progress_update(progress, i + 1);
        TRY(status);
    }
    return STATUS_OK;
}

/* A measured time and a modelled time must not be compared. */
static bool comparable(const struct decode_bench *bench, const struct decode_stage *a,
                       const struct decode_stage *b) {
    return !bench->properties->modelled || a->on_device == b->on_device;
}

/* The speedup is relative to the first stage whose time is comparable. */
static void print_speed(const struct decode_bench *bench, const struct decode_stage *stages,
                        size_t index) {
    const struct decode_stage *s = &stages[index];
    size_t first = 0;
    while (!comparable(bench, &stages[first], s)) {
        first++;
    }
    bool modelled = s->on_device && bench->properties->modelled;
    printf("  %-28s %10.3f %11.1f %9.2fx  %s\n", s->name, s->timing.median_ms,
           1e3 / s->timing.median_ms, stages[first].timing.median_ms / s->timing.median_ms,
           modelled ? "modelled, GPU work only" : "measured");
}

static void print_speeds(const struct decode_bench *bench, const struct decode_model *m,
                         const struct decode_stage *stages, size_t count) {
    printf("  %-28s %10s %11s %10s  %s\n", "stage", "ms/token", "tokens/s", "speedup", "time is");
    for (size_t i = 0; i < count; i++) {
        print_speed(bench, stages, i);
    }
    printf("  weights read for each token: %.1f MB\n",
           1e-6 * decode_token_bytes(m->config, NN_F32));
}

static void print_split(const struct decode_stage *stages, size_t count) {
    printf("\n  one token, traced          %10s %10s %10s %12s %12s %7s\n", "copy ms", "alloc ms",
           "rest ms", "bytes in", "bytes out", "allocs");
    for (size_t i = 0; i < count; i++) {
        const struct decode_stage *s = &stages[i];
        if (s->on_device) {
            printf("  %-26s %10.3f %10.3f %10.3f %12.0f %12.0f %7.0f\n", s->name, s->copy_ms,
                   s->alloc_ms, s->traced_ms - s->copy_ms - s->alloc_ms, s->bytes_to_device,
                   s->bytes_to_host, s->allocations);
        }
    }
}

static enum status append(const struct decode_bench *bench, const struct decode_model *m,
                          const struct decode_stage *s, const char *figure, double value,
                          struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(bench->properties);
    const struct bench_record record = {
        .lab = bench->lab,
        .subject = bench->subject,
        .stage = s->engine->name,
        .op = "decode",
        .shape = m->name,
        .dtype = "fp32",
        .threads = s->threads,
        .gpu = s->on_device ? &gpu : NULL,
        .timing = s->timing,
        .bytes = decode_token_bytes(m->config, NN_F32),
        .flops = 0.5 * decode_token_bytes(m->config, NN_F32),
        .peer_ratio = NAN,
        .figure = figure,
        .figure_value = value,
    };
    return bench_append(&record, error);
}

static enum status append_all(const struct decode_bench *bench, const struct decode_model *m,
                              const struct decode_stage *s, struct error *error) {
    double bus_bytes = s->bytes_to_device + s->bytes_to_host;
    TRY(append(bench, m, s, "tokens_per_second", 1e3 / s->timing.median_ms, error));
    if (s->on_device) {
        TRY(append(bench, m, s, "bus_bytes_per_token", bus_bytes, error));
        TRY(append(bench, m, s, "copy_ms_per_token", s->copy_ms, error));
        TRY(append(bench, m, s, "alloc_ms_per_token", s->alloc_ms, error));
    }
    return STATUS_OK;
}

static void print_tables(const struct decode_bench *bench, const struct decode_model *m,
                         const struct decode_stage *stages, size_t count) {
    size_t steps = steps_of(bench, m);
    printf("\nLlama2 decode, %s, %zu token%s one at a time\n", m->name, steps,
           steps == 1 ? "" : "s");
    print_speeds(bench, m, stages, count);
    print_split(stages, count);
}

static enum status run(const struct decode_bench *bench, const struct decode_model *m,
                       struct decode_stage *stages, size_t count, struct error *error) {
    struct progress progress = progress_create("decoding", count);
    enum status status = measure_all(bench, m, stages, count, &progress, error);
    progress_finish(&progress);
    TRY(status);
    print_tables(bench, m, stages, count);
    for (size_t i = 1; i < count; i++) {
        TRY(compare_logits(stages[i].logits, stages[i].name, stages[0].logits, stages[0].name,
                           m->config->V, error));
    }
    for (size_t i = 0; i < count; i++) {
        TRY(append_all(bench, m, &stages[i], error));
    }
    return STATUS_OK;
}

enum status decode_bench(const struct decode_bench *bench, const struct decode_model *model,
                         struct decode_stage *stages, size_t count, struct error *error) {
    enum status status = run(bench, model, stages, count, error);
    for (size_t i = 0; i < count; i++) {
        free(stages[i].logits);
        stages[i].logits = NULL;
    }
    return status;
}

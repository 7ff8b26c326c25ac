#include "common/bench/models/decode_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/terminal.h"
#include "common/bench/device/device_bench.h"
#include "common/models/llama2.h"

enum status decode_shape_parse(const char *text, enum llama2_shape *shape, struct error *error) {
    bool known = llama2_shape_parse(text, shape, NULL) == STATUS_OK;
    if (known && *shape >= LLAMA2_SHAPE_15M && *shape <= LLAMA2_SHAPE_1B) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--shape is 15m, 110m or 1.1b, not '%s'",
                     text);
}

/* Bytes of weights that pass through the matmuls for one token. */
static double weight_bytes(const struct llama2_config *c) {
    double attention = (double)c->C * (double)c->HS * (2.0 * (double)c->NH + 2.0 * (double)c->KVH);
    double feed_forward = 3.0 * (double)c->C * (double)c->hidden;
    return sizeof(float) *
           ((double)c->L * (attention + feed_forward) + (double)c->V * (double)c->C);
}

double decode_shape_bytes(enum llama2_shape shape) {
    struct llama2_config config = llama2_shape_config(shape);
    return weight_bytes(&config);
}

enum status decode_model_open(struct decode_model *m, const char *path, enum llama2_shape shape,
                              struct error *error) {
    *m = (struct decode_model){0};
    if (path != NULL) {
        const char *slash = strrchr(path, '/');
        snprintf(m->name, sizeof m->name, "%s", slash != NULL ? slash + 1 : path);
        m->config = &m->checkpoint.config;
        m->weights = &m->checkpoint.weights;
        return llama2c_open(&m->checkpoint, path, error);
    }
    snprintf(m->name, sizeof m->name, "%s shape, random weights", llama2_shape_name(shape));
    struct llama2_config config = llama2_shape_config(shape);
    m->config = &m->random.config;
    m->weights = &m->random.weights;
    enum status status = llama2_random_create(&m->random, &config, 1);
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "%s: %s", m->name, status_message(status));
}

void decode_model_close(struct decode_model *m) {
    llama2c_close(&m->checkpoint);
    llama2_random_free(&m->random);
}

static double stage_now(const struct decode_stage *s) {
    return s->on_device ? device_now() : bench_now();
}

/* Decodes `steps` tokens from an empty context; seconds (steps) receives the time of each. */
static enum status decode(const struct decode_stage *s, struct llama2 *llama2, size_t V,
                          size_t steps, double *seconds) {
    enum status status = STATUS_OK;
    for (size_t i = 0; i < steps && status == STATUS_OK; i++) {
        int32_t token = (int32_t)((1 + 977 * i) % V);
        double start = stage_now(s);
        status = llama2_forward(llama2, &token, 1, i, s->logits);
        seconds[i] = stage_now(s) - start;
    }
    return status;
}

/* The same once more with each copy and allocation timed; averages go into s. */
static enum status trace(struct decode_stage *s, struct llama2 *llama2, size_t V, size_t steps,
                         double *seconds) {
    struct device_traffic before = device_traffic();
    device_trace(true);
    enum status status = decode(s, llama2, V, steps, seconds);
    device_trace(false);
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
    return status;
}

static size_t steps_of(const struct decode_bench *bench, const struct decode_model *m) {
    return bench->steps < m->config->T ? bench->steps : m->config->T;
}

/* Engines hand on a bare status; of memory there are two kinds, and something can be done. */
static enum status describe(const struct decode_stage *s, enum status status, struct error *error) {
    char what[sizeof error->message];
    bool described = error != NULL && error->message[0] != '\0';
    if (status == STATUS_OK || (described && status != STATUS_OUT_OF_MEMORY)) {
        return status;
    }
    if (described) {
        snprintf(what, sizeof what, "%s", error->message);
    } else {
        snprintf(what, sizeof what, "decoding on engine %s: %s", s->engine->name,
                 status_message(status));
    }
    bool gpu = s->on_device && status == STATUS_OUT_OF_MEMORY;
    return error_set(error, status, "%s%s", what,
                     gpu ? " on the GPU or the host; take a smaller model, or end what else uses "
                           "the GPU"
                         : "");
}

static enum status measure(const struct decode_bench *bench, struct decode_stage *s,
                           const struct decode_model *m, struct error *error) {
    size_t steps = steps_of(bench, m);
    size_t V = m->config->V;
    struct llama2 *llama2 = NULL;
    double *seconds = malloc(steps * sizeof *seconds);
    s->logits = malloc(V * sizeof *s->logits);
    if (seconds == NULL || s->logits == NULL) {
        free(seconds);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    usleep(60000); /* threads of the stage before may still spin */
    enum status status = llama2_create(&llama2, m->config, m->weights, s->engine, 1, error);
    if (status == STATUS_OK) { /* warm-up: sizes are seen, clocks rise */
        status = decode(s, llama2, V, steps < 4 ? steps : 4, seconds);
    }
    if (status == STATUS_OK) {
        status = trace(s, llama2, V, steps, seconds);
    }
    if (status == STATUS_OK) {
        status = decode(s, llama2, V, steps, seconds);
        s->timing = bench_summarise(seconds, (int)steps);
    }
    llama2_free(llama2);
    free(seconds);
    return describe(s, status, error);
}

/* Largest difference of the logits, relative to the largest logit. */
static double logits_difference(const float *got, const float *want, size_t V) {
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < V; i++) {
        double difference = isfinite(got[i]) ? fabs((double)got[i] - want[i]) : INFINITY;
        worst = difference > worst ? difference : worst;
        largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
    }
    return worst / largest;
}

static enum status check_logits(const struct decode_model *m, const struct decode_stage *stages,
                                size_t count, struct error *error) {
    for (size_t i = 1; i < count; i++) {
        double difference = logits_difference(stages[i].logits, stages[0].logits, m->config->V);
        if (!(difference < 1e-3)) {
            return error_set(error, STATUS_MISMATCH,
                             "%s gives other logits than %s: %.3g of the largest", stages[i].name,
                             stages[0].name, difference);
        }
    }
    return STATUS_OK;
}

/* A measured and a modelled time have no ratio. */
static bool comparable(const struct decode_bench *bench, const struct decode_stage *a,
                       const struct decode_stage *b) {
    return !bench->properties->modelled || a->on_device == b->on_device;
}

/* The ratio is to the first stage whose time is of the same kind. */
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
           modelled ? "modelled, the GPU's part alone" : "measured");
}

static void print_speeds(const struct decode_bench *bench, const struct decode_model *m,
                         const struct decode_stage *stages, size_t count) {
    printf("  %-28s %10s %11s %10s  %s\n", "stage", "ms/token", "tokens/s", "speedup", "time is");
    for (size_t i = 0; i < count; i++) {
        print_speed(bench, stages, i);
    }
    printf("  weights that a token passes through: %.1f MB\n", 1e-6 * weight_bytes(m->config));
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
        .bytes = weight_bytes(m->config),
        .flops = 0.5 * weight_bytes(m->config),
        .peer_ratio = NAN,
        .figure = figure,
        .figure_value = value,
    };
    return bench_append(&record, error);
}

static enum status append_all(const struct decode_bench *bench, const struct decode_model *m,
                              const struct decode_stage *s, struct error *error) {
    enum status status = append(bench, m, s, "tokens_per_second", 1e3 / s->timing.median_ms, error);
    if (status == STATUS_OK && s->on_device) {
        status = append(bench, m, s, "bus_bytes_per_token", s->bytes_to_device + s->bytes_to_host,
                        error);
    }
    if (status == STATUS_OK && s->on_device) {
        status = append(bench, m, s, "copy_ms_per_token", s->copy_ms, error);
    }
    if (status == STATUS_OK && s->on_device) {
        status = append(bench, m, s, "alloc_ms_per_token", s->alloc_ms, error);
    }
    return status;
}

enum status decode_bench(const struct decode_bench *bench, const struct decode_model *model,
                         struct decode_stage *stages, size_t count, struct error *error) {
    struct progress progress = progress_create("decoding", count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = measure(bench, &stages[i], model, error);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    if (status == STATUS_OK) {
        size_t steps = steps_of(bench, model);
        printf("\nLlama2 decode, %s, %zu token%s one at a time\n", model->name, steps,
               steps == 1 ? "" : "s");
        print_speeds(bench, model, stages, count);
        print_split(stages, count);
        status = check_logits(model, stages, count, error);
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = append_all(bench, model, &stages[i], error);
    }
    for (size_t i = 0; i < count; i++) {
        free(stages[i].logits);
        stages[i].logits = NULL;
    }
    return status;
}

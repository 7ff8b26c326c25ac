/*
 * Time per token of a model at several positions of a text, step by step. The cache is filled by
 * tokens in order; then the position jumps to the one that is shown: a token does the same work
 * with other numbers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/device/device_peaks.h"
#include "labs/14_endless_text/bench/endless_bench.h"
#include "labs/14_endless_text/problem/model.h"

enum { POSITIONS = 3 };

static const size_t positions[POSITIONS] = {1000, 10000, 100000};

/* A decoder that writes: the work of device_bench_run(). */
struct writer {
    struct endless_decoder *decoder;
    size_t position, V;
    float *d_logits;
    float *logits; /* host, (V): after the cache was filled */
};

static enum status write_token(void *argument, device_stream stream, struct error *error) {
    struct writer *w = argument;
    (void)stream; /* the decoder's */
    int32_t token = (int32_t)(w->position * 31 % w->V);
    return endless_decoder_feed(w->decoder, token, w->position++, w->d_logits, error);
}

/* Milliseconds a token. */
struct times {
    double graph[POSITIONS], singly;
};

static enum status time_at(struct writer *w, size_t position, const struct ladder_setup *setup,
                           double *ms, struct error *error) {
    struct device_bench_options options = device_bench_defaults();
    struct bench_timing timing;
    options.min_seconds = setup->quick ? 0.05 : 0.3;
    w->position = position;
    TRY(device_bench_run(&options, write_token, w, endless_decoder_stream(w->decoder), &timing,
                         error));
    *ms = timing.median_ms;
    return STATUS_OK;
}

static enum status time_all(struct writer *w, size_t rows, const struct ladder_setup *setup,
                            struct times *times, struct error *error) {
    for (size_t i = 0; i < rows + 2; i++) {
        TRY(write_token(w, NULL, error));
    }
    TRY(device_read(w->logits, w->d_logits, w->V * sizeof *w->logits,
                    endless_decoder_stream(w->decoder), error));
    for (int i = 0; i < POSITIONS; i++) {
        TRY(time_at(w, positions[i] > rows ? positions[i] : rows, setup, &times->graph[i], error));
    }
    endless_decoder_launch_singly(w->decoder, true);
    return time_at(w, positions[POSITIONS - 1], setup, &times->singly, error);
}

static enum status open_and_time(const struct large_model *m, const struct endless_step *step,
                                 const struct ladder_setup *setup, struct writer *w,
                                 struct times *times, struct error *error) {
    TRY(endless_decoder_create(&w->decoder, &m->model, &step->functions, error));
    TRY(device_alloc((void **)&w->d_logits, w->V * sizeof *w->d_logits, error));
    return time_all(w, m->model.sinks + m->model.window, setup, times, error);
}

static enum status record(const struct ladder_setup *setup, const struct large_model *m,
                          const char *step, const char *shape, const struct times *times,
                          struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    for (int i = 0; i <= POSITIONS; i++) {
        bool singly = i == POSITIONS;
        double ms = singly ? times->singly : times->graph[i];
        char text[128];
        snprintf(text, sizeof text, "%s, position %zu", shape,
                 positions[singly ? POSITIONS - 1 : i]);
        struct bench_record r = {.lab = "14_endless_text",
                                 .subject = WARPBOOK_SUBJECT,
                                 .stage = step,
                                 .op = singly ? "token_launched_singly" : "endless_token",
                                 .shape = text,
                                 .dtype = nn_dtype_name(m->model.dtype),
                                 .gpu = &gpu,
                                 .timing = {ms, ms, ms, 1, 0.0},
                                 .bytes = m->token_bytes + m->cache_bytes,
                                 .flops = NAN,
                                 .peer_ratio = NAN,
                                 .figure = "tokens_per_second",
                                 .figure_value = 1e3 / ms};
        TRY(bench_append(&r, error));
    }
    return STATUS_OK;
}

/* Largest difference of two steps' logits, relative to the largest logit. */
static double apart(const float *a, const float *b, size_t V) {
    double largest = 0.0, difference = 0.0;
    for (size_t i = 0; i < V; i++) {
        double one = fabs((double)a[i] - (double)b[i]);
        difference = isfinite(one) ? fmax(difference, one) : INFINITY;
        largest = fmax(largest, fabs((double)b[i]));
    }
    return largest > 0.0 ? difference / largest : INFINITY;
}

/* One row. @param logits (2 * V): of this step, then of the first one @param first whether it is */
static enum status show_step(const struct ladder_setup *setup, const struct large_model *m,
                             const struct endless_step *step, const char *shape, double probe,
                             float *logits, bool first, struct error *error) {
    size_t V = m->model.V;
    struct writer w = {.V = V, .logits = first ? logits + V : logits};
    struct times times;
    enum status status = open_and_time(m, step, setup, &w, &times, error);
    size_t own = w.decoder != NULL ? endless_decoder_bytes(w.decoder) : 0;
    device_free(w.d_logits);
    endless_decoder_free(w.decoder);
    TRY(status);
    double slowest = fmax(fmax(times.graph[0], times.graph[1]), times.graph[2]);
    double fastest = fmin(fmin(times.graph[0], times.graph[1]), times.graph[2]);
    double rate = 1e3 * (m->token_bytes + m->cache_bytes) / times.graph[POSITIONS - 1];
    printf("  %-14s %9.4f %9.4f %9.4f %7.1f%% %9.0f %6.1f%% %10.4f %8.1f %8.0e\n", step->name,
           times.graph[0], times.graph[1], times.graph[2], 100.0 * (slowest / fastest - 1.0),
           1e-9 * rate, 100.0 * rate / probe, times.singly, 1e-6 * (double)own,
           first ? 0.0 : apart(logits, logits + V, V));
    return record(setup, m, step->name, shape, &times, error);
}

/* The rows from --from on, or the one of --step. */
static enum status show_rows(const struct ladder_setup *setup, const struct large_model *m,
                             const char *shape, double probe, float *logits, struct error *error) {
    const struct endless_options *o = setup->options;
    size_t count;
    const struct endless_step *steps = endless_ladder(&count);
    bool shown = o->from == NULL, first = true;
    for (size_t i = 0; i < count; i++) {
        shown = shown || strcmp(o->from, steps[i].name) == 0;
        if (shown && (setup->step == NULL || strcmp(setup->step, steps[i].name) == 0)) {
            TRY(show_step(setup, m, &steps[i], shape, probe, logits, first, error));
            first = false;
        }
    }
    return STATUS_OK;
}

static enum status show(const struct ladder_setup *setup, const struct large_model *m,
                        const char *shape, struct error *error) {
    double probe;
    TRY(device_read_bandwidth(&probe, NULL, error));
    printf(
        "\ntime per token, %s, %s, %s; %.1f MB of weights and %.1f MB of cache a token; the read "
        "probe: %.0f GB/s\n",
        shape, nn_dtype_name(m->model.dtype), device_bench_verb(&setup->gpu), 1e-6 * m->token_bytes,
        1e-6 * m->cache_bytes, 1e-9 * probe);
    printf("  %-14s %9s %9s %9s %8s %9s %7s %10s %8s %8s\n", "step", "at 1000", "at 10000",
           "at 100000", "apart", "GB/s", "probe", "singly", "MB", "logits");
    float *logits = malloc(2 * m->model.V * sizeof *logits);
    if (logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for logits");
    }
    enum status status = show_rows(setup, m, shape, probe, logits, error);
    free(logits);
    return status;
}

/* The shape by --model, else one that the GPU, or simt, does in seconds. */
static struct endless_model choose(const struct ladder_setup *setup, char *text, size_t size) {
    const struct endless_options *o = setup->options;
    const char *name = o->model_text != NULL ? o->model_text : "160m";
    struct endless_model shape = endless_small_neox(NN_BF16);
    if (setup->gpu.modelled && o->model_text == NULL) {
        shape.C = 128;
        shape.HS = 32;
        shape.NH = shape.KVH = 4;
        shape.hidden = 256;
        shape.rotary = 8;
        shape.window = o->window > 0 ? (size_t)o->window : 28;
        name = "small";
    } else {
        (void)large_model_shape(name, &shape);
        shape.window = o->window > 0 ? (size_t)o->window : 1020;
    }
    snprintf(text, size, "%s%s shape, %zu sinks, window %zu", shape.gated ? "" : "GPT-NeoX, ", name,
             shape.sinks, shape.window);
    return shape;
}

enum status bench_tokens(const struct ladder_setup *setup, struct error *error) {
    struct large_model m;
    char text[96];
    const struct endless_model shape = choose(setup, text, sizeof text);
    enum status status = large_model_create(&m, &shape, error);
    if (status == STATUS_OK) {
        status = show(setup, &m, text, error);
    }
    large_model_free(&m);
    return status;
}

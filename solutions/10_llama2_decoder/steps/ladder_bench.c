/**
 * @file ladder_bench.c
 * @brief What each step of solution 10 gains: milliseconds per token and per prompt, launches, and
 * the share of the memory's read bandwidth.
 *
 *     ladder_bench [110m] [1.1b] [7b] [--launches FOLDER]
 *
 * Weights and tokens are random. On a GPU the shapes named, or all three: bf16, 110M also in fp32;
 * times are measured over many steps in sequence. With --launches each kernel of the last step's
 * prompt and of a token of d5 is written to a file of the folder, for notebooks/LIMITS.md. On simt
 * a small model, modelled. Each step's logits after the same prompt are checked against the first
 * one's. At the end the last step's prompt is listed kernel by kernel.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/rng.h"
#include "common/bench/device/device_launches.h"
#include "common/bench/device/device_peaks.h"
#include "common/bench/device/kernel_times.h"
#include "common/bench/device/kernel_totals.h"
#include "common/bench/models/compare_logits.h"
#include "common/device/device.h"
#include "common/models/llama2_random.h"
#include "labs/10_llama2_decoder/given/decoder_model.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"

enum { PROMPT = 16, LONG_PROMPT = 2048 };

/* A model on the device, and a decoder for it. */
struct bench {
    struct llama2_random_stored random;
    struct llama2_device device;
    struct decoder_layer *layers;
    struct decoder_model model;
    struct decoder_io io;
    struct decoder *decoder;
    device_stream stream;
    bool modelled;
    double read_bandwidth; /* bytes a second */
    size_t steps, batch;
    int32_t *tokens;      /* (batch) */
    float *first, *step;  /* (V) */
    const char *launches; /* folder, or NULL */
    const char *name;     /* "7B" */
};

/* ---- The model ---- */

static enum status allocate(struct bench *b, struct error *error) {
    size_t V = b->random.config.V;
    b->layers = calloc(b->random.config.L, sizeof *b->layers);
    b->tokens = calloc(b->batch, sizeof *b->tokens);
    b->first = calloc(2 * V, sizeof *b->first);
    if (b->layers == NULL || b->tokens == NULL || b->first == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    b->step = b->first + V;
    struct rng rng = rng_create(2);
    for (size_t i = 0; i < b->batch; i++) {
        b->tokens[i] = (int32_t)rng_below(&rng, V);
    }
    TRY(device_alloc((void **)&b->io.logits, V * sizeof(float), error));
    TRY(device_alloc((void **)&b->io.token, sizeof(int32_t), error));
    return device_alloc((void **)&b->io.sampling, sizeof(struct sampling), error);
}

static enum status open_model(struct bench *b, const struct llama2_config *config,
                              enum nn_dtype dtype, struct error *error) {
    b->batch = config->T < LONG_PROMPT ? config->T : LONG_PROMPT;
    enum status status = llama2_random_stored_create(&b->random, config, dtype, dtype == NN_F32, 1);
    if (status != STATUS_OK) {
        return error_set(error, status, "random weights: %s", status_message(status));
    }
    const struct llama2_decoder_model model = {&b->random.config, &b->random.weights, dtype,
                                               b->batch};
    TRY(device_stream_create(&b->stream, error));
    TRY(llama2_device_load(&b->device, &model, b->stream, error));
    TRY(allocate(b, error));
    b->model = decoder_model_of(&b->random.config, &b->device, b->layers);
    return decoder_create(&b->decoder, &b->model, &b->io, b->batch, b->stream, error);
}

static void close_model(struct bench *b) {
    decoder_free(b->decoder);
    llama2_device_free(&b->device);
    llama2_random_stored_free(&b->random);
    device_free(b->io.logits);
    device_free(b->io.token);
    device_free(b->io.sampling);
    device_stream_destroy(b->stream);
    free(b->layers);
    free(b->tokens);
    free(b->first);
}

/* ---- Measuring ---- */

/* Launches of a token are counted while they are recorded; without sampling, if the host samples.
 */
struct counted {
    const struct bench *b;
    const struct decoder_version *v;
    bool draws;
};

static enum status run_counted(void *argument, device_stream stream, struct error *error) {
    const struct counted *c = argument;
    (void)stream; /* the decoder's own */
    return c->draws ? c->v->step(c->b->decoder, PROMPT, error)
                    : decoder_one_by_one(c->b->decoder, c->v->path, c->b->tokens, 1, PROMPT, error);
}

/* Milliseconds a step at positions from `position` on. */
static enum status time_steps(const struct bench *b, const struct decoder_version *v,
                              const struct sampling *how, size_t position, double *ms,
                              struct error *error) {
    double start = 0.0;
    size_t warm = b->modelled ? 1 : 5;
    TRY(device_write(b->io.sampling, how, sizeof *how, b->stream, error));
    for (size_t i = 0; i < warm + b->steps; i++) {
        start = i == warm ? device_now() : start;
        TRY(v->step(b->decoder, position + i, error));
    }
    *ms = 1e3 * (device_now() - start) / (double)b->steps;
    return device_synchronize(b->stream, error);
}

/* The best of three, after one that is not timed. */
static enum status time_prompt(const struct bench *b, const struct decoder_version *v, size_t count,
                               double *ms, struct error *error) {
    *ms = INFINITY;
    for (int i = 0; i < (b->modelled ? 1 : 4); i++) {
        double start = device_now();
        TRY(v->prefill(b->decoder, b->tokens, count, 0, error));
        double now = 1e3 * (device_now() - start);
        *ms = i > 0 || b->modelled ? fmin(*ms, now) : *ms;
    }
    return device_synchronize(b->stream, error);
}

/* The prompt's logits against the first step's. */
static enum status check_prompt(const struct bench *b, const struct decoder_version *v, bool first,
                                struct error *error) {
    size_t bytes = b->model.V * sizeof(float);
    double tolerance = b->model.dtype == NN_F32 ? 1e-4 : b->model.dtype == NN_F16 ? 1e-2 : 6e-2;
    TRY(v->prefill(b->decoder, b->tokens, PROMPT, 0, error));
    TRY(device_read(first ? b->first : b->step, b->io.logits, bytes, b->stream, error));
    double difference = first ? 0.0 : largest_difference(b->step, b->first, b->model.V);
    if (!(difference <= tolerance)) {
        return error_set(error, STATUS_MISMATCH, "%s: logits differ by %.3g from the first step's",
                         v->name, difference);
    }
    return STATUS_OK;
}

/* Bytes that a token at `position` reads: weights, keys and values. */
static double bytes_of(const struct bench *b, size_t position) {
    const struct decoder_model *m = &b->model;
    double row = 2.0 * (double)(m->KVH * m->HS * nn_dtype_bytes(m->dtype));
    return (double)b->device.decode_bytes + (double)m->L * (double)(position + 1) * row;
}

static double share_of(const struct bench *b, size_t position, double ms) {
    return bytes_of(b, position + b->steps / 2) / (1e-3 * ms) / b->read_bandwidth;
}

/* ---- Tables ---- */

static enum status show_version(struct bench *b, const struct decoder_version *v, bool first,
                                struct error *error) {
    const struct sampling greedy = {1, 0.0f, 0.0f, 0};
    const bool draws =
        v->step == decoder_d5_step || v->step == decoder_d7_step || v->step == decoder_d8_step;
    struct counted counted = {b, v, draws};
    size_t launches, prompt = b->batch < 64 ? b->batch : 64;
    double ms, prompt_ms;
    TRY(check_prompt(b, v, first, error));
    TRY(device_count_launches_on(run_counted, &counted, b->stream, &launches, error));
    TRY(check_prompt(b, v, first, error));
    TRY(time_steps(b, v, &greedy, PROMPT, &ms, error));
    TRY(time_prompt(b, v, prompt, &prompt_ms, error));
    printf("  %-14s %9.4f %9.1f %8zu%s %9.3f %12.3f\n", v->name, ms, 1e3 / ms, launches,
           draws ? " " : "+", share_of(b, PROMPT, ms), prompt_ms);
    return STATUS_OK;
}

/* A prompt, or a token drawn. */
static enum status run_listed(const struct bench *b, const struct decoder_version *v, bool prompt,
                              struct error *error) {
    return prompt ? v->prefill(b->decoder, b->tokens, b->batch, 0, error)
                  : decoder_d5_step(b->decoder, PROMPT, error);
}

/* The kernels of a prompt or of a token, each timed by itself, to totals. */
static enum status time_kernels(const struct bench *b, const struct decoder_version *v, bool prompt,
                                struct kernel_totals *totals, struct error *error) {
    struct kernel_times *times;
    TRY(kernel_times_create(&times, b->stream, error));
    enum status status = kernel_times_begin(times, error);
    if (status == STATUS_OK) {
        status = kernel_times_end(times, run_listed(b, v, prompt, error), kernel_totals_add, totals,
                                  error);
    }
    kernel_times_free(times);
    return status == STATUS_OK ? totals->status : status;
}

/* Opens the list of launches, if one is wanted. */
static enum status open_list(const struct bench *b, bool prompt, FILE **list, struct error *error) {
    char path[1000];
    *list = NULL;
    if (b->launches == NULL) {
        return STATUS_OK;
    }
    snprintf(path, sizeof path, "%s/llama2_%s_%s_%s.csv", b->launches, prompt ? "prompt" : "token",
             b->name, nn_dtype_name(b->model.dtype));
    *list = fopen(path, "w");
    if (*list == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot be written", path);
    }
    fprintf(*list, "launch,kernel,ms\n");
    return STATUS_OK;
}

static enum status list_kernels(const struct bench *b, const struct decoder_version *v, bool prompt,
                                struct error *error) {
    struct kernel_totals totals = {0};
    TRY(open_list(b, prompt, &totals.list, error));
    enum status status = time_kernels(b, v, prompt, &totals, error);
    if (status == STATUS_OK && prompt) {
        kernel_totals_print(&totals, 12, stdout);
    }
    if (totals.list != NULL && fclose(totals.list) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_IO, "%s: a list of launches was not written", b->launches);
    }
    kernel_totals_free(&totals);
    return status;
}

/* d8's kernel alone, and drawing alone. */
static enum status show_parts(const struct bench *b, struct error *error) {
    const struct sampling greedy = {1, 0.0f, 0.0f, 0};
    const struct decoder *d = b->decoder;
    double start = 0.0, kernel, draw;
    if (!d->one.supported) {
        return STATUS_OK;
    }
    TRY(device_write(b->io.sampling, &greedy, sizeof greedy, b->stream, error));
    for (size_t i = 0; i < 5 + b->steps; i++) {
        start = i == 5 ? device_now() : start;
        TRY(decoder_d8_feed(d, PROMPT + i, error));
    }
    kernel = 1e3 * (device_now() - start) / (double)b->steps;
    for (size_t i = 0; i < 5 + b->steps; i++) {
        start = i == 5 ? device_now() : start;
        TRY(sample_token(d->io.sampling, d->io.logits, d->model->V, d->io.token, d->draw_workspace,
                         b->stream, error));
    }
    draw = 1e3 * (device_now() - start) / (double)b->steps;
    printf("  d8's kernel alone: %.4f ms a token, %.3f of the read bandwidth; greedy drawing "
           "alone: %.4f ms\n",
           kernel, share_of(b, PROMPT, kernel), draw);
    return device_synchronize(b->stream, error);
}

/* The last step: drawing with top-p, a context that is almost full, a long prompt. */
static enum status show_last(const struct bench *b, const struct decoder_version *v,
                             struct error *error) {
    const struct sampling greedy = {1, 0.0f, 0.0f, 0}, nucleus = {1, 1.0f, 0.9f, 0};
    size_t late = b->model.T - b->steps - 8;
    double ms, prompt_ms;
    TRY(show_parts(b, error));
    TRY(time_steps(b, v, &nucleus, PROMPT, &ms, error));
    printf("  top-p 0.9: %.4f ms a token\n", ms);
    TRY(time_prompt(b, v, b->batch, &prompt_ms, error));
    printf("  a prompt of %zu tokens: %.3f ms, %.0f tokens/s\n", b->batch, prompt_ms,
           1e3 * (double)b->batch / prompt_ms);
    TRY(list_kernels(b, v, true, error));
    if (b->launches != NULL) {
        TRY(list_kernels(b, v, false, error));
    }
    TRY(time_steps(b, v, &greedy, late, &ms, error));
    printf("  at position %zu: %.4f ms a token, %.1f tokens/s, %.3f of the read bandwidth\n", late,
           ms, 1e3 / ms, share_of(b, late, ms));
    return STATUS_OK;
}

static enum status show(struct bench *b, const char *name, struct error *error) {
    size_t count;
    const struct decoder_version *v = decoder_ladder(&count);
    printf("%s, %s, %.3f GB of weights a token, read bandwidth %.0f GB/s\n", name,
           nn_dtype_name(b->model.dtype), 1e-9 * (double)b->device.decode_bytes,
           1e-9 * b->read_bandwidth);
    printf("  %-14s %9s %9s %9s %9s %12s\n", "step", "ms", "tokens/s", "launches", "of reads",
           "64-prompt ms");
    for (size_t i = 0; i < count; i++) {
        TRY(show_version(b, &v[i], i == 0, error));
    }
    return show_last(b, &v[count - 1], error);
}

static enum status measure(struct bench *b, const struct llama2_config *config, enum nn_dtype dtype,
                           const char *name, struct error *error) {
    TRY(open_model(b, config, dtype, error));
    return show(b, name, error);
}

static enum status run_shape(const struct llama2_config *config, enum nn_dtype dtype,
                             const char *name, bool modelled, double bandwidth,
                             const char *launches, struct error *error) {
    struct bench b = {
        .modelled = modelled, .read_bandwidth = bandwidth, .launches = launches, .name = name};
    b.steps = modelled ? 2 : 100;
    enum status status = measure(&b, config, dtype, name, error);
    close_model(&b);
    return status;
}

/* The folder behind --launches, which both leave argv; NULL without. */
static const char *take_launches(int *argc, char **argv) {
    if (*argc < 3 || strcmp(argv[*argc - 2], "--launches") != 0) {
        return NULL;
    }
    *argc -= 2;
    return argv[*argc + 1];
}

static bool wanted(int argc, char **argv, const char *name) {
    bool found = argc < 2;
    for (int i = 1; i < argc; i++) {
        found = found || strcasecmp(argv[i], name) == 0;
    }
    return found;
}

static enum status run(int argc, char **argv, struct error *error) {
    static const struct {
        enum llama2_shape shape;
        enum nn_dtype dtype;
    } models[] = {{LLAMA2_SHAPE_110M, NN_F32},
                  {LLAMA2_SHAPE_110M, NN_BF16},
                  {LLAMA2_SHAPE_1B, NN_BF16},
                  {LLAMA2_SHAPE_7B, NN_BF16}};
    struct device_properties gpu;
    double bandwidth;
    const char *launches = take_launches(&argc, argv);
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    TRY(device_read_bandwidth(&bandwidth, NULL, error));
    printf("%s %s; + : and the host draws\n", gpu.modelled ? "modelled for" : "measured on",
           gpu.name);
    if (gpu.modelled) {
        struct llama2_config small = llama2_shape_config(LLAMA2_SHAPE_15M);
        small.L = 2;
        small.V = 2000;
        small.T = 64;
        return run_shape(&small, NN_BF16, "C 288, two layers", true, bandwidth, launches, error);
    }
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const char *name = llama2_shape_name(models[i].shape);
        const struct llama2_config config = llama2_shape_config(models[i].shape);
        if (wanted(argc, argv, name)) {
            TRY(run_shape(&config, models[i].dtype, name, false, bandwidth, launches, error));
        }
    }
    return STATUS_OK;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: ladder_bench [110m] [1.1b] [7b] [--launches FOLDER]\nTimes each version of "
               "the decoder's "
               "ladder.\n");
        return 0;
    }
    struct error error = {0};
    setenv("SIMT_CHECK", "bounds", 0); /* the tests run all checks */
    enum status status = run(argc, argv, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "ladder_bench: %s\n", error_text(&error, status));
    }
    return status == STATUS_OK ? 0 : 1;
}

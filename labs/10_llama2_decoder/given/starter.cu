/**
 * @file decoder.cu
 * @brief Lab 10: YOUR FILE. Make prefill and decoding fast, and keep them right.
 *
 * What it must do is in decoder.h, how to go about it in README.md. Everything in
 * this file may change; the four functions of decoder.h must stay. Check and measure
 * with
 *
 *     bazel test //grader:10_llama2_decoder_parity //grader:10_llama2_decoder_speedup
 *     bazel run //labs/10_llama2_decoder:bench
 *
 * As it stands: a prompt is fed token by token, each operator is a launch, logits are copied to
 * the host and the token is drawn there. Right, and slow.
 */
#include "labs/10_llama2_decoder/decoder.h"

#include <stdlib.h>

#include "common/models/sampler.h"
#include "labs/03_resident_weights/given/operators.h"
#include "labs/09_kv_cache/given/embedding_row.h"
#include "labs/09_kv_cache/kv_cache.h"

struct decoder {
    const struct decoder_model *model;
    struct decoder_io io;
    device_stream stream;
    float *x;           /* (C): the residual stream of the token under way */
    float *y;           /* (C): x normed; a sublayer's result */
    float *heads;       /* (NH*HS): attention's result */
    float *gate_up;     /* (2 * hidden) */
    void *k, *v;        /* (L, T, KVH*HS), of the model's dtype */
    int32_t *positions; /* (T): 0, 1, 2, ... */
    void *workspace;    /* KV_WORKSPACE_BYTES */
    float *logits;      /* HOST, (V) */
};

/* ---- Memory ---- */

static enum status check_sizes(const struct decoder_model *m, struct error *error) {
    if (m->HS == 0 || m->HS % 2 != 0 || m->HS > KV_MAX_HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "decoder: HS = %zu; it must be even and at most %zu", m->HS, KV_MAX_HS);
    }
    if (m->KVH == 0 || m->NH % m->KVH != 0) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "decoder: NH = %zu query heads; it must be a multiple of KVH = %zu key heads", m->NH,
            m->KVH);
    }
    return STATUS_OK;
}

static enum status allocate(void **memory, size_t count, size_t bytes, struct error *error) {
    if (count > SIZE_MAX / bytes) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: %zu numbers of %zu bytes", count,
                         bytes);
    }
    return device_alloc(memory, count * bytes, error);
}

static enum status allocate_all(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    size_t cache = m->L * m->T * m->KVH * m->HS, bytes = nn_dtype_bytes(m->dtype);
    TRY(allocate((void **)&d->x, m->C, sizeof *d->x, error));
    TRY(allocate((void **)&d->y, m->C, sizeof *d->y, error));
    TRY(allocate((void **)&d->heads, m->NH * m->HS, sizeof *d->heads, error));
    TRY(allocate((void **)&d->gate_up, 2 * m->hidden, sizeof *d->gate_up, error));
    TRY(allocate(&d->k, cache, bytes, error));
    TRY(allocate(&d->v, cache, bytes, error));
    TRY(allocate((void **)&d->positions, m->T, sizeof *d->positions, error));
    TRY(device_alloc(&d->workspace, KV_WORKSPACE_BYTES, error));
    d->logits = (float *)calloc(m->V, sizeof *d->logits);
    return d->logits != NULL ? STATUS_OK
                             : error_set(error, STATUS_OUT_OF_MEMORY,
                                         "decoder: out of memory for %zu logits", m->V);
}

static enum status number_positions(const struct decoder *d, struct error *error) {
    size_t bytes = d->model->T * sizeof(int32_t);
    int32_t *numbers = (int32_t *)malloc(bytes);
    if (numbers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: out of memory for %zu positions",
                         d->model->T);
    }
    for (size_t t = 0; t < d->model->T; t++) {
        numbers[t] = (int32_t)t;
    }
    enum status status = device_write(d->positions, numbers, bytes, d->stream, error);
    free(numbers);
    return status;
}

static enum status fill(struct decoder *d, struct error *error) {
    TRY(allocate_all(d, error));
    return number_positions(d, error);
}

enum status decoder_create(struct decoder **decoder, const struct decoder_model *model,
                           const struct decoder_io *io, size_t batch, device_stream stream,
                           struct error *error) {
    (void)batch; /* one token at a time */
    *decoder = NULL;
    TRY(check_sizes(model, error));
    struct decoder *d = (struct decoder *)calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: out of memory");
    }
    d->model = model;
    d->io = *io;
    d->stream = stream;
    enum status status = fill(d, error);
    if (status != STATUS_OK) {
        decoder_free(d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

void decoder_free(struct decoder *d) {
    if (d != NULL) {
        void *const all[] = {d->x, d->y, d->heads,     d->gate_up,
                             d->k, d->v, d->positions, d->workspace};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            device_free(all[i]);
        }
        free(d->logits);
        free(d);
    }
}

/* ---- One token ---- */

/* out (N) = weight (N, K) * in (K). */
static enum status multiply(const struct decoder *d, float *out, const void *weight,
                            const float *in, size_t N, size_t K, struct error *error) {
    const struct kv_linear linear = {
        .N = N, .K = K, .dtype = d->model->dtype, .weight = weight, .in = in, .out = out};
    return kv_linear(&linear, d->stream, error);
}

/* heads = attention of layer l; lab 09's operator norms, projects and turns. */
static enum status attend(const struct decoder *d, size_t l, size_t position, struct error *error) {
    const struct decoder_model *m = d->model;
    size_t cache = l * m->T * m->KVH * m->HS * nn_dtype_bytes(m->dtype);
    struct kv_attention a = {};
    a.C = m->C, a.NH = m->NH, a.KVH = m->KVH, a.HS = m->HS;
    a.T = m->T;
    a.dtype = m->dtype;
    a.eps = m->eps;
    a.theta = m->theta;
    a.layout = m->layout;
    a.position = d->positions + position;
    a.longest = position + 1;
    a.x = d->x;
    a.norm = m->layers[l].attention_norm;
    a.qkv = m->layers[l].qkv;
    a.k = (unsigned char *)d->k + cache;
    a.v = (unsigned char *)d->v + cache;
    a.out = d->heads;
    return kv_attention(&a, d->workspace, d->stream, error);
}

/* x = x + y. */
static enum status add_to_x(const struct decoder *d, struct error *error) {
    return launch_residual(d->x, d->x, d->y, d->model->C, d->stream, error);
}

static enum status run_layer(const struct decoder *d, size_t l, size_t position,
                             struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    float *gate = d->gate_up, *up = d->gate_up + m->hidden;
    TRY(attend(d, l, position, error));
    TRY(multiply(d, d->y, w->out, d->heads, m->C, m->NH * m->HS, error));
    TRY(add_to_x(d, error));
    TRY(launch_rmsnorm(d->y, d->x, w->ffn_norm, 1, m->C, m->eps, d->stream, error));
    TRY(multiply(d, d->gate_up, w->gate_up, d->y, 2 * m->hidden, m->C, error));
    TRY(launch_silu_gate(gate, gate, up, m->hidden, d->stream, error));
    TRY(multiply(d, d->y, w->down, gate, m->C, m->hidden, error));
    return add_to_x(d, error);
}

/* io's logits = those of a token at a position. */
static enum status feed(const struct decoder *d, int32_t token, size_t position,
                        struct error *error) {
    const struct decoder_model *m = d->model;
    TRY(embedding_row(d->x, m->embedding, m->dtype, (size_t)token, m->C, d->stream, error));
    for (size_t l = 0; l < m->L; l++) {
        TRY(run_layer(d, l, position, error));
    }
    TRY(launch_rmsnorm(d->y, d->x, m->final_norm, 1, m->C, m->eps, d->stream, error));
    return multiply(d, d->io.logits, m->classifier, d->y, m->V, m->C, error);
}

enum status decoder_prefill(struct decoder *d, const int32_t *tokens, size_t count, size_t position,
                            struct error *error) {
    for (size_t i = 0; i < count; i++) {
        TRY(feed(d, tokens[i], position + i, error));
    }
    return STATUS_OK;
}

/* ---- The next token ---- */

/* Draws on the host, from logits that are copied there. */
static enum status draw(const struct decoder *d, int32_t *token, struct error *error) {
    struct sampling how;
    struct sampler sampler;
    size_t V = d->model->V;
    TRY(device_read(&how, d->io.sampling, sizeof how, d->stream, error));
    TRY(device_read(d->logits, d->io.logits, V * sizeof *d->logits, d->stream, error));
    const struct llama2_sampling settings = {how.temperature, how.top_p, how.top_k, how.state};
    enum status status = sampler_create(&sampler, V, &settings);
    if (status != STATUS_OK) {
        return error_set(error, status, "decoder: drawing on the host: %s", status_message(status));
    }
    *token = sampler_next(&sampler, d->logits);
    how.state = sampler.state;
    sampler_free(&sampler);
    TRY(device_write(d->io.sampling, &how, sizeof how, d->stream, error));
    return device_write(d->io.token, token, sizeof *token, d->stream, error);
}

enum status decoder_step(struct decoder *d, size_t position, struct error *error) {
    int32_t token;
    TRY(draw(d, &token, error));
    return feed(d, token, position, error);
}

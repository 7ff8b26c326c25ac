/**
 * @file token.cu
 * @brief One token: operators that several steps share.
 */
#include "common/models/sampler.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "solutions/10_llama2_decoder/steps/elements.cuh"
#include "solutions/10_llama2_decoder/steps/ladder.h"

static constexpr unsigned EMBED_THREADS = 256;

/* ---- Lab 09's operators ---- */

enum status decoder_attend(const struct decoder *d, size_t l, size_t longest, struct error *error) {
    const struct decoder_model *m = d->model;
    size_t cache = l * m->T * m->KVH * m->HS * nn_dtype_bytes(m->dtype);
    struct kv_attention a = {};
    a.C = m->C, a.NH = m->NH, a.KVH = m->KVH, a.HS = m->HS;
    a.T = m->T;
    a.dtype = m->dtype;
    a.eps = m->eps;
    a.theta = m->theta;
    a.layout = m->layout;
    a.position = d->position;
    a.longest = longest;
    a.x = d->x;
    a.norm = m->layers[l].attention_norm;
    a.qkv = m->layers[l].qkv;
    a.k = (unsigned char *)d->k + cache;
    a.v = (unsigned char *)d->v + cache;
    a.out = d->heads;
    return kv_attention(&a, d->workspace, d->stream, error);
}

enum status decoder_multiply(const struct decoder *d, float *out, const void *weight,
                             const float *in, size_t N, size_t K, const float *norm,
                             const float *residual, struct error *error) {
    const struct kv_linear linear = {.N = N,
                                     .K = K,
                                     .dtype = d->model->dtype,
                                     .weight = weight,
                                     .in = in,
                                     .norm = norm,
                                     .eps = d->model->eps,
                                     .residual = residual,
                                     .out = out};
    return kv_linear(&linear, d->stream, error);
}

/* ---- Embedding ---- */

/* x (C) = the row of *token in the table; *position_out = position. Grid: a thread a channel. */
template <typename E>
static __global__ void __launch_bounds__(EMBED_THREADS)
    embed_kernel(float *x, const E *table, const int32_t *token, size_t C, int32_t *position_out,
                 int32_t position) {
    dependent_launch_begin();
    size_t c = (size_t)blockIdx.x * EMBED_THREADS + threadIdx.x;
    if (c < C) {
        x[c] = to_float(table[(size_t)*token * C + c]);
    }
    if (c == 0) {
        *position_out = position;
    }
}

struct decoder_embed_arguments decoder_embed_arguments(const struct decoder *d, size_t position) {
    return {d->x, d->model->embedding, d->io.token, d->model->C, d->position, (int32_t)position};
}

const void *decoder_embed_kernel(const struct decoder *d) {
    FOR_ELEMENT_TYPE(d->model->dtype, return (const void *)embed_kernel<E>);
}

template <typename E>
static void launch_embed(const struct decoder *d, const E *table, const int32_t *token,
                         size_t position) {
    unsigned blocks = (unsigned)ceil_div(d->model->C, EMBED_THREADS);
    launch_dependent<embed_kernel<E>>(blocks, EMBED_THREADS, 0, d->stream, d->x, table, token,
                                      d->model->C, d->position, (int32_t)position);
}

enum status decoder_embed_drawn(const struct decoder *d, size_t position, struct error *error) {
    FOR_ELEMENT_TYPE(d->model->dtype,
                     (launch_embed<E>(d, (const E *)d->model->embedding, d->io.token, position)));
    return device_launched("embed", error);
}

/* x (C) = a row of the table; *position_out = position. */
template <typename E>
static __global__ void __launch_bounds__(EMBED_THREADS)
    embed_row_kernel(float *x, const E *row, size_t C, int32_t *position_out, int32_t position) {
    dependent_launch_begin();
    size_t c = (size_t)blockIdx.x * EMBED_THREADS + threadIdx.x;
    if (c < C) {
        x[c] = to_float(row[c]);
    }
    if (c == 0) {
        *position_out = position;
    }
}

template <typename E>
static void launch_embed_row(const struct decoder *d, size_t token, size_t position) {
    const E *row = (const E *)d->model->embedding + token * d->model->C;
    unsigned blocks = (unsigned)ceil_div(d->model->C, EMBED_THREADS);
    launch_dependent<embed_row_kernel<E>>(blocks, EMBED_THREADS, 0, d->stream, d->x, row,
                                          d->model->C, d->position, (int32_t)position);
}

enum status decoder_embed(const struct decoder *d, int32_t token, size_t position,
                          struct error *error) {
    FOR_ELEMENT_TYPE(d->model->dtype, (launch_embed_row<E>(d, (size_t)token, position)));
    return device_launched("embed_row", error);
}

/* ---- All layers ---- */

enum status decoder_run_token(const struct decoder *d, const struct decoder_path *path,
                              size_t longest, struct error *error) {
    for (size_t l = 0; l < d->model->L; l++) {
        TRY(path->layer(d, l, longest, error));
    }
    return path->classify(d, error);
}

enum status decoder_one_by_one(const struct decoder *d, const struct decoder_path *path,
                               const int32_t *tokens, size_t count, size_t position,
                               struct error *error) {
    for (size_t i = 0; i < count; i++) {
        TRY(decoder_embed(d, tokens[i], position + i, error));
        TRY(decoder_run_token(d, path, position + i + 1, error));
    }
    return STATUS_OK;
}

/* ---- Drawing on the host ---- */

static enum status draw(const struct decoder *d, int32_t *token, struct error *error) {
    struct sampling how;
    struct sampler sampler;
    size_t V = d->model->V;
    TRY(device_read(&how, d->io.sampling, sizeof how, d->stream, error));
    TRY(device_read(d->host_logits, d->io.logits, V * sizeof(float), d->stream, error));
    const struct llama2_sampling settings = {how.temperature, how.top_p, how.top_k, how.state};
    enum status status = sampler_create(&sampler, V, &settings);
    if (status != STATUS_OK) {
        return error_set(error, status, "decoder: drawing on the host: %s", status_message(status));
    }
    *token = sampler_next(&sampler, d->host_logits);
    how.state = sampler.state;
    sampler_free(&sampler);
    TRY(device_write(d->io.sampling, &how, sizeof how, d->stream, error));
    return device_write(d->io.token, token, sizeof *token, d->stream, error);
}

enum status decoder_step_from_host(const struct decoder *d, const struct decoder_path *path,
                                   size_t position, struct error *error) {
    int32_t token;
    TRY(draw(d, &token, error));
    return decoder_one_by_one(d, path, &token, 1, position, error);
}

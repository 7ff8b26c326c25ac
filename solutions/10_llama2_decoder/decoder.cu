/**
 * @file decoder.cu
 * @brief Solution of lab 10: the decoder's memory, the last step of the ladder, and the ladder.
 */
#include "labs/10_llama2_decoder/decoder.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/07_attention/attention.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "labs/12_tensor_cores/tensor_cores.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"

/* ---- Memory ---- */

static enum status check_model(const struct decoder_model *m, size_t batch, struct error *error) {
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
    if (batch == 0 || batch > m->T) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "decoder: batch = %zu; it must be 1 to T = %zu", batch, m->T);
    }
    return STATUS_OK;
}

static enum status allocate(void **memory, size_t rows, size_t columns, size_t bytes,
                            struct error *error) {
    size_t count;
    if (!checked_multiply(rows, columns, &count) || !checked_multiply(count, bytes, &count)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: %zu rows of %zu numbers", rows,
                         columns);
    }
    return device_alloc(memory, count, error);
}

static enum status allocate_token(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    size_t F = sizeof(float), width = m->KVH * m->HS, bytes = nn_dtype_bytes(m->dtype);
    TRY(allocate((void **)&d->x, 1, m->C, F, error));
    TRY(allocate((void **)&d->y, 1, m->C, F, error));
    TRY(allocate((void **)&d->heads, m->NH, m->HS, F, error));
    TRY(allocate((void **)&d->gate_up, 2, m->hidden, F, error));
    TRY(allocate(&d->k, m->L * m->T, width, bytes, error));
    TRY(allocate(&d->v, m->L * m->T, width, bytes, error));
    TRY(allocate((void **)&d->position, 1, 1, sizeof *d->position, error));
    TRY(device_alloc(&d->workspace, KV_WORKSPACE_BYTES, error));
    TRY(device_alloc(&d->draw_workspace, sample_workspace_bytes(m->V), error));
    d->host_logits = (float *)calloc(m->V, sizeof *d->host_logits);
    return d->host_logits != NULL ? STATUS_OK
                                  : error_set(error, STATUS_OUT_OF_MEMORY,
                                              "decoder: out of memory for %zu logits", m->V);
}

/* Gate and up in turn, where they take at most half of the memory that is free: they are most of a
 * model's weights once more. */
static enum status pair_rows(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    size_t bytes, left = 0, total = 0;
    bool fits = m->dtype != NN_F32 && checked_multiply(m->L, 2 * m->hidden, &bytes) &&
                checked_multiply(bytes, m->C * nn_dtype_bytes(m->dtype), &bytes) &&
                cudaMemGetInfo(&left, &total) == cudaSuccess && bytes <= left / 2;
    if (!fits) {
        return STATUS_OK;
    }
    TRY(device_alloc(&d->rows.paired, bytes, error));
    return decoder_rows_pair(d, error);
}

static enum status allocate_rows(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    struct decoder_rows *r = &d->rows;
    size_t rows = d->batch, F = sizeof(float), bytes = nn_dtype_bytes(m->dtype);
    size_t workspace = m->dtype == NN_F32 ? SGEMM_WORKSPACE_BYTES : GEMM16_WORKSPACE_BYTES;
    TRY(allocate((void **)&r->tokens, rows, 1, sizeof *r->tokens, error));
    TRY(allocate((void **)&r->x, rows, m->C, F, error));
    TRY(allocate(&r->y, rows, m->C, bytes, error));
    TRY(allocate(&r->qkv, rows, (m->NH + 2 * m->KVH) * m->HS, bytes, error));
    TRY(allocate(&r->heads, rows, m->NH * m->HS, bytes, error));
    TRY(allocate(&r->gate_up, rows, 2 * m->hidden, bytes, error));
    TRY(allocate(&r->gated, rows, m->hidden, bytes, error));
    TRY(device_alloc(&r->workspace, workspace, error));
    return pair_rows(d, error);
}

static enum status fill(struct decoder *d, struct error *error) {
    struct device_properties gpu;
    TRY(device_properties(&gpu, error));
    d->multiprocessors = (size_t)gpu.multiprocessors;
    d->shared_bytes = gpu.shared_bytes;
    d->major = gpu.code / 10;
    TRY(allocate_token(d, error));
    TRY(decoder_one_create(d, error));
    /* Products of 16-bit matrices are on tensor cores, which code below 8.0 has not. */
    const bool products = d->model->dtype == NN_F32 || d->major >= 8;
    d->has_rows = d->batch > 1 && d->model->HS <= ATTENTION_MAX_HS && products;
    return d->has_rows ? allocate_rows(d, error) : STATUS_OK;
}

enum status decoder_create(struct decoder **decoder, const struct decoder_model *model,
                           const struct decoder_io *io, size_t batch, device_stream stream,
                           struct error *error) {
    *decoder = NULL;
    TRY(check_model(model, batch, error));
    struct decoder *d = (struct decoder *)calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: out of memory");
    }
    d->model = model;
    d->io = *io;
    d->batch = batch;
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
    if (d == NULL) {
        return;
    }
    const struct decoder_rows *r = &d->rows;
    void *const all[] = {
        d->x,        d->y,         d->heads,          d->gate_up, d->k,     d->v,
        d->position, d->workspace, d->draw_workspace, r->tokens,  r->x,     r->paired,
        r->y,        r->qkv,       r->heads,          r->gate_up, r->gated, r->workspace};
    decoder_graphs_free(d);
    decoder_one_free(d);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    free(d->host_logits);
    free(d);
}

/* ---- The ladder ---- */

const struct decoder_version *decoder_ladder(size_t *count) {
    static const struct decoder_version versions[] = {
        {"d1_operators", decoder_d1_prefill, decoder_d1_step, &decoder_path_operators},
        {"d2_fused", decoder_d2_prefill, decoder_d2_step, &decoder_path_fused},
        {"d3_gate_up", decoder_d3_prefill, decoder_d3_step, &decoder_path_gate_up},
        {"d4_stream", decoder_d4_prefill, decoder_d4_step, &decoder_path_stream},
        {"d5_drawn_here", decoder_d4_prefill, decoder_d5_step, &decoder_path_stream},
        {"d6_prefill", decoder_d6_prefill, decoder_d5_step, &decoder_path_stream},
        {"d7_graph", decoder_d6_prefill, decoder_d7_step, &decoder_path_stream},
        {"d8_one_kernel", decoder_d6_prefill, decoder_d8_step, &decoder_path_stream},
    };
    *count = sizeof versions / sizeof *versions;
    return versions;
}

enum status decoder_prefill(struct decoder *d, const int32_t *tokens, size_t count, size_t position,
                            struct error *error) {
    return decoder_d6_prefill(d, tokens, count, position, error);
}

/* d8's blocks exchange values five times a layer, which pays for layers that take memory long
 * enough: it is for 110M and more, 14 MB a layer in 16 bits. */
static bool has_large_layers(const struct decoder_model *m) {
    size_t heads = m->NH * m->HS, rows = heads + 2 * m->KVH * m->HS + 2 * m->hidden;
    size_t weights = rows * m->C + (heads + m->hidden) * m->C;
    return weights * nn_dtype_bytes(m->dtype) >= (size_t)8 << 20;
}

enum status decoder_step(struct decoder *d, size_t position, struct error *error) {
    return has_large_layers(d->model) ? decoder_d8_step(d, position, error)
                                      : decoder_d7_step(d, position, error);
}

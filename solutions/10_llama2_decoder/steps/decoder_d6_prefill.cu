/**
 * @file decoder_d6_prefill.cu
 * @brief d6: prefill, a prompt's tokens as the rows of one matrix.
 *
 * Changes since d5: products are matrix multiplications, which read each weight once for all
 * tokens: lab 04's for fp32, gemm16 for 16 bits. Attention is lab 07's, the new tokens' queries
 * against the whole cache. In the last layer all tokens need keys and values, and only the last
 * token needs the rest: it runs that layer as a single token does. Why: token by token the weights
 * are read `count` times; as a matrix they are read once, and the arithmetic runs on tensor cores.
 *
 * In 16 bits normed rows, queries, heads and the gate are rounded once each; the residual stream
 * stays fp32, as with one token: products add to it. The gate is part of its product, which needs a
 * copy of the weights, each gate's row before its up's. No kernel writes weights, so a product
 * copies its first ones while the kernel before it ends.
 */
#include <cuda_runtime_api.h>
#include <math.h>

#include "labs/04_sgemm/sgemm.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"
#include "labs/07_attention/attention.h"
#include "labs/12_tensor_cores/tensor_cores.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"

/* out (count, N) of E = in (count, K) * weight (N, K)^T. */
static enum status multiply_rows(const struct decoder *d, void *out, const void *in,
                                 const void *weight, size_t count, size_t N, size_t K,
                                 struct error *error) {
    if (d->model->dtype == NN_F32) {
        const struct sgemm_problem p = {count,
                                        N,
                                        K,
                                        SGEMM_B_TRANSPOSED,
                                        1.0f,
                                        0.0f,
                                        (const float *)in,
                                        (const float *)weight,
                                        (float *)out};
        return sgemm(&p, d->rows.workspace, d->stream, error);
    }
    struct gemm16_problem p = {};
    p.dtype = p.out_dtype = d->model->dtype;
    p.M = count, p.N = N, p.K = K;
    p.in = in, p.weight = weight, p.out = out;
    p.weight_is_constant = true;
    return gemm16(&p, d->rows.workspace, d->stream, error);
}

/* rows.x = in (count, K) * weight (C, K)^T, with `adds` in addition to rows.x. */
static enum status multiply_part(const struct decoder *d, const void *in, const void *weight,
                                 size_t count, size_t K, bool adds, struct error *error) {
    size_t C = d->model->C;
    if (d->model->dtype == NN_F32) {
        const struct sgemm_problem p = {count,
                                        C,
                                        K,
                                        SGEMM_B_TRANSPOSED,
                                        1.0f,
                                        adds ? 1.0f : 0.0f,
                                        (const float *)in,
                                        (const float *)weight,
                                        d->rows.x};
        return sgemm(&p, d->rows.workspace, d->stream, error);
    }
    struct gemm16_problem p = {};
    p.dtype = d->model->dtype;
    p.out_dtype = NN_F32;
    p.M = count, p.N = C, p.K = K;
    p.in = in, p.weight = weight, p.out = d->rows.x;
    p.residual = adds ? d->rows.x : NULL;
    p.residual_is_float = true;
    p.weight_is_constant = true;
    return gemm16(&p, d->rows.workspace, d->stream, error);
}

/* The same, of all ranks together: one of them adds to rows.x, the others replace it. */
static enum status multiply_onto_x(const struct decoder *d, const void *in, const void *weight,
                                   size_t count, size_t K, const struct decoder_sums *sums,
                                   struct error *error) {
    TRY(multiply_part(d, in, weight, count, K, sums == NULL || sums->first, error));
    return sums != NULL ? sums->add(sums->context, d->rows.x, count * d->model->C, error)
                        : STATUS_OK;
}

/* rows.y = RMSNorm of rows.x. */
static enum status norm(const struct decoder *d, const float *weight, size_t count,
                        struct error *error) {
    if (d->model->dtype != NN_F32) {
        return decoder_rows_norm(d, weight, count, error);
    }
    struct rows_problem p = {};
    p.op = ROWS_RMSNORM;
    p.type = NN_F32;
    p.rows = count;
    p.C = d->model->C;
    p.in = d->rows.x;
    p.out = d->rows.y;
    p.weight = weight;
    p.eps = d->model->eps;
    return layernorm_softmax(&p, d->rows.workspace, d->stream, error);
}

static enum status attend(const struct decoder *d, size_t l, size_t count, size_t position,
                          struct error *error) {
    const struct decoder_model *m = d->model;
    size_t cache = l * m->T * m->KVH * m->HS * nn_dtype_bytes(m->dtype);
    struct attention_problem p = {};
    p.dtype = m->dtype;
    p.q = d->rows.qkv;
    p.k = (unsigned char *)d->k + cache;
    p.v = (unsigned char *)d->v + cache;
    p.out = d->rows.heads;
    p.B = 1, p.T = count, p.S = position + count;
    p.NH = m->NH, p.KVH = m->KVH, p.HS = m->HS;
    p.q_stride = (m->NH + 2 * m->KVH) * m->HS;
    p.kv_stride = m->KVH * m->HS;
    p.out_stride = m->NH * m->HS;
    p.causal = true;
    p.scale = 1.0f / sqrtf((float)m->HS);
    return attention(&p, d->stream, error);
}

/* rows.gated = silu(gate) * up of rows.y. */
static enum status multiply_gated(const struct decoder *d, size_t l, size_t count,
                                  struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_rows *r = &d->rows;
    if (r->paired == NULL) {
        TRY(multiply_rows(d, r->gate_up, r->y, m->layers[l].gate_up, count, 2 * m->hidden, m->C,
                          error));
        return decoder_rows_gate(d, count, error);
    }
    struct gemm16_problem p = {};
    p.dtype = p.out_dtype = m->dtype;
    p.M = count, p.N = 2 * m->hidden, p.K = m->C;
    p.in = r->y;
    p.weight = (const unsigned char *)r->paired + l * p.N * p.K * nn_dtype_bytes(m->dtype);
    p.gate = true;
    p.weight_is_constant = true;
    p.out = r->gated;
    return gemm16(&p, r->workspace, d->stream, error);
}

enum status decoder_rows_layer(const struct decoder *d, size_t l, size_t count, size_t position,
                               const struct decoder_sums *sums, struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    const struct decoder_rows *r = &d->rows;
    size_t channels = m->NH * m->HS, all = channels + 2 * m->KVH * m->HS;
    TRY(norm(d, w->attention_norm, count, error));
    TRY(multiply_rows(d, r->qkv, r->y, w->qkv, count, all, m->C, error));
    TRY(decoder_rows_rotate(d, l, true, count, position, error));
    TRY(attend(d, l, count, position, error));
    TRY(multiply_onto_x(d, r->heads, w->out, count, channels, sums, error));
    TRY(norm(d, w->ffn_norm, count, error));
    TRY(multiply_gated(d, l, count, error));
    return multiply_onto_x(d, r->gated, w->down, count, m->hidden, sums, error);
}

enum status decoder_rows_end(const struct decoder *d, size_t count, size_t position,
                             struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[m->L - 1];
    size_t last = position + count - 1, channels = m->NH * m->HS;
    const unsigned char *keys =
        (const unsigned char *)w->qkv + channels * m->C * nn_dtype_bytes(m->dtype);
    TRY(norm(d, w->attention_norm, count, error));
    TRY(multiply_rows(d, d->rows.qkv, d->rows.y, keys, count, 2 * m->KVH * m->HS, m->C, error));
    TRY(decoder_rows_rotate(d, m->L - 1, false, count, position, error));
    return decoder_rows_copy(d, count - 1, last, error);
}

enum status decoder_rows_begin(const struct decoder *d, const int32_t *tokens, size_t count,
                               struct error *error) {
    cudaError_t code = cudaMemcpyAsync(d->rows.tokens, tokens, count * sizeof *tokens,
                                       cudaMemcpyHostToDevice, d->stream);
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "copying %zu tokens to the GPU: %s", count,
                         cudaGetErrorString(code));
    }
    return decoder_rows_embed(d, count, error);
}

enum status decoder_d6_prefill(struct decoder *d, const int32_t *tokens, size_t count,
                               size_t position, struct error *error) {
    if (!d->has_rows || count < 2) {
        return decoder_one_by_one(d, &decoder_path_stream, tokens, count, position, error);
    }
    TRY(decoder_rows_begin(d, tokens, count, error));
    for (size_t l = 0; l + 1 < d->model->L; l++) {
        TRY(decoder_rows_layer(d, l, count, position, NULL, error));
    }
    TRY(decoder_rows_end(d, count, position, error));
    TRY(decoder_path_stream.layer(d, d->model->L - 1, position + count, error));
    return decoder_path_stream.classify(d, error);
}

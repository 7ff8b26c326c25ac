/**
 * @file single_operators.cu
 * @brief Operators of e1 and e2: lists copied one by one, a launch for each operator.
 *
 * Between any two operators all matrices of a layer are written to memory and read back. For BERT's
 * C = 768 and 3072 channels in the feed-forward that is, per row and layer, and in addition to the
 * traffic of the matmuls and attention themselves: 6C for the bias of q, k and v, 2 * 7C after out
 * and down (bias, sum, LayerNorm), 2 * 8C for bias and GELU of up; 36C floats, 110 KB.
 */
#include <limits.h>
#include <math.h>

#include "labs/03_resident_weights/given/operators.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "labs/07_attention/attention.h"
#include "solutions/08_bert_classifier/steps/ladder.h"

enum { THREADS = 256 };

/* Lab 04's and 05's scratch memory follows the bytes that stay zero. */
static void *scratch(const struct encoder *e) {
    return (char *)e->workspace + FUSED_ZERO_BYTES;
}

/* ---- Lists ---- */

struct encoder_list encoder_list_create(struct encoder *e, size_t count) {
    size_t first = e->used;
    e->used += count;
    return {e->staged + first, e->lists + first, count};
}

enum status encoder_upload(const struct encoder *e, const struct encoder_list *list,
                           struct error *error) {
    cudaError_t code = cudaMemcpyAsync(list->device, list->host, list->count * sizeof *list->host,
                                       cudaMemcpyHostToDevice, e->stream);
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "encoder: copying a list: %s",
                                           cudaGetErrorString(code));
}

struct encoder_ids encoder_list_rows(struct encoder *e, const struct encoder_batch *batch) {
    struct encoder_ids lists = {encoder_list_create(e, batch->rows),
                                encoder_list_create(e, batch->rows),
                                encoder_list_create(e, batch->rows)};
    for (size_t b = 0; b < batch->B; b++) {
        for (int32_t row = batch->starts[b]; row < batch->starts[b + 1]; row++) {
            lists.ids.host[row] = batch->ids[row];
            lists.types.host[row] = batch->types != NULL ? batch->types[row] : 0;
            lists.positions.host[row] = row - batch->starts[b];
        }
    }
    return lists;
}

/* ---- Embeddings ---- */

/*
 * A thread an element. Bytes: 8 rows C, with accumulate 12 rows C; the table's rows come from
 * cache where they repeat.
 */
static __global__ void gather_kernel(float *out, const float *table, const int32_t *ids,
                                     size_t rows, size_t C, bool accumulate) {
    size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i < rows * C) {
        float value = table[(size_t)ids[i / C] * C + i % C];
        out[i] = accumulate ? out[i] + value : value;
    }
}

enum status encoder_gather(const struct encoder *e, float *out, const float *table,
                           const int32_t *ids, size_t rows, bool accumulate, struct error *error) {
    size_t C = e->model->C, blocks = (rows * C + THREADS - 1) / THREADS;
    if (blocks > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "encoder: %zu rows are too many", rows);
    }
    gather_kernel<<<(unsigned)blocks, THREADS, 0, e->stream>>>(out, table, ids, rows, C,
                                                               accumulate);
    return device_launched("gather_kernel", error);
}

enum status encoder_store_results(const struct encoder *e, const struct encoder_batch *batch,
                                  const int32_t *firsts, struct error *error) {
    if (batch->hidden != NULL) {
        size_t bytes = batch->rows * e->model->C * sizeof(float);
        TRY(device_copy(batch->hidden, e->x, bytes, e->stream, error));
    }
    return encoder_gather(e, batch->first, e->x, firsts, batch->B, false, error);
}

static enum status normalise(const struct encoder *e, const struct nn_norm *norm, size_t rows,
                             struct error *error) {
    const struct rows_problem problem = {.op = ROWS_LAYERNORM,
                                         .type = NN_F32,
                                         .rows = rows,
                                         .C = e->model->C,
                                         .in = e->x,
                                         .out = e->x,
                                         .weight = norm->weight,
                                         .bias = norm->bias,
                                         .eps = norm->eps};
    return layernorm_softmax(&problem, scratch(e), e->stream, error);
}

enum status encoder_embed_one_by_one(const struct encoder *e, const struct encoder_ids *lists,
                                     size_t rows, struct error *error) {
    const struct encoder_model *m = e->model;
    TRY(encoder_upload(e, &lists->ids, error));
    TRY(encoder_upload(e, &lists->types, error));
    TRY(encoder_upload(e, &lists->positions, error));
    TRY(encoder_gather(e, e->x, m->word_embedding, lists->ids.device, rows, false, error));
    TRY(encoder_gather(e, e->x, m->position_embedding, lists->positions.device, rows, true, error));
    TRY(encoder_gather(e, e->x, m->type_embedding, lists->types.device, rows, true, error));
    return normalise(e, &m->embedding, rows, error);
}

/* ---- A layer ---- */

enum status encoder_attend(const struct encoder *e, const struct encoder_view *view,
                           struct error *error) {
    const struct encoder_model *m = e->model;
    size_t HS = m->C / m->NH;
    const struct attention_problem problem = {.dtype = NN_F32,
                                              .q = e->qkv,
                                              .k = e->qkv + m->C,
                                              .v = e->qkv + 2 * m->C,
                                              .out = e->attended,
                                              .mask = view->mask,
                                              .starts = view->starts,
                                              .host_starts = view->host_starts,
                                              .B = view->B,
                                              .T = view->longest,
                                              .S = view->longest,
                                              .NH = m->NH,
                                              .KVH = m->NH,
                                              .HS = HS,
                                              .q_stride = 3 * m->C,
                                              .kv_stride = 3 * m->C,
                                              .out_stride = m->C,
                                              .scale = 1.0f / sqrtf((float)HS)};
    return attention(&problem, e->stream, error);
}

/* out (rows, N) = in (rows, K) * weight^T + bias. */
static enum status linear(const struct encoder *e, float *out, const float *in,
                          const struct encoder_linear *layer, size_t rows, size_t N, size_t K,
                          struct error *error) {
    const struct sgemm_problem product = {.M = rows,
                                          .N = N,
                                          .K = K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .beta = 0.0f,
                                          .A = in,
                                          .B = layer->weight,
                                          .C = out};
    TRY(sgemm(&product, scratch(e), e->stream, error));
    return launch_bias_add(out, layer->bias, rows, N, e->stream, error);
}

/* x = LayerNorm(x + in * weight^T + bias). */
static enum status close_sublayer(const struct encoder *e, const float *in,
                                  const struct encoder_linear *layer, const struct nn_norm *norm,
                                  size_t rows, size_t K, struct error *error) {
    size_t C = e->model->C;
    TRY(linear(e, e->projected, in, layer, rows, C, K, error));
    TRY(launch_residual(e->x, e->x, e->projected, rows * C, e->stream, error));
    return normalise(e, norm, rows, error);
}

enum status encoder_layer_one_by_one(const struct encoder *e, const struct encoder_layer *layer,
                                     const struct encoder_view *view, struct error *error) {
    const struct encoder_model *m = e->model;
    size_t rows = view->rows;
    TRY(linear(e, e->qkv, e->x, &layer->qkv, rows, 3 * m->C, m->C, error));
    TRY(encoder_attend(e, view, error));
    TRY(close_sublayer(e, e->attended, &layer->out, &layer->attention, rows, m->C, error));
    TRY(linear(e, e->inner, e->x, &layer->up, rows, m->hidden, m->C, error));
    TRY(launch_activation(e->inner, e->inner, rows * m->hidden, m->activation, e->stream, error));
    return close_sublayer(e, e->inner, &layer->down, &layer->feed_forward, rows, m->hidden, error);
}

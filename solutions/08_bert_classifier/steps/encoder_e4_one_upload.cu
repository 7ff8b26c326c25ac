/**
 * @file encoder_e4_one_upload.cu
 * @brief One copy and one launch before the first layer.
 *
 * Changes since e3: starts, ids, types and positions are contiguous in page-locked memory and are
 * copied at once. One kernel gathers the three rows of a token, adds them up and normalises the
 * sum, which stays in registers.
 *
 * Why: four copies and four launches, each of a few microseconds, most of them
 * latency; and the sum was written three times, and read three times, before
 * the LayerNorm.
 *
 * Mapping: a warp a row, neighbouring lanes on neighbouring channels; up to 1024
 * channels are held in registers, longer rows are gathered three times, from
 * cache. Bytes: 4 (3 C read, most of it cached, + C written) a row, where e3 had
 * 4 * 11 C. FLOPs: about 10 C a row.
 */
#include <limits.h>
#include <string.h>

#include "common/cuda/warp.cuh"
#include "solutions/08_bert_classifier/steps/ladder.h"

enum { WARP = 32, THREADS = 256, ROWS_A_BLOCK = THREADS / WARP };

/* Parameters of a launch. */
struct embedding {
    const float *word, *position, *type; /* the tables */
    const int32_t *ids, *positions, *types;
    struct nn_norm norm;
    float *out; /* (rows, C) */
    size_t rows, C;
};

/* A token's three rows. */
struct token {
    const float *word, *position, *type;
};

static __device__ __forceinline__ struct token token_of(const struct embedding &p, size_t row) {
    return {p.word + (size_t)p.ids[row] * p.C, p.position + (size_t)p.positions[row] * p.C,
            p.type + (size_t)p.types[row] * p.C};
}

static __device__ __forceinline__ float sum_at(const struct token &t, size_t c) {
    return t.word[c] + t.position[c] + t.type[c];
}

static __device__ __forceinline__ void store(const struct embedding &p, size_t row, size_t c,
                                             float deviation, float rstd) {
    p.out[row * p.C + c] = deviation * rstd * p.norm.weight[c] + p.norm.bias[c];
}

/* Rows of at most 32 * CHANNELS channels. */
template <int CHANNELS>
static __global__ void __launch_bounds__(THREADS) embed_in_registers(struct embedding p) {
    size_t row = blockIdx.x * (size_t)ROWS_A_BLOCK + threadIdx.x / WARP;
    unsigned lane = threadIdx.x % WARP;
    if (row >= p.rows) {
        return; /* the whole warp */
    }
    const struct token t = token_of(p, row);
    float x[CHANNELS], sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        size_t c = lane + WARP * i;
        x[i] = c < p.C ? sum_at(t, c) : 0.0f;
        sum += x[i];
    }
    float mean = warp_sum(sum) / (float)p.C;
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        x[i] -= mean;
        squares += lane + WARP * i < p.C ? x[i] * x[i] : 0.0f;
    }
    float rstd = rsqrtf(warp_sum(squares) / (float)p.C + p.norm.eps);
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        size_t c = lane + WARP * i;
        if (c < p.C) {
            store(p, row, c, x[i], rstd);
        }
    }
}

static __global__ void __launch_bounds__(THREADS) embed_long_rows(struct embedding p) {
    size_t row = blockIdx.x * (size_t)ROWS_A_BLOCK + threadIdx.x / WARP;
    unsigned lane = threadIdx.x % WARP;
    if (row >= p.rows) {
        return;
    }
    const struct token t = token_of(p, row);
    float sum = 0.0f, squares = 0.0f;
    for (size_t c = lane; c < p.C; c += WARP) {
        sum += sum_at(t, c);
    }
    float mean = warp_sum(sum) / (float)p.C;
    for (size_t c = lane; c < p.C; c += WARP) {
        float deviation = sum_at(t, c) - mean;
        squares += deviation * deviation;
    }
    float rstd = rsqrtf(warp_sum(squares) / (float)p.C + p.norm.eps);
    for (size_t c = lane; c < p.C; c += WARP) {
        store(p, row, c, sum_at(t, c) - mean, rstd);
    }
}

static void launch(const struct embedding &p, unsigned blocks, device_stream stream) {
    if (p.C <= 8 * WARP) {
        embed_in_registers<8><<<blocks, THREADS, 0, stream>>>(p);
    } else if (p.C <= 24 * WARP) {
        embed_in_registers<24><<<blocks, THREADS, 0, stream>>>(p);
    } else if (p.C <= 32 * WARP) {
        embed_in_registers<32><<<blocks, THREADS, 0, stream>>>(p);
    } else {
        embed_long_rows<<<blocks, THREADS, 0, stream>>>(p);
    }
}

enum status encoder_embed_at_once(const struct encoder *e, const int32_t *ids, const int32_t *types,
                                  const int32_t *positions, size_t rows, struct error *error) {
    const struct encoder_model *m = e->model;
    size_t blocks = (rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK;
    if (blocks > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "encoder: %zu rows are too many", rows);
    }
    const struct embedding p = {.word = m->word_embedding,
                                .position = m->position_embedding,
                                .type = m->type_embedding,
                                .ids = ids,
                                .positions = positions,
                                .types = types,
                                .norm = m->embedding,
                                .out = e->x,
                                .rows = rows,
                                .C = m->C};
    launch(p, (unsigned)blocks, e->stream);
    return device_launched("the embeddings", error);
}

enum status encoder_prologue(struct encoder *e, const struct encoder_batch *batch,
                             struct encoder_view *view, struct error *error) {
    TRY(encoder_reserve(e, batch->rows, error));
    e->used = 0;
    struct encoder_list starts = encoder_list_create(e, batch->B + 1);
    memcpy(starts.host, batch->starts, starts.count * sizeof *starts.host);
    const struct encoder_ids lists = encoder_list_rows(e, batch);
    const struct encoder_list all = {e->staged, e->lists, e->used};
    *view = {.rows = batch->rows,
             .B = batch->B,
             .longest = batch->longest,
             .mask = NULL,
             .starts = starts.device,
             .host_starts = batch->starts};
    TRY(encoder_upload(e, &all, error));
    return encoder_embed_at_once(e, lists.ids.device, lists.types.device, lists.positions.device,
                                 batch->rows, error);
}

enum status encoder_e4_one_upload(struct encoder *e, const struct encoder_batch *batch,
                                  struct error *error) {
    struct encoder_view view;
    TRY(encoder_prologue(e, batch, &view, error));
    for (size_t l = 0; l < e->model->L; l++) {
        TRY(encoder_layer_fused(e, &e->model->layers[l], &view, error));
    }
    return encoder_store_results(e, batch, view.starts, error);
}

/**
 * @file encoder_e5_first_rows.cu
 * @brief The last layer computes only the rows that are read: the first one of each sequence.
 *
 * Changes since e4: if the hidden state is not wanted, the last layer computes k and v of all rows,
 * and everything else (q, attention, out, up, down) of the B first rows only. Attention of one
 * query a sequence is a kernel of its own: lab 07's packed form has as many queries as keys.
 *
 * Why: the classifier reads [CLS] alone. With hidden = 4C, k and v are 4 C^2 of a
 * row's 24 C^2 FLOPs: the last layer costs a sixth, 7% of all of BERT-base's. A
 * model of fewer layers gains more.
 *
 * Launches: 3 more in the last layer. Mapping of first_attention: a block a head
 * and sequence, a warp has 4 keys at a time, its lanes the head's channels; each warp has an online
 * softmax of its own (lab 07), and they are merged at the end. Bytes: k and v once, 8 C a row.
 * FLOPs: 4 C a row.
 */
#include <limits.h>
#include <math.h>

#include "common/cuda/warp.cuh"
#include "labs/07_attention/attention.h"
#include "solutions/08_bert_classifier/steps/ladder.h"

enum { WARP = 32, WARPS = 8, THREADS = WARP * WARPS, KEYS = 4 };

struct first_attention {
    const float *q;        /* (B, C) */
    const float *kv;       /* (rows, 2C) */
    const int32_t *starts; /* (B + 1) */
    float *out;            /* (B, C) */
    size_t C, NH;
    float scale;
};

/* Online softmax state; a lane has the channels lane, lane + 32, ... of P V. */
template <int OWN> struct online_softmax { float max, sum, out[OWN]; };

/* The lane's channels of one row of k or v; beyond the head or the sequence 0. */
template <int OWN>
static __device__ __forceinline__ void load(float (&to)[OWN], const float *row, unsigned lane,
                                            unsigned HS, bool valid) {
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        to[i] = valid && lane + WARP * i < HS ? row[lane + WARP * i] : 0.0f;
    }
}

/* Online softmax update by KEYS keys from `key` on, of `count` in all; kv is the head's part of row
 * 0. */
template <int OWN>
static __device__ __forceinline__ void
online_softmax_update(struct online_softmax<OWN> &s, const float (&q)[OWN], const float *kv,
                      size_t C, unsigned HS, int key, int count) {
    unsigned lane = threadIdx.x % WARP;
    float k[KEYS][OWN], v[KEYS][OWN], weight[KEYS], largest = s.max;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const float *row = kv + (size_t)(key + i) * 2 * C;
        load(k[i], row, lane, HS, key + i < count);
        load(v[i], row + C, lane, HS, key + i < count);
    }
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float product = 0.0f;
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            product += q[j] * k[i][j];
        }
        product = warp_sum(product);
        weight[i] = key + i < count ? product : -INFINITY;
        largest = fmaxf(largest, weight[i]); /* finite: key itself is below count */
    }
    float rescale = expf(s.max - largest);
    s.max = largest;
    s.sum *= rescale;
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        s.out[j] *= rescale;
    }
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        weight[i] = expf(weight[i] - largest);
        s.sum += weight[i];
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            s.out[j] += weight[i] * v[i][j];
        }
    }
}

/* Channel threadIdx.x of the attention, merged from all warps' online softmaxes. */
template <int OWN>
static __device__ __forceinline__ float merge_warps(const float *max, const float *sums,
                                                    const float (*outs)[WARP * OWN]) {
    float largest = max[0], sum = 0.0f, x = 0.0f; /* finite: warp 0 has a key */
    for (int w = 1; w < WARPS; w++) {
        largest = fmaxf(largest, max[w]);
    }
    for (int w = 0; w < WARPS; w++) {
        float rescale = expf(max[w] - largest);
        sum += rescale * sums[w];
        x += rescale * outs[w][threadIdx.x];
    }
    return x / sum;
}

/* Heads of at most 32 * OWN channels. */
template <int OWN>
static __global__ void __launch_bounds__(THREADS) first_attention_kernel(struct first_attention p) {
    __shared__ float max[WARPS], sums[WARPS], outs[WARPS][WARP * OWN];
    size_t h = blockIdx.x % p.NH, b = blockIdx.x / p.NH;
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, HS = (unsigned)(p.C / p.NH);
    int start = p.starts[b], count = p.starts[b + 1] - start;
    float q[OWN];
    struct online_softmax<OWN> s = {
        - INFINITY, 0.0f, {
        }
    };
    load(q, p.q + b * p.C + h * HS, lane, HS, true);
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        q[j] *= p.scale;
    }
    const float *kv = p.kv + (size_t)start * 2 * p.C + h * HS;
    for (int key = (int)warp * KEYS; key < count; key += WARPS * KEYS) {
        online_softmax_update(s, q, kv, p.C, HS, key, count);
    }
    if (lane == 0) {
        max[warp] = s.max;
        sums[warp] = s.sum;
    }
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        outs[warp][lane + WARP * j] = s.out[j];
    }
    __syncthreads();
    if (threadIdx.x < HS) {
        p.out[b * p.C + h * HS + threadIdx.x] = merge_warps<OWN>(max, sums, outs);
    }
}

static enum status attend_first(const struct encoder *e, const struct encoder_view *view,
                                struct error *error) {
    const struct encoder_model *m = e->model;
    size_t HS = m->C / m->NH, blocks = view->B * m->NH;
    if (blocks > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "encoder: %zu sequences with %zu heads are too many", view->B, m->NH);
    }
    const struct first_attention p = {e->projected, e->qkv, view->starts,           e->attended,
                                      m->C,         m->NH,  1.0f / sqrtf((float)HS)};
    if (HS <= 1 * WARP) {
        first_attention_kernel<1><<<(unsigned)blocks, THREADS, 0, e->stream>>>(p);
    } else if (HS <= 2 * WARP) {
        first_attention_kernel<2><<<(unsigned)blocks, THREADS, 0, e->stream>>>(p);
    } else {
        static_assert(ATTENTION_MAX_HS <= 4 * WARP, "the largest head");
        first_attention_kernel<4><<<(unsigned)blocks, THREADS, 0, e->stream>>>(p);
    }
    return device_launched("first_attention", error);
}

/* first (B, C) = the layer's result for the first rows of x. */
static enum status run_last_layer(const struct encoder *e, const struct encoder_layer *layer,
                                  const struct encoder_view *view, float *first,
                                  struct error *error) {
    size_t C = e->model->C;
    const struct encoder_linear q = layer->qkv;
    const struct encoder_linear kv = {layer->qkv.weight + C * C, layer->qkv.bias + C};
    TRY(encoder_linear(e, e->qkv, e->x, &kv, view->rows, 2 * C, C, error));
    TRY(encoder_gather(e, first, e->x, view->starts, view->B, false, error));
    TRY(encoder_linear(e, e->projected, first, &q, view->B, C, C, error));
    TRY(attend_first(e, view, error));
    return encoder_after_attention(e, first, layer, view->B, error);
}

enum status encoder_e5_first_rows(struct encoder *e, const struct encoder_batch *batch,
                                  struct error *error) {
    const struct encoder_model *m = e->model;
    struct encoder_view view;
    size_t whole = batch->hidden != NULL ? m->L : m->L - 1;
    TRY(encoder_prologue(e, batch, &view, error));
    for (size_t l = 0; l < whole; l++) {
        TRY(encoder_layer_fused(e, &m->layers[l], &view, error));
    }
    return batch->hidden != NULL
               ? encoder_store_results(e, batch, view.starts, error)
               : run_last_layer(e, &m->layers[m->L - 1], &view, batch->first, error);
}

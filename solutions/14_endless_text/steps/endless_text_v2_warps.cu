/**
 * @file endless_text_v2_warps.cu
 * @brief Step v2: a block a query head, a warp a key, no scores in device memory; norms by a block
 *        each.
 *
 * Changes since v1: a warp reads a key's neighbouring channels together, and keeps an online
 * softmax of every eighth key; the block merges its warps' in shared memory. The mean and variance
 * of a norm are summed up once by a block, not once by every thread.
 *
 * Mapping: attention has a block of 8 warps for each query head, a lane every 32nd channel; a norm
 * is one block.
 */
#include <math.h>

#include "common/base/checked.h"
#include "common/cuda/block.cuh"
#include "common/cuda/convert.cuh"
#include "solutions/14_endless_text/steps/ladder.h"
#include "solutions/14_endless_text/steps/places.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    MOST = ENDLESS_MAX_HS / 32, /* channels of a lane */
};

/* Mapping: a thread has a channel of the new row. */
template <typename E> static __global__ void store_kernel(struct endless_attention a) {
    size_t width = a.KVH * a.HS, c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    struct places p = places_of(a);
    if (c < width) {
        size_t row = ring_row(p, p.seen - 1) * width;
        store_rounded((E *)a.k + row + c, a.k_new[c]);
        store_rounded((E *)a.v + row + c, a.v_new[c]);
    }
}

/* A warp's online softmax of its keys. */
struct warp_state {
    float max, sum, out[MOST];
};

template <typename E>
static __device__ void attend_keys(struct warp_state *state, const struct endless_attention &a,
                                   const struct places &p, const float q[MOST]) {
    size_t stride = a.KVH * a.HS, head = blockIdx.x / (a.NH / a.KVH) * a.HS;
    int lane = threadIdx.x % 32, HS = (int)a.HS;
    for (int s = threadIdx.x / 32; s < p.seen; s += WARPS) {
        size_t row = ring_row(p, s) * stride + head;
        float score = 0.0f;
        for (int i = 0, c = lane; i < MOST && c < HS; i++, c += 32) {
            score += q[i] * rotated((const E *)a.k + row, c, s, a);
        }
        score = warp_sum(score);
        float larger = fmaxf(state->max, score);
        float rescale = expf(state->max - larger), weight = expf(score - larger);
        state->max = larger;
        state->sum = state->sum * rescale + weight;
        for (int i = 0, c = lane; i < MOST && c < HS; i++, c += 32) {
            state->out[i] = state->out[i] * rescale + weight * to_float(((const E *)a.v)[row + c]);
        }
    }
}

template <typename E> static __global__ void attention_kernel(struct endless_attention a) {
    __shared__ float out[WARPS][ENDLESS_MAX_HS], max[WARPS], sum[WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, HS = (int)a.HS;
    struct places p = places_of(a);
    struct warp_state state = {-INFINITY, 0.0f, {}};
    float q[MOST] = {}, largest = -INFINITY, all = 0.0f, value = 0.0f;
    for (int i = 0, c = lane; i < MOST && c < HS; i++, c += 32) {
        q[i] = rotated(a.q + blockIdx.x * a.HS, c, p.seen - 1, a) / sqrtf((float)HS);
    }
    attend_keys<E>(&state, a, p, q);
    for (int i = 0, c = lane; i < MOST && c < HS; i++, c += 32) {
        out[warp][c] = state.out[i];
    }
    max[warp] = state.max, sum[warp] = state.sum;
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
        largest = fmaxf(largest, max[w]);
    }
    for (int w = 0; w < WARPS && (int)threadIdx.x < HS; w++) {
        float share = expf(max[w] - largest); /* 0 for a warp without keys */
        all += share * sum[w];
        value += share * out[w][threadIdx.x];
    }
    if ((int)threadIdx.x < HS) {
        a.out[blockIdx.x * a.HS + threadIdx.x] = value / all;
    }
}

enum status endless_attention_v2_warps(const struct endless_attention *attention, void *workspace,
                                       device_stream stream, struct error *error) {
    (void)workspace;
    TRY(endless_attention_check(attention, error));
    const struct endless_attention &a = *attention;
    unsigned blocks = (unsigned)ceil_div(a.KVH * a.HS, THREADS), heads = (unsigned)a.NH;
    FOR_ELEMENT_TYPE(a.dtype, (store_kernel<E><<<blocks, THREADS, 0, stream>>>(a)));
    TRY(device_launched("store", error));
    FOR_ELEMENT_TYPE(a.dtype, (attention_kernel<E><<<heads, THREADS, 0, stream>>>(a)));
    return device_launched("attention", error);
}

/* x += a + b. Mapping: a thread has a channel. */
static __global__ void add_kernel(struct endless_add_norms p) {
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c < p.C) {
        p.x[c] += (p.a != NULL ? p.a[c] : 0.0f) + (p.b != NULL ? p.b[c] : 0.0f);
    }
}

/* out = norm(x). Mapping: one block, a thread has every THREADS-th channel. */
static __global__ void norm_kernel(struct endless_add_norms p, struct endless_norm norm) {
    float mean = 0.0f, squares = 0.0f;
    for (size_t c = threadIdx.x; c < p.C && p.layernorm; c += THREADS) {
        mean += p.x[c];
    }
    mean = block_sum<THREADS>(mean) / (float)p.C;
    for (size_t c = threadIdx.x; c < p.C; c += THREADS) {
        squares += (p.x[c] - mean) * (p.x[c] - mean);
    }
    float rstd = 1.0f / sqrtf(block_sum<THREADS>(squares) / (float)p.C + p.eps);
    for (size_t c = threadIdx.x; c < p.C; c += THREADS) {
        float bias = norm.bias != NULL ? norm.bias[c] : 0.0f;
        norm.out[c] = (p.x[c] - mean) * rstd * norm.weight[c] + bias;
    }
}

enum status endless_add_norms_v2_blocks(const struct endless_add_norms *add, device_stream stream,
                                        struct error *error) {
    TRY(endless_add_norms_check(add, error));
    if (add->a != NULL || add->b != NULL) {
        add_kernel<<<(unsigned)ceil_div(add->C, THREADS), THREADS, 0, stream>>>(*add);
        TRY(device_launched("add", error));
    }
    for (size_t i = 0; i < add->count; i++) {
        norm_kernel<<<1, THREADS, 0, stream>>>(*add, add->norms[i]);
        TRY(device_launched("norm", error));
    }
    return STATUS_OK;
}

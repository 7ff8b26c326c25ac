/**
 * @file kv_cache_v2_warp_rows.cu
 * @brief Step 2: a warp a row of weights, 16 bytes a lane; a block a query head.
 *
 * Changes since v1: the lanes of a warp read neighbouring pieces of one row and add their sums by
 * shuffles; the warp computes 1 / RMS together, not each thread alone. In attention eight warps
 * have every eighth key each, and are merged at the end.
 *
 * Why: a warp's request is 512 contiguous bytes, all of them used.
 *
 * What is left: a warp waits for its pieces before it loads the next ones, and the norm is a
 * separate pass over x.
 */
#include "solutions/09_kv_cache/steps/helpers.cuh"
#include "solutions/09_kv_cache/steps/ladder.h"

enum { THREADS = 256, WARPS = THREADS / 32 };

/* RMSNorm's 1 / RMS, by a warp; in every lane. */
static __device__ float rstd_of(const struct kv_linear &l) {
    float squares = 0.0f;
    for (size_t k = threadIdx.x % 32; k < l.K; k += 32) {
        squares += l.in[k] * l.in[k];
    }
    return norm_rstd(warp_sum(squares), l.K, l.eps);
}

/* The lane's share of a row's product with x * norm. */
template <typename E, bool VECTOR>
static __device__ float share_of_row(const E *row, const struct kv_linear &l) {
    constexpr int WIDE = VECTOR ? VECTOR_ELEMENTS<E> : 1;
    float sum = 0.0f;
    for (size_t k = threadIdx.x % 32 * WIDE; k < l.K; k += 32 * WIDE) {
        float values[VECTOR_ELEMENTS<E>];
        if (VECTOR) {
            unpack(*(const uint4 *)(row + k), values, E());
        } else {
            values[0] = to_float(row[k]);
        }
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            sum += values[j] * (l.norm != NULL ? l.in[k + j] * l.norm[k + j] : l.in[k + j]);
        }
    }
    return sum;
}

/* Grid: a warp a row. */
template <typename E, bool VECTOR>
static __global__ void __launch_bounds__(THREADS) linear_v2_kernel(struct kv_linear l) {
    size_t n = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (n >= l.N) {
        return;
    }
    float rstd = l.norm != NULL && l.K > 0 ? rstd_of(l) : 1.0f;
    float sum = warp_sum(share_of_row<E, VECTOR>((const E *)l.weight + n * l.K, l));
    if (threadIdx.x % 32 == 0) {
        l.out[n] = (l.residual != NULL ? l.residual[n] : 0.0f) + rstd * sum;
    }
}

enum status kv_linear_v2_warp_rows(const struct kv_linear *linear, device_stream stream,
                                   struct error *error) {
    TRY(kv_linear_check(linear, error));
    if (linear->N == 0) {
        return STATUS_OK; /* a grid without blocks cannot be launched */
    }
    unsigned blocks = (unsigned)ceil_div(linear->N, WARPS);
    if (linear_aligned(linear)) {
        FOR_ELEMENT_TYPE(linear->dtype,
                         (linear_v2_kernel<E, true><<<blocks, THREADS, 0, stream>>>(*linear)));
    } else {
        FOR_ELEMENT_TYPE(linear->dtype,
                         (linear_v2_kernel<E, false><<<blocks, THREADS, 0, stream>>>(*linear)));
    }
    return device_launched("linear_v2", error);
}

/* A warp's online softmax state. */
struct warp_softmax {
    float max, sum, values[KV_MAX_HS];
};

/* Online softmax over the warp's keys for query head blockIdx.x; a lane has every 32nd channel. */
template <typename E>
static __device__ void attend_keys(struct warp_softmax *state, const struct kv_attention &a,
                                   const float *q) {
    enum { MOST = KV_MAX_HS / 32 }; /* channels of a lane */
    int lane = threadIdx.x % 32, HS = (int)a.HS;
    size_t head = blockIdx.x / (a.NH / a.KVH) * a.HS;
    float scale = 1.0f / sqrtf((float)HS), max = -INFINITY, sum = 0.0f, out[MOST] = {};
    for (int s = threadIdx.x / 32; s <= *a.position; s += WARPS) {
        const E *k = (const E *)a.k + s * a.KVH * a.HS + head;
        const E *v = (const E *)a.v + s * a.KVH * a.HS + head;
        float score = 0.0f;
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            int c = lane + i * 32;
            score += c < HS ? q[blockIdx.x * a.HS + c] * to_float(k[c]) : 0.0f;
        }
        score = scale * warp_sum(score);
        float new_max = fmaxf(max, score);
        float rescale = expf(max - new_max), weight = expf(score - new_max);
        max = new_max;
        sum = sum * rescale + weight;
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            int c = lane + i * 32;
            out[i] = out[i] * rescale + (c < HS ? weight * to_float(v[c]) : 0.0f);
        }
    }
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        state->values[lane + i * 32] = out[i];
    }
    if (lane == 0) {
        state->max = max, state->sum = sum;
    }
}

/* Grid: a block a query head, a warp every eighth key. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    attention_v2_kernel(struct kv_attention a, const float *q) {
    __shared__ struct warp_softmax softmaxes[WARPS];
    attend_keys<E>(&softmaxes[threadIdx.x / 32], a, q);
    __syncthreads();
    float max = -INFINITY;
    for (int w = 0; w < WARPS; w++) {
        max = fmaxf(max, softmaxes[w].max);
    }
    for (size_t c = threadIdx.x; c < a.HS; c += THREADS) {
        float sum = 0.0f, value = 0.0f;
        for (int w = 0; w < WARPS; w++) {
            float share = expf(softmaxes[w].max - max);
            sum += share * softmaxes[w].sum;
            value += share * softmaxes[w].values[c];
        }
        a.out[blockIdx.x * a.HS + c] = value / sum;
    }
}

enum status kv_attend_heads(const struct kv_attention *attention, float *qkv, device_stream stream,
                            struct error *error) {
    TRY(kv_rotate_and_store(attention, qkv, stream, error));
    unsigned heads = (unsigned)attention->NH;
    FOR_ELEMENT_TYPE(attention->dtype,
                     (attention_v2_kernel<E><<<heads, THREADS, 0, stream>>>(*attention, qkv)));
    return device_launched("attention_v2", error);
}

enum status kv_attention_v2_warp_rows(const struct kv_attention *attention, void *workspace,
                                      device_stream stream, struct error *error) {
    TRY(kv_attention_check(attention, error));
    struct kv_linear product = qkv_product(attention, (float *)workspace);
    TRY(kv_linear_v2_warp_rows(&product, stream, error));
    return kv_attend_heads(attention, (float *)workspace, stream, error);
}

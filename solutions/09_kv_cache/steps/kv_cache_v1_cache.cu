/**
 * @file kv_cache_v1_cache.cu
 * @brief Step 1: a KV cache.
 *
 * Changes since the starter: k and v are computed for the new token alone and kept in the cache;
 * inputs are not kept. The kernels are the starter's: a thread a row of weights, a warp a
 * query head.
 *
 * Why: token n took n times the products of a token; a text of T tokens now takes O(T) products
 * instead of O(T^2). Attention stays O(n) for token n, because it reads n rows.
 *
 * What is left: neighbouring threads read neighbouring rows of weights, K elements apart, so every
 * request moves a sector of 32 bytes a thread and uses 2 or 4 of it at a time.
 */
#include "solutions/09_kv_cache/steps/helpers.cuh"
#include "solutions/09_kv_cache/steps/ladder.h"

enum { THREADS = 128 };

/* RMSNorm's 1 / RMS, by one thread. */
static __device__ float rstd_of(const float *x, size_t C, float eps) {
    float squares = 0.0f;
    for (size_t c = 0; c < C; c++) {
        squares += x[c] * x[c];
    }
    return norm_rstd(squares, C, eps);
}

/* Grid: thread n has row n. */
template <typename E> static __global__ void linear_v1_kernel(struct kv_linear l) {
    size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n >= l.N) {
        return;
    }
    const E *row = (const E *)l.weight + n * l.K;
    float sum = 0.0f, rstd = l.norm != NULL && l.K > 0 ? rstd_of(l.in, l.K, l.eps) : 1.0f;
    for (size_t k = 0; k < l.K; k++) {
        sum += to_float(row[k]) * (l.norm != NULL ? l.in[k] * rstd * l.norm[k] : l.in[k]);
    }
    l.out[n] = (l.residual != NULL ? l.residual[n] : 0.0f) + sum;
}

enum status kv_linear_v1_cache(const struct kv_linear *linear, device_stream stream,
                               struct error *error) {
    TRY(kv_linear_check(linear, error));
    if (linear->N == 0) {
        return STATUS_OK; /* a grid without blocks cannot be launched */
    }
    unsigned blocks = (unsigned)ceil_div(linear->N, THREADS);
    FOR_ELEMENT_TYPE(linear->dtype, (linear_v1_kernel<E><<<blocks, THREADS, 0, stream>>>(*linear)));
    return device_launched("linear_v1", error);
}

/* out = attention of one query head: online softmax, key by key. Grid: a block of one warp a query
 * head; a lane has every 32nd channel. */
template <typename E>
static __global__ void attention_v1_kernel(struct kv_attention a, const float *q) {
    enum { MOST = KV_MAX_HS / 32 }; /* channels of a lane */
    size_t h = blockIdx.x, stride = a.KVH * a.HS, head = h / (a.NH / a.KVH) * a.HS;
    const E *k = (const E *)a.k + head, *v = (const E *)a.v + head;
    float scale = 1.0f / sqrtf((float)a.HS), max = -INFINITY, sum = 0.0f, out[MOST] = {};
    for (int s = 0; s <= *a.position; s++, k += stride, v += stride) {
        float score = 0.0f;
        for (size_t c = threadIdx.x; c < a.HS; c += 32) {
            score += q[h * a.HS + c] * to_float(k[c]);
        }
        score = scale * warp_sum(score);
        float new_max = fmaxf(max, score);
        float rescale = expf(max - new_max), weight = expf(score - new_max);
        max = new_max;
        sum = sum * rescale + weight;
        for (size_t i = 0, c = threadIdx.x; i < MOST && c < a.HS; i++, c += 32) {
            out[i] = out[i] * rescale + weight * to_float(v[c]);
        }
    }
    for (size_t i = 0, c = threadIdx.x; i < MOST && c < a.HS; i++, c += 32) {
        a.out[h * a.HS + c] = out[i] / sum;
    }
}

enum status kv_attention_v1_cache(const struct kv_attention *attention, void *workspace,
                                  device_stream stream, struct error *error) {
    TRY(kv_attention_check(attention, error));
    float *qkv = (float *)workspace;
    struct kv_linear product = qkv_product(attention, qkv);
    TRY(kv_linear_v1_cache(&product, stream, error));
    TRY(kv_rotate_and_store(attention, qkv, stream, error));
    unsigned heads = (unsigned)attention->NH;
    FOR_ELEMENT_TYPE(attention->dtype,
                     (attention_v1_kernel<E><<<heads, 32, 0, stream>>>(*attention, qkv)));
    return device_launched("attention_v1", error);
}

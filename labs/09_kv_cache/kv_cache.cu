/**
 * @file kv_cache.cu
 * @brief Lab 09: YOUR FILE. Make what a decoder does for one token fast, and keep it right.
 *
 * What it must do is in kv_cache.h, how to go about it in README.md. Everything in
 * this file may change; kv_linear() and kv_attention() must stay. Check and measure
 * with
 *
 *     bazel test //grader:09_kv_cache_parity //grader:09_kv_cache_speedup
 *     bazel run //labs/09_kv_cache:bench
 */
#include "labs/09_kv_cache/kv_cache.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <limits.h>
#include <math.h>

#include "common/base/checked.h"

enum { THREADS = 128 };

/* From storage to arithmetic, and back with one rounding. */
static __device__ float value_of(float x) {
    return x;
}
static __device__ float value_of(__half x) {
    return __half2float(x);
}
static __device__ float value_of(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
static __device__ void store(float *to, float x) {
    *to = x;
}
static __device__ void store(__half *to, float x) {
    *to = __float2half_rn(x);
}
static __device__ void store(__nv_bfloat16 *to, float x) {
    *to = __float2bfloat16_rn(x);
}

/* 1 / RMS of x (C): 1 / sqrt(mean(x^2) + eps). */
static __device__ float norm_rstd(const float *x, size_t C, float eps) {
    float squares = 0.0f;
    for (size_t c = 0; c < C; c++) {
        squares += x[c] * x[c];
    }
    return 1.0f / sqrtf(squares / (float)C + eps);
}

/* The product of a row of weights (K) with y (K). */
template <typename E> static __device__ float dot(const E *row, const float *y, size_t K) {
    float sum = 0.0f;
    for (size_t k = 0; k < K; k++) {
        sum += value_of(row[k]) * y[k];
    }
    return sum;
}

/* A kernel for the type of the weights; `call` is a launch that names it E. */
#define FOR_TYPE(dtype, call)           \
    do {                                \
        if ((dtype) == NN_F32) {        \
            typedef float E;            \
            call;                       \
        } else if ((dtype) == NN_F16) { \
            typedef __half E;           \
            call;                       \
        } else {                        \
            typedef __nv_bfloat16 E;    \
            call;                       \
        }                               \
    } while (0)

/* ---- kv_linear() ---- */

/*
 * Step 1: a thread computes an output, with norm and residual. Right, and slow.

 *
 * Mapping: thread n of the grid has row n.
 */
template <typename E> static __global__ void linear_kernel(struct kv_linear l) {
    size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n >= l.N) {
        return;
    }
    const E *row = (const E *)l.weight + n * l.K;
    float sum = 0.0f;
    if (l.norm == NULL) {
        sum = dot(row, l.in, l.K);
    } else if (l.K > 0) {
        float rstd = norm_rstd(l.in, l.K, l.eps);
        for (size_t k = 0; k < l.K; k++) {
            sum += value_of(row[k]) * (l.in[k] * rstd * l.norm[k]);
        }
    }
    l.out[n] = l.residual != NULL ? l.residual[n] + sum : sum;
}

enum status kv_linear(const struct kv_linear *linear, device_stream stream, struct error *error) {
    TRY(kv_linear_check(linear, error));
    if (linear->N == 0) {
        return STATUS_OK; /* a grid without blocks cannot be launched */
    }
    unsigned blocks = (unsigned)ceil_div(linear->N, THREADS);
    FOR_TYPE(linear->dtype, (linear_kernel<E><<<blocks, THREADS, 0, stream>>>(*linear)));
    return device_launched("linear", error);
}

/* ---- kv_attention() ---- */

/* The workspace's layout. */
struct scratch {
    float *y; /* (C): the token's normed input */
    float *q; /* (NH, HS): its queries, rotated */
};

/* y = RMSNorm(x), and this position's row of the inputs = y. One thread a channel. */
static __global__ void norm_kernel(struct kv_attention a, struct scratch scratch) {
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c >= a.C) {
        return;
    }
    float y = a.x[c] * norm_rstd(a.x, a.C, a.eps) * a.norm[c];
    scratch.y[c] = y;
    if (a.inputs != NULL) {
        a.inputs[*a.position * a.C + c] = y;
    }
}

/* Rotates (first, second), pair i of a head, by position * theta^(-2i/HS). */
static __device__ void rotate(float *first, float *second, size_t i, size_t position,
                              const struct kv_attention &a) {
    double frequency = pow((double)a.theta, -2.0 * (double)i / (double)a.HS), sine, cosine;
    sincos((double)position * frequency, &sine, &cosine);
    double x = *first, y = *second;
    *first = (float)(x * cosine - y * sine);
    *second = (float)(x * sine + y * cosine);
}

/*
 * q of the token at *position; k and v of it and, from the stored inputs, of all before it.

 *
 * Mapping: a thread computes the two channels of a pair, for one row; blocks are (row, chunk of the
 pairs), the chunks innermost. Without inputs there is one row, the last.
 */
template <typename E>
static __global__ void project_kernel(struct kv_attention a, struct scratch scratch,
                                      unsigned blocks) {
    size_t pairs = a.HS / 2, position = (size_t)*a.position;
    size_t row = a.inputs != NULL ? blockIdx.x / blocks : position;
    size_t index = (size_t)(blockIdx.x % blocks) * THREADS + threadIdx.x;
    size_t head = index / pairs, i = index % pairs;
    bool query = head < a.NH, key = head >= a.NH && head < a.NH + a.KVH;
    if (row > position || head >= a.NH + 2 * a.KVH || (query && row < position)) {
        return;
    }
    const float *y = row < position ? a.inputs + row * a.C : scratch.y;
    size_t first = a.layout == NN_ROPE_INTERLEAVED ? 2 * i : i;
    size_t second = a.layout == NN_ROPE_INTERLEAVED ? first + 1 : i + pairs;
    const E *weight = (const E *)a.qkv + head * a.HS * a.C;
    float one = dot(weight + first * a.C, y, a.C), other = dot(weight + second * a.C, y, a.C);
    if (query || key) {
        rotate(&one, &other, i, row, a);
    }
    if (query) {
        scratch.q[head * a.HS + first] = one;
        scratch.q[head * a.HS + second] = other;
    } else {
        size_t channel = row * a.KVH * a.HS + (head - a.NH - (key ? 0 : a.KVH)) * a.HS;
        E *to = (E *)(key ? a.k : a.v) + channel;
        store(to + first, one);
        store(to + second, other);
    }
}

/* The sum over a warp's lanes, in every lane. */
static __device__ float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(~0u, x, step);
    }
    return x;
}

/*
 * out = attention of one query head: online softmax, key by key.

 *
 * Mapping: a warp is a block and has a head; a lane has every 32nd channel.
 */
template <typename E>
static __global__ void attention_kernel(struct kv_attention a, struct scratch scratch) {
    enum { MOST = KV_MAX_HS / 32 }; /* channels of a lane */
    size_t h = blockIdx.x, stride = a.KVH * a.HS, head = h / (a.NH / a.KVH) * a.HS;
    const E *k = (const E *)a.k + head, *v = (const E *)a.v + head;
    float scale = 1.0f / sqrtf((float)a.HS), max = -INFINITY, sum = 0.0f, out[MOST] = {};
    for (int s = 0; s <= *a.position; s++, k += stride, v += stride) {
        float score = 0.0f;
        for (size_t c = threadIdx.x; c < a.HS; c += 32) {
            score += scratch.q[h * a.HS + c] * value_of(k[c]);
        }
        score = scale * warp_sum(score);
        float new_max = fmaxf(max, score);
        float rescale = expf(max - new_max), weight = expf(score - new_max);
        max = new_max;
        sum = sum * rescale + weight;
        for (size_t i = 0, c = threadIdx.x; i < MOST && c < a.HS; i++, c += 32) {
            out[i] = out[i] * rescale + weight * value_of(v[c]);
        }
    }
    for (size_t i = 0, c = threadIdx.x; i < MOST && c < a.HS; i++, c += 32) {
        a.out[h * a.HS + c] = out[i] / sum;
    }
}

enum status kv_attention(const struct kv_attention *attention, void *workspace,
                         device_stream stream, struct error *error) {
    TRY(kv_attention_check(attention, error));
    const struct kv_attention &a = *attention;
    struct scratch scratch = {(float *)workspace, (float *)workspace + a.C};
    unsigned blocks = (unsigned)ceil_div((a.NH + 2 * a.KVH) * (a.HS / 2), THREADS);
    size_t rows = a.inputs != NULL ? a.longest : 1;
    if (rows * blocks > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "kv_attention: %zu rows of %zu heads are too many", rows,
                         a.NH + 2 * a.KVH);
    }
    norm_kernel<<<(unsigned)ceil_div(a.C, THREADS), THREADS, 0, stream>>>(a, scratch);
    TRY(device_launched("norm", error));
    unsigned grid = (unsigned)(rows * blocks);
    FOR_TYPE(a.dtype, (project_kernel<E><<<grid, THREADS, 0, stream>>>(a, scratch, blocks)));
    TRY(device_launched("project", error));
    FOR_TYPE(a.dtype, (attention_kernel<E><<<(unsigned)a.NH, 32, 0, stream>>>(a, scratch)));
    return device_launched("attention", error);
}

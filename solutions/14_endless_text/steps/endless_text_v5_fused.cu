/**
 * @file endless_text_v5_fused.cu
 * @brief Step v5: both additions and both norms in one launch.
 *
 * Changes since v4: x is read once and written once, and mean and rstd are computed once for both
 * norms, which differ in weight and bias alone. What is saved are launches, three to one in a model
 * with parallel residual: the bytes that they move, 160 KB at 4096 channels, take no time.
 *
 * A block has one row and nothing to overlap with, so its chain of latencies counts: mean and
 * squares are one reduction (Welford's, merged as by Chan), with one barrier, and up to 4096
 * channels their weights and biases are under way before it.
 *
 * Mapping: one block; a thread has four neighbouring channels of each 4 * blockDim.x. Up to PIECES
 * of these fours stay in registers from the sum to the norms; of longer rows x is read again.
 */
#include <stdint.h>

#include "common/cuda/dependent_launch.cuh"
#include "solutions/14_endless_text/steps/ladder.h"

enum { MOST_THREADS = 1024 };

/* Channels c .. c + 3; those at C and behind are 0, as is everything where `from` is NULL. */
template <bool VECTOR>
static __device__ __forceinline__ float4 load_four(const float *from, size_t c, size_t C) {
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (from == NULL || c >= C) {
        return x;
    }
    if (VECTOR) {
        return *(const float4 *)(from + c);
    }
    x.x = from[c];
    x.y = c + 1 < C ? from[c + 1] : 0.0f;
    x.z = c + 2 < C ? from[c + 2] : 0.0f;
    x.w = c + 3 < C ? from[c + 3] : 0.0f;
    return x;
}

template <bool VECTOR>
static __device__ __forceinline__ void store_four(float *to, float4 x, size_t c, size_t C) {
    const float four[] = {x.x, x.y, x.z, x.w};
    if (VECTOR && c < C) {
        *(float4 *)(to + c) = x;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (!VECTOR && c + i < C) {
            to[c + i] = four[i];
        }
    }
}

/* x += a + b for four channels, which are returned. */
template <bool VECTOR>
static __device__ __forceinline__ float4 add_four(const struct endless_add_norms &p, size_t c) {
    float4 x = load_four<VECTOR>(p.x, c, p.C), a = load_four<VECTOR>(p.a, c, p.C);
    float4 b = load_four<VECTOR>(p.b, c, p.C);
    x = make_float4(x.x + a.x + b.x, x.y + a.y + b.y, x.z + a.z + b.z, x.w + a.w + b.w);
    store_four<VECTOR>(p.x, x, c, p.C);
    return x;
}

/* Count, mean, and sum of (x - mean)^2 of some channels. */
struct moments {
    float count, mean, squares;
};

static __device__ __forceinline__ struct moments merge(struct moments a, struct moments b) {
    float count = a.count + b.count, apart = b.mean - a.mean;
    float share = count > 0.0f ? b.count / count : 0.0f;
    return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

static __device__ __forceinline__ struct moments of_four(float4 x, size_t c, size_t C) {
    const float four[] = {x.x, x.y, x.z, x.w};
    struct moments m = {c < C ? (float)min((size_t)4, C - c) : 0.0f, 0.0f, 0.0f};
    m.mean = m.count > 0.0f ? (x.x + x.y + x.z + x.w) / m.count : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float apart = c + i < C ? four[i] - m.mean : 0.0f;
        m.squares += apart * apart;
    }
    return m;
}

static __device__ __forceinline__ struct moments warp_merge(struct moments m) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        m = merge(m, {__shfl_xor_sync(~0u, m.count, step), __shfl_xor_sync(~0u, m.mean, step),
                      __shfl_xor_sync(~0u, m.squares, step)});
    }
    return m;
}

/* Of the whole block, in every thread. */
static __device__ __forceinline__ struct moments block_merge(struct moments m) {
    __shared__ struct moments of_warp[MOST_THREADS / 32];
    unsigned lane = threadIdx.x % 32;
    m = warp_merge(m);
    if (lane == 0) {
        of_warp[threadIdx.x / 32] = m;
    }
    __syncthreads();
    return warp_merge(lane < blockDim.x / 32 ? of_warp[lane] : moments{0.0f, 0.0f, 0.0f});
}

static __device__ __forceinline__ float4 normed(float4 x, float mean, float rstd, float4 w,
                                                float4 b) {
    return make_float4((x.x - mean) * rstd * w.x + b.x, (x.y - mean) * rstd * w.y + b.y,
                       (x.z - mean) * rstd * w.z + b.z, (x.w - mean) * rstd * w.w + b.w);
}

/* PIECES: 1, with weights loaded before the reduction; or 4. */
template <bool VECTOR, int PIECES>
static __global__ void __launch_bounds__(MOST_THREADS)
    add_norms_kernel(struct endless_add_norms p) {
    size_t first = 4 * threadIdx.x, step = 4 * blockDim.x;
    float4 kept[PIECES], weight[2], bias[2];
    struct moments m = {0.0f, 0.0f, 0.0f};
    dependent_launch_begin();
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        kept[i] = add_four<VECTOR>(p, first + i * step);
        m = merge(m, of_four(kept[i], first + i * step, p.C));
    }
#pragma unroll
    for (int n = 0; n < 2 && PIECES == 1; n++) {
        weight[n] = load_four<VECTOR>(n < (int)p.count ? p.norms[n].weight : NULL, first, p.C);
        bias[n] = load_four<VECTOR>(n < (int)p.count ? p.norms[n].bias : NULL, first, p.C);
    }
    for (size_t c = first + PIECES * step; c < p.C; c += step) {
        m = merge(m, of_four(add_four<VECTOR>(p, c), c, p.C));
    }
    m = block_merge(m);
    float mean = p.layernorm ? m.mean : 0.0f, variance = m.squares / (float)p.C;
    float rstd = 1.0f / sqrtf(variance + (p.layernorm ? 0.0f : m.mean * m.mean) + p.eps);
#pragma unroll
    for (int n = 0; n < 2; n++) {
        if (n >= (int)p.count) {
            break;
        }
        const struct endless_norm &norm = p.norms[n];
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            size_t c = first + i * step;
            float4 w = PIECES == 1 ? weight[n] : load_four<VECTOR>(norm.weight, c, p.C);
            float4 b = PIECES == 1 ? bias[n] : load_four<VECTOR>(norm.bias, c, p.C);
            store_four<VECTOR>(norm.out, normed(kept[i], mean, rstd, w, b), c, p.C);
        }
        for (size_t c = first + PIECES * step; c < p.C; c += step) {
            float4 x = load_four<VECTOR>(p.x, c, p.C), w = load_four<VECTOR>(norm.weight, c, p.C);
            float4 y = normed(x, mean, rstd, w, load_four<VECTOR>(norm.bias, c, p.C));
            store_four<VECTOR>(norm.out, y, c, p.C);
        }
    }
}

static bool aligned_16(const struct endless_add_norms *p) {
    uintptr_t all = (uintptr_t)p->x | (uintptr_t)p->a | (uintptr_t)p->b;
    for (size_t n = 0; n < p->count; n++) {
        const struct endless_norm *norm = &p->norms[n];
        all |= (uintptr_t)norm->weight | (uintptr_t)norm->bias | (uintptr_t)norm->out;
    }
    return all % 16 == 0 && p->C % 4 == 0;
}

enum status endless_add_norms_v5_fused(const struct endless_add_norms *add, device_stream stream,
                                       struct error *error) {
    TRY(endless_add_norms_check(add, error));
    size_t fours = (add->C + 3) / 4, threads = (fours + 31) / 32 * 32;
    dim3 one(1), block((unsigned)(threads < MOST_THREADS ? threads : MOST_THREADS));
    if (!aligned_16(add)) {
        launch_dependent<add_norms_kernel<false, 4>>(one, block, 0, stream, *add);
    } else if (fours <= MOST_THREADS) {
        launch_dependent<add_norms_kernel<true, 1>>(one, block, 0, stream, *add);
    } else {
        launch_dependent<add_norms_kernel<true, 4>>(one, block, 0, stream, *add);
    }
    return device_launched("add and norms", error);
}

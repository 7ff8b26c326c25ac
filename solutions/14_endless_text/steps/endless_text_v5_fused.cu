/**
 * @file endless_text_v5_fused.cu
 * @brief Step v5: both additions and both norms in one launch.
 *
 * Changes since v4: x is read once and written once, and mean and rstd are computed once for both
 * norms, which differ in weight and bias alone. What is saved are launches, three to one in a model
 * with parallel residual: the 40 KB that they move take no time.
 *
 * Mapping: one block; a thread has four neighbouring channels of each 4096. Up to PIECES * 4096
 * channels stay in registers from the sum to the norms; beyond that, x is read again.
 */
#include <stdint.h>

#include "common/cuda/block.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "solutions/14_endless_text/steps/ladder.h"

enum { MOST_THREADS = 1024, PIECES = 4 };

/* The channels of a thread from c on; those at C and behind are 0. */
template <bool VECTOR>
static __device__ __forceinline__ float4 load_four(const float *from, size_t c, size_t C) {
    if (from == NULL) {
        return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    if (VECTOR) {
        return c < C ? *(const float4 *)(from + c) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    return make_float4(c < C ? from[c] : 0.0f, c + 1 < C ? from[c + 1] : 0.0f,
                       c + 2 < C ? from[c + 2] : 0.0f, c + 3 < C ? from[c + 3] : 0.0f);
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

static __device__ __forceinline__ float4 add(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* Sum of (x - mean)^2 of the channels that there are. */
static __device__ __forceinline__ float squares_of(float4 x, float mean, size_t c, size_t C) {
    const float four[] = {x.x, x.y, x.z, x.w};
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float apart = c + i < C ? four[i] - mean : 0.0f;
        sum += apart * apart;
    }
    return sum;
}

template <bool VECTOR>
static __device__ __forceinline__ void store_norm(const struct endless_norm &norm, float4 x,
                                                  float mean, float rstd, size_t c, size_t C) {
    float4 w = load_four<VECTOR>(norm.weight, c, C), b = load_four<VECTOR>(norm.bias, c, C);
    float4 y = make_float4((x.x - mean) * rstd * w.x + b.x, (x.y - mean) * rstd * w.y + b.y,
                           (x.z - mean) * rstd * w.z + b.z, (x.w - mean) * rstd * w.w + b.w);
    store_four<VECTOR>(norm.out, y, c, C);
}

template <bool VECTOR>
static __global__ void __launch_bounds__(MOST_THREADS)
    add_norms_kernel(struct endless_add_norms p) {
    __shared__ float of_warp[MOST_THREADS / 32];
    size_t first = 4 * threadIdx.x, step = 4 * blockDim.x;
    float4 kept[PIECES];
    float sum = 0.0f, squares = 0.0f;
    dependent_launch_begin();
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        size_t c = first + i * step;
        kept[i] = add(load_four<VECTOR>(p.x, c, p.C),
                      add(load_four<VECTOR>(p.a, c, p.C), load_four<VECTOR>(p.b, c, p.C)));
        store_four<VECTOR>(p.x, kept[i], c, p.C);
        sum += kept[i].x + kept[i].y + kept[i].z + kept[i].w;
    }
    for (size_t c = first + PIECES * step; c < p.C; c += step) {
        float4 x = add(load_four<VECTOR>(p.x, c, p.C),
                       add(load_four<VECTOR>(p.a, c, p.C), load_four<VECTOR>(p.b, c, p.C)));
        store_four<VECTOR>(p.x, x, c, p.C);
        sum += x.x + x.y + x.z + x.w;
    }
    float mean = p.layernorm ? block_sum(sum, of_warp) / (float)p.C : 0.0f;
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        squares += squares_of(kept[i], mean, first + i * step, p.C);
    }
    for (size_t c = first + PIECES * step; c < p.C; c += step) {
        squares += squares_of(load_four<VECTOR>(p.x, c, p.C), mean, c, p.C);
    }
    float rstd = 1.0f / sqrtf(block_sum(squares, of_warp) / (float)p.C + p.eps);
    for (size_t n = 0; n < p.count; n++) {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            store_norm<VECTOR>(p.norms[n], kept[i], mean, rstd, first + i * step, p.C);
        }
        for (size_t c = first + PIECES * step; c < p.C; c += step) {
            store_norm<VECTOR>(p.norms[n], load_four<VECTOR>(p.x, c, p.C), mean, rstd, c, p.C);
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
    size_t lanes = (add->C + 3) / 4, threads = (lanes + 31) / 32 * 32;
    dim3 block((unsigned)(threads < MOST_THREADS ? threads : MOST_THREADS));
    if (aligned_16(add)) {
        launch_dependent<add_norms_kernel<true>>(dim3(1), block, 0, stream, *add);
    } else {
        launch_dependent<add_norms_kernel<false>>(dim3(1), block, 0, stream, *add);
    }
    return device_launched("add and norms", error);
}

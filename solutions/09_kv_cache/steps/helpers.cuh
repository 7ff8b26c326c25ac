/**
 * @file helpers.cuh
 * @brief Shared by several steps: loads, rotary embedding, and checks of alignment.
 */
#ifndef WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_HELPERS_CUH_
#define WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_HELPERS_CUH_

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/checked.h"
#include "common/cuda/block.cuh"
#include "common/cuda/convert.cuh"
#include "common/cuda/memory.cuh"
#include "labs/09_kv_cache/kv_cache.h"

/* COUNT floats, a multiple of 4, from a 16-byte aligned address. */
template <int COUNT>
static __device__ __forceinline__ void load_floats(float to[COUNT], const float *from) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        float4 four = *(const float4 *)(from + i);
        to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
}

/* RMSNorm's 1 / RMS from the sum of squares. */
static __device__ __forceinline__ float norm_rstd(float squares, size_t K, float eps) {
    return 1.0f / sqrtf(squares / (float)K + eps);
}

/* The two channels of a pair of rotary embedding. */
struct pair {
    int first, second;
};

static __device__ __forceinline__ struct pair pair_of(int i, const struct kv_attention &a) {
    int half = (int)a.HS / 2;
    return a.layout == NN_ROPE_INTERLEAVED ? pair{2 * i, 2 * i + 1} : pair{i, i + half};
}

/*
 * (cosine, sine) of pair i's angle, position * theta^(-2i/HS). In fp32 the angle of a late position
 has few digits left after the point, so whole rotations are subtracted in double.

 */
static __device__ __forceinline__ float2 angle_of(int i, int position, int HS, double log2_theta) {
    const double one_over_pi = 0.31830988618379067;
    double half_turns = position * exp2(-2.0 * i / HS * log2_theta) * one_over_pi;
    float2 angle;
    sincospif((float)(half_turns - 2.0 * rint(0.5 * half_turns)), &angle.y, &angle.x);
    return angle;
}

/* A pair's channels, rotated. */
static __device__ __forceinline__ float2 rotated(float first, float second, float2 angle) {
    return make_float2(first * angle.x - second * angle.y, first * angle.y + second * angle.x);
}

static inline bool aligned_16(const void *pointer) {
    return ((uintptr_t)pointer & 15) == 0;
}

/* Whether weights, input and norm can be read 16 bytes at a time. */
static inline bool linear_aligned(const struct kv_linear *l) {
    return l->K > 0 && l->K * nn_dtype_bytes(l->dtype) % 16 == 0 && aligned_16(l->weight) &&
           aligned_16(l->in) && aligned_16(l->norm);
}

/* kv_attention's product: q, k and v of a token, one after the other. */
static inline struct kv_linear qkv_product(const struct kv_attention *a, float *out) {
    struct kv_linear l = {};
    l.N = (a->NH + 2 * a->KVH) * a->HS;
    l.K = a->C;
    l.dtype = a->dtype;
    l.weight = a->qkv;
    l.in = a->x;
    l.norm = a->norm;
    l.eps = a->eps;
    l.out = out;
    return l;
}

#endif

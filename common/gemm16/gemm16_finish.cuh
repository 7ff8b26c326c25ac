/**
 * @file gemm16_finish.cuh
 * @brief What follows the sum: bias, activation, residual, and the one rounding. fp32 until then.
 */
#ifndef WARPBOOK_COMMON_GEMM16_GEMM16_FINISH_CUH_
#define WARPBOOK_COMMON_GEMM16_GEMM16_FINISH_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "common/gemm16/gemm16_parts.h"

/* Sixteen bytes of 16-bit elements. */
struct __align__(16) eight {
    unsigned x[4];
};

static __device__ __forceinline__ float to_float(__half x) {
    return __half2float(x);
}

static __device__ __forceinline__ float to_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}

static __device__ __forceinline__ void store_rounded(__half *to, float x) {
    *to = __float2half_rn(x);
}

static __device__ __forceinline__ void store_rounded(__nv_bfloat16 *to, float x) {
    *to = __float2bfloat16_rn(x);
}

/* Two neighbours, rounded; the first in the lower half. */
static __device__ __forceinline__ unsigned pack(float low, float high, __half) {
    __half2 both = __floats2half2_rn(low, high);
    return *(unsigned *)&both;
}

static __device__ __forceinline__ unsigned pack(float low, float high, __nv_bfloat16) {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(unsigned *)&both;
}

static __device__ __forceinline__ float2 unpack(unsigned both, __half) {
    return __half22float2(*(__half2 *)&both);
}

/* bf16 is the upper half of an fp32 number. */
static __device__ __forceinline__ float2 unpack(unsigned both, __nv_bfloat16) {
    return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u));
}

static __device__ __forceinline__ float gelu(float x) {
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

static __device__ __forceinline__ float gelu_tanh(float x) {
    float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + tanhf(inner));
}

/* e^-x may be infinite: the quotient is then 0. */
static __device__ __forceinline__ float silu(float x) {
    return x / (1.0f + __expf(-x));
}

/* COUNT numbers at once: one decision for all. `activation`: of enum nn_activation, or none. */
template <int COUNT>
static __device__ __forceinline__ void activate(float *x, int activation) {
#define EACH(expression)                \
    _Pragma("unroll")                   \
    for (int i = 0; i < COUNT; i++) {   \
        x[i] = (expression);            \
    }
    switch (activation) {
    case NN_GELU:
        EACH(gelu(x[i]));
        break;
    case NN_GELU_TANH:
        EACH(gelu_tanh(x[i]));
        break;
    case NN_SILU:
        EACH(silu(x[i]));
        break;
    case NN_TANH:
        EACH(tanhf(x[i]));
        break;
    case NN_RELU:
        EACH(x[i] < 0.0f ? 0.0f : x[i]); /* NaN stays */
        break;
    default:
        break;
    }
#undef EACH
}

/* Up to eight results of row m from column n on, by single elements: whatever the alignment. */
template <typename E>
static __device__ __noinline__ void finish_some(const struct gemm16_finish &f, float *x, size_t m,
                                                size_t n) {
    size_t at = m * f.N + n;
    int count = (int)(f.N - n < 8 ? f.N - n : 8);
    for (int i = 0; i < count && f.bias != NULL; i++) {
        x[i] += to_float(((const E *)f.bias)[n + i]);
    }
    activate<8>(x, f.activation);
    for (int i = 0; i < count; i++) {
        float y = x[i];
        if (f.residual != NULL) {
            y += to_float(((const E *)f.residual)[at + i]);
        }
        if (f.out_is_float) {
            ((float *)f.out)[at + i] = y;
        } else {
            store_rounded((E *)f.out + at + i, y);
        }
    }
}

template <typename E>
static __device__ __forceinline__ void add_eight(float *x, const E *values) {
    const struct eight v = *(const struct eight *)values;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 both = unpack(v.x[i], E());
        x[2 * i] += both.x;
        x[2 * i + 1] += both.y;
    }
}

/* Eight results of row m from column n, a multiple of 8, on: what of them is inside is stored. */
template <typename E>
static __device__ __forceinline__ void finish_eight(const struct gemm16_finish &f, float *x,
                                                    size_t m, size_t n) {
    if (m >= f.M || n >= f.N) {
        return;
    }
    if (!f.vector) {
        finish_some<E>(f, x, m, n);
        return;
    }
    size_t at = m * f.N + n;
    if (f.bias != NULL) {
        add_eight(x, (const E *)f.bias + n);
    }
    activate<8>(x, f.activation);
    if (f.residual != NULL) {
        add_eight(x, (const E *)f.residual + at);
    }
    if (f.out_is_float) {
        float4 *to = (float4 *)((float *)f.out + at);
        to[0] = make_float4(x[0], x[1], x[2], x[3]);
        to[1] = make_float4(x[4], x[5], x[6], x[7]);
        return;
    }
    struct eight rounded;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        rounded.x[i] = pack(x[2 * i], x[2 * i + 1], E());
    }
    *(struct eight *)((E *)f.out + at) = rounded;
}

#endif

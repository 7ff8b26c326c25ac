/**
 * @file gemm16_epilogue.cuh
 * @brief The epilogue: bias, activation and residual in fp32, then one rounding.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_EPILOGUE_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_EPILOGUE_CUH_

#include <stdint.h>

#include "common/cuda/convert.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

/* Sixteen bytes of 16-bit elements. */
struct __align__(16) eight {
    unsigned x[4];
};

/* 2^x, to 2 units in the last place; 0 below 2^-126. */
static __device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The smaller one of |x| and limit; NaN remains. */
static __device__ __forceinline__ float magnitude(float x, float limit) {
    float y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(fabsf(x)), "f"(limit));
    return y;
}

/*
 * x * Phi(x), to 6.4e-7. With a = |x| it is max(x, 0) - a Phi(-a), and the logarithm of Phi(-a) is
 * nearly a parabola: so Phi(-a) is 2 to a polynomial of a (minimax in a Phi(-a); it falls for ever,
 * so that large a need no case of their own). Nine operations, and of them one by the special
 * function unit, whose results take it longest: a quotient is another one.
 */
static __device__ __forceinline__ float gelu(float x) {
    float a = magnitude(x, 1e18f); /* an infinite x remains */
    float sum = fmaf(-4.733093128e-04f, a, 7.084557459e-03f);
    sum = fmaf(sum, a, -5.182738394e-02f);
    sum = fmaf(sum, a, -4.599924374e-01f);
    sum = fmaf(sum, a, -1.150787853f);
    sum = fmaf(sum, a, -1.000037622f);
    return fmaf(-a, power_of_two(sum), fmaxf(x, 0.0f));
}

/* x / (1 + e^-x). e^-x may be infinite: a quotient by 1e30 then stands for 0. */
static __device__ __forceinline__ float silu(float x) {
    return __fdividef(x, 1.0f + fminf(__expf(-x), 1e30f));
}

/* 0.5 x (1 + tanh y) = x / (1 + e^-2y), y = sqrt(2/pi) (x + 0.044715 x^3) */
static __device__ __forceinline__ float gelu_tanh(float x) {
    float inner = 0.79788456080286536f * fmaf(0.044715f * x * x, x, x);
    return __fdividef(x, 1.0f + fminf(__expf(-2.0f * inner), 1e30f));
}

/* COUNT numbers at once, so that they share one branch. `activation`: of enum nn_activation, or
 * none. */
template <int COUNT> static __device__ __forceinline__ void activate(float *x, int activation) {
#define EACH(expression)                                \
    _Pragma("unroll") for (int i = 0; i < COUNT; i++) { \
        x[i] = (expression);                            \
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
        EACH(x[i] < 0.0f ? 0.0f : x[i]); /* NaN remains NaN */
        break;
    default:
        break;
    }
#undef EACH
}

/* COUNT results of a SiLU gate, of twice as many sums: gate and value in turn. */
template <int COUNT> static __device__ __forceinline__ void gate_pairs(float *x) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        x[i] = silu(x[2 * i]) * x[2 * i + 1];
    }
}

/* An element of bias or residual. */
template <typename E>
static __device__ __forceinline__ float value_at(const void *values, size_t i, bool is_float) {
    return is_float ? ((const float *)values)[i] : to_float(((const E *)values)[i]);
}

/* Eight sums. Passed by value, as an address would put them into local memory, wherever the call
   stands. */
struct eight_sums {
    float x[8];
};

/* Up to eight results of row m from column n on, by single elements, for any alignment. */
template <typename E>
static __device__ __noinline__ void epilogue_scalar(struct gemm16_epilogue f,
                                                    struct eight_sums sums, size_t m, size_t n) {
    float *x = sums.x;
    size_t at = m * f.N + n;
    int count = (int)(f.N - n < 8 ? f.N - n : 8);
    for (int i = 0; i < count && f.bias != NULL; i++) {
        x[i] += value_at<E>(f.bias, n + i, f.bias_is_float);
    }
    if (f.gate) { /* columns n / 2 and up of out; count is even */
        gate_pairs<4>(x);
        at /= 2, count /= 2;
    }
    activate<8>(x, f.activation);
    for (int i = 0; i < count; i++) {
        float y = x[i];
        if (f.residual != NULL) {
            y += value_at<E>(f.residual, at + i, f.residual_is_float);
        }
        if (f.out_is_float) {
            ((float *)f.out)[at + i] = y;
        } else {
            store_rounded((E *)f.out + at + i, y);
        }
    }
}

/* Eight floats of shared memory. Lanes 4 to 7 of eight begin with the second half: no bank twice.
 */
static __device__ __forceinline__ void read_eight(float *x, const float *from) {
    int second = threadIdx.x / 4 % 2;
    float4 first = ((const float4 *)from)[second], other = ((const float4 *)from)[1 - second];
    float4 low = second ? other : first, high = second ? first : other;
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

/* x += eight elements of bias or residual. */
template <typename E>
static __device__ __forceinline__ void add_eight(float *x, const void *values, size_t at,
                                                 bool is_float) {
    if (is_float) {
        const float4 *from = (const float4 *)((const float *)values + at);
        float4 low = from[0], high = from[1];
        x[0] += low.x, x[1] += low.y, x[2] += low.z, x[3] += low.w;
        x[4] += high.x, x[5] += high.y, x[6] += high.z, x[7] += high.w;
        return;
    }
    const struct eight v = *(const struct eight *)((const E *)values + at);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 both = unpack(v.x[i], E());
        x[2 * i] += both.x;
        x[2 * i + 1] += both.y;
    }
}

/* Eight results of row m from column n on, a multiple of 8; stores those inside (M, N). */
template <typename E>
static __device__ __forceinline__ void epilogue_eight(const struct gemm16_epilogue &f, float *x,
                                                      size_t m, size_t n) {
    if (m >= f.M || n >= f.N) {
        return;
    }
    if (!f.vector) {
        const struct eight_sums sums = {{x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]}};
        epilogue_scalar<E>(f, sums, m, n);
        return;
    }
    size_t at = m * f.N + n;
    if (f.bias != NULL) {
        add_eight<E>(x, f.bias, n, f.bias_is_float);
    }
    if (f.gate) {
        gate_pairs<4>(x);
        if (f.out_is_float) {
            *(float4 *)((float *)f.out + at / 2) = make_float4(x[0], x[1], x[2], x[3]);
        } else {
            *(uint2 *)((E *)f.out + at / 2) =
                make_uint2(pack(x[0], x[1], E()), pack(x[2], x[3], E()));
        }
        return;
    }
    activate<8>(x, f.activation);
    if (f.residual != NULL) {
        add_eight<E>(x, f.residual, at, f.residual_is_float);
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

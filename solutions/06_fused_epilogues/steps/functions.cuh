/**
 * @file functions.cuh
 * @brief Activations for use inside of other kernels: few instructions, no branches.
 *
 * nn_activation()'s formulas with erff() and tanhf() cost 20 to 40 instructions an
 * element. In an epilogue that hardly shows; on the way into a matmul each element
 * passes once for every 128 columns of the result, and every instruction does.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_FUNCTIONS_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_FUNCTIONS_CUH_

#include "common/nn/nn.h"

/* 1 / x and 2^x in one instruction each, off by 2 units in the last place at most; 0 where the
   result is below 2^-126. */
static __device__ __forceinline__ float quick_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float quick_power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* f(x) = x. */
struct identity {
    __device__ __forceinline__ float operator()(float x) const {
        return x;
    }
};

/* max(x, 0), and NaN for NaN. */
static __device__ __forceinline__ float positive_part(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float y;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
    return y;
#else
    return x < 0.0f ? 0.0f : x;
#endif
}

/*
 * Exact GELU: x Phi(x) = max(x, 0) - |x| Phi(-|x|). For z >= 0, Phi(-z) = 2^P(z): its logarithm is
 * so smooth that P of degree 6 is enough. The coefficients are fitted from 0 to 6 so that the error
 * of Phi is smallest: 1.1e-7 in exact arithmetic. In fp32, with exactly rounded powers, GELU is off
 * by 1.9e-7 |x| at most. Beyond 8, where Phi(-z) is 6e-16, z stays 8: P would turn upwards. Ten
 * instructions.
 */
struct gelu {
    __device__ __forceinline__ float operator()(float x) const {
        float z = fminf(fabsf(x), 8.0f);
        float p = 1.9177767e-05f;
        p = p * z - 0.00065862626f;
        p = p * z + 0.007754464f;
        p = p * z - 0.052965455f;
        p = p * z - 0.45906022f;
        p = p * z - 1.1511221f;
        p = p * z - 0.9999997f;
        return positive_part(x) - z * quick_power(p);
    }
};

/* The four others are one formula: (scale x + shift) / (1 + 2^(x (linear + cubic x^2))) + last. */
struct sigmoid_like {
    float linear, cubic, scale, shift, last;

    __device__ __forceinline__ float operator()(float x) const {
        float power = quick_power(x * (linear + cubic * x * x));
        return (scale * x + shift) * quick_reciprocal(1.0f + power) + last;
    }
};

/* GELU's tanh form is x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), SiLU x sigmoid(x), tanh
   2 sigmoid(2x) - 1, and ReLU x times a sigmoid so steep that it is a step. */
static inline struct sigmoid_like sigmoid_like_of(enum nn_activation f) {
    const float LOG2_E = 1.44269504f, GELU_SLOPE = 1.59576912f;
    switch (f) {
    case NN_GELU_TANH:
        return {-LOG2_E * GELU_SLOPE, -LOG2_E * GELU_SLOPE * 0.044715f, 1.0f, 0.0f, 0.0f};
    case NN_SILU:
        return {-LOG2_E, 0.0f, 1.0f, 0.0f, 0.0f};
    case NN_TANH:
        return {-2.0f * LOG2_E, 0.0f, 0.0f, 2.0f, -1.0f};
    default:
        return {-1e30f, 0.0f, 1.0f, 0.0f, 0.0f};
    }
}

#endif

/**
 * @file functions.cuh
 * @brief Activations for use inside of other kernels: few instructions, no branches.
 *
 * nn_activation()'s formulas with erff() and tanhf() cost 20 to 40 instructions an
 * element. In an epilogue that hardly shows; on the way into a matmul, where each
 * element passes once for every 128 columns of the result, it is a fifth of the time.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_FUNCTIONS_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_FUNCTIONS_CUH_

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

/*
 * Exact GELU: x Phi(x) = max(x, 0) - |x| Phi(-|x|). For z >= 0, Phi(-z) = e^(-z^2/2) P(t) with
 * t = 1 / (1 + 0.28 z), the form of Abramowitz and Stegun 26.2.17; the coefficients are fitted so
 * that |z| times the error is smallest: 3.4e-9 in exact arithmetic. In fp32, with exactly rounded
 * powers and reciprocals, the result is off by 2.1e-7 |x| at most, from -8 to 8.
 */
struct gelu {
    __device__ __forceinline__ float operator()(float x) const {
        float z = fabsf(x), t = quick_reciprocal(1.0f + 0.28f * z);
        float p = -0.10755493f;
        p = p * t + 0.39699017f;
        p = p * t - 0.24851825f;
        p = p * t + 0.2781826f;
        p = p * t + 0.06379135f;
        p = p * t + 0.11710902f;
        float tail = p * t * quick_power(x * x * -0.72134752f);
        return fmaxf(x, 0.0f) - z * tail;
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

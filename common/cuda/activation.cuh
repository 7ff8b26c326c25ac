/**
 * @file activation.cuh
 * @brief The activations of enum nn_activation in fp32.
 *
 * Every compute capability; each thread for itself.
 */
#ifndef WARPBOOK_COMMON_CUDA_ACTIVATION_CUH_
#define WARPBOOK_COMMON_CUDA_ACTIVATION_CUH_

#include <math.h>

#include "common/nn/nn.h"

static __device__ __forceinline__ float silu(float x) {
    return x / (1.0f + expf(-x));
}

static __device__ __forceinline__ float activate(float x, enum nn_activation f) {
    const float root_half = 0.70710678f;      /* 1 / sqrt(2) */
    const float root_2_over_pi = 0.79788456f; /* sqrt(2 / pi) */
    switch (f) {
    case NN_GELU:
        return 0.5f * x * (1.0f + erff(x * root_half));
    case NN_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(root_2_over_pi * (x + 0.044715f * x * x * x)));
    case NN_SILU:
        return silu(x);
    case NN_TANH:
        return tanhf(x);
    default:
        return fmaxf(x, 0.0f);
    }
}

#endif

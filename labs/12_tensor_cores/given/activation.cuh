/**
 * @file activation.cuh
 * @brief f of lab 12's epilogue, given: one element, in fp32.
 */
#ifndef WARPBOOK_LABS_12_TENSOR_CORES_GIVEN_ACTIVATION_CUH_
#define WARPBOOK_LABS_12_TENSOR_CORES_GIVEN_ACTIVATION_CUH_

#include "common/nn/nn.h"

static __device__ __forceinline__ float gemm16_activation(float x, enum nn_activation f) {
    switch (f) {
    case NN_GELU:
        return 0.5f * x * erfcf(-0.70710678f * x);
    case NN_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case NN_SILU:
        return x / (1.0f + expf(-x));
    case NN_TANH:
        return tanhf(x);
    default:
        return x > 0.0f ? x : 0.0f;
    }
}

#endif

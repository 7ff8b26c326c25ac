/**
 * @file parts.cuh
 * @brief What several steps share: elements, the three operators in pieces, warp reductions.
 *
 * All three operators have one form: a first pass over the row finds its
 * centre, a second one its scale, then each element is finished alone.
 *
 *                 centre        spread of an element   scale
 *     LayerNorm   mean          (x - centre)^2         1 / sqrt(sum / C + eps)
 *     RMSNorm     -             x^2                    1 / sqrt(sum / C + eps)
 *     softmax     largest       e^(x - centre)         1 / sum
 *
 * Softmax's centre is kept times log2 e, rounded; an element's exponential is then
 * one multiply-add and a power of two. Any centre near the largest would do, so its
 * rounding costs nothing as long as both passes use the same.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_PARTS_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_PARTS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "common/cuda/convert.cuh"
#include "common/cuda/math.cuh"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

#define LOG2_E 1.4426950408889634f

/* The mask of a row, or NULL. */
template <int OP>
static __host__ __device__ __forceinline__ const uint8_t *mask_of(const struct rows_problem &p,
                                                                  size_t row) {
    if (OP != ROWS_SOFTMAX || p.mask == NULL) {
        return NULL;
    }
    return p.mask + row / p.rows_a_mask * p.C;
}

/* Element c of a row, -inf where the mask hides it. */
template <int OP, typename T>
static __device__ __forceinline__ float element(const T *x, const uint8_t *mask, size_t c) {
    return OP == ROWS_SOFTMAX && mask != NULL && mask[c] == 0 ? -INFINITY : to_float(x[c]);
}

/* e^x / 2^centre, for a centre of e^x's size or larger. */
static __device__ __forceinline__ float exponential(float x, float centre) {
    return exp2_approx(fmaf(x, LOG2_E, -centre));
}

/* RMSNorm needs no centre. */
template <int OP> inline constexpr bool HAS_CENTRE = OP != ROWS_RMSNORM;

template <int OP> static __device__ __forceinline__ float first_of_none() {
    return OP == ROWS_SOFTMAX ? -INFINITY : 0.0f;
}

/* Two elements, or two parts of a row, in the first pass. */
template <int OP> static __device__ __forceinline__ float first_of(float a, float b) {
    return OP == ROWS_SOFTMAX ? fmaxf(a, b) : a + b;
}

template <int OP> static __device__ __forceinline__ float centre_of(float first, size_t C) {
    if (OP == ROWS_SOFTMAX) {
        return first == -INFINITY ? 0.0f : first * LOG2_E;
    }
    return first / (float)C;
}

template <int OP> static __device__ __forceinline__ float spread_of(float x, float centre) {
    if (OP == ROWS_SOFTMAX) {
        return exponential(x, centre);
    }
    float d = OP == ROWS_LAYERNORM ? x - centre : x;
    return d * d;
}

template <int OP>
static __device__ __forceinline__ float scale_of(float spread, const struct rows_problem &p) {
    if (OP == ROWS_SOFTMAX) {
        return spread == 0.0f ? 0.0f : 1.0f / spread;
    }
    return 1.0f / sqrtf(spread / (float)p.C + p.eps);
}

template <int OP>
static __device__ __forceinline__ float finish(float x, float centre, float scale, float weight,
                                               float bias) {
    if (OP == ROWS_SOFTMAX) {
        return exponential(x, centre) * scale;
    }
    return OP == ROWS_LAYERNORM ? (x - centre) * scale * weight + bias : x * scale * weight;
}

/* The same with weight and bias of column c from memory. */
template <int OP, typename T>
static __device__ __forceinline__ float finish_at(const struct rows_problem &p, size_t c, float x,
                                                  float centre, float scale) {
    float weight = OP != ROWS_SOFTMAX ? to_float(((const T *)p.weight)[c]) : 0.0f;
    float bias = OP == ROWS_LAYERNORM ? to_float(((const T *)p.bias)[c]) : 0.0f;
    return finish<OP>(x, centre, scale, weight, bias);
}

/* Calls launch(op, element) with the operator as a constant and an element of the type. */
template <int OP, typename LAUNCH>
static inline void with_type(const struct rows_problem &p, LAUNCH launch) {
    std::integral_constant<int, OP> op;
    if (p.type == NN_F32) {
        launch(op, float());
    } else if (p.type == NN_F16) {
        launch(op, __half());
    } else {
        launch(op, __nv_bfloat16());
    }
}

template <typename LAUNCH>
static inline void with_op_and_type(const struct rows_problem &p, LAUNCH launch) {
    if (p.op == ROWS_LAYERNORM) {
        with_type<ROWS_LAYERNORM>(p, launch);
    } else if (p.op == ROWS_RMSNORM) {
        with_type<ROWS_RMSNORM>(p, launch);
    } else {
        with_type<ROWS_SOFTMAX>(p, launch);
    }
}

#endif

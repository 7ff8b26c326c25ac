/**
 * @file operators.cuh
 * @brief Shared by the steps: elements, and the three operators in one common form.
 *
 * A first pass over the row finds its mean or max, a second one its rstd or reciprocal sum; then
 * each element is normalised alone.
 *
 *                 mean_or_max   second sum over      rstd_or_rcp
 *     LayerNorm   mean          (x - mean)^2         1 / sqrt(sum / C + eps)
 *     RMSNorm     -             x^2                  1 / sqrt(sum / C + eps)
 *     softmax     max           e^(x - max)          1 / sum
 *
 * Softmax's max is kept times log2 e, rounded; an element's exponential is then
 * one multiply-add and a power of two. Any value near the max would do, so its
 * rounding costs nothing as long as both passes use the same.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_OPERATORS_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_OPERATORS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "common/cuda/convert.cuh"
#include "common/cuda/math.cuh"
#include "solutions/05_layernorm_softmax/steps/ladder.h"

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

/* Element c of a row, -inf where it is masked. */
template <int OP, typename T>
static __device__ __forceinline__ float element(const T *x, const uint8_t *mask, size_t c) {
    return OP == ROWS_SOFTMAX && mask != NULL && mask[c] == 0 ? -INFINITY : to_float(x[c]);
}

/* e^x / 2^max, for a max of e^x's size or larger. */
static __device__ __forceinline__ float exponential(float x, float mean_or_max) {
    return exp2_approx(fmaf(x, LOG2_E, -mean_or_max));
}

/* RMSNorm needs neither. */
template <int OP> inline constexpr bool HAS_MEAN_OR_MAX = OP != ROWS_RMSNORM;

template <int OP> static __device__ __forceinline__ float add_or_max_identity() {
    return OP == ROWS_SOFTMAX ? -INFINITY : 0.0f;
}

/* Two elements, or the sums or maxima of two parts of a row, in the first pass. */
template <int OP> static __device__ __forceinline__ float add_or_max(float a, float b) {
    return OP == ROWS_SOFTMAX ? fmaxf(a, b) : a + b;
}

template <int OP>
static __device__ __forceinline__ float mean_or_max_of(float sum_or_max, size_t C) {
    if (OP == ROWS_SOFTMAX) {
        return sum_or_max == -INFINITY ? 0.0f : sum_or_max * LOG2_E;
    }
    return sum_or_max / (float)C;
}

template <int OP>
static __device__ __forceinline__ float square_or_exp(float x, float mean_or_max) {
    if (OP == ROWS_SOFTMAX) {
        return exponential(x, mean_or_max);
    }
    float d = OP == ROWS_LAYERNORM ? x - mean_or_max : x;
    return d * d;
}

template <int OP>
static __device__ __forceinline__ float rstd_or_rcp_of(float sum, const struct rows_problem &p) {
    if (OP == ROWS_SOFTMAX) {
        return sum == 0.0f ? 0.0f : 1.0f / sum;
    }
    return 1.0f / sqrtf(sum / (float)p.C + p.eps);
}

template <int OP>
static __device__ __forceinline__ float normalise(float x, float mean_or_max, float rstd_or_rcp,
                                                  float weight, float bias) {
    if (OP == ROWS_SOFTMAX) {
        return exponential(x, mean_or_max) * rstd_or_rcp;
    }
    return OP == ROWS_LAYERNORM ? (x - mean_or_max) * rstd_or_rcp * weight + bias
                                : x * rstd_or_rcp * weight;
}

/* The same with weight and bias of column c from memory. */
template <int OP, typename T>
static __device__ __forceinline__ float normalise_at(const struct rows_problem &p, size_t c,
                                                     float x, float mean_or_max,
                                                     float rstd_or_rcp) {
    float weight = OP != ROWS_SOFTMAX ? to_float(((const T *)p.weight)[c]) : 0.0f;
    float bias = OP == ROWS_LAYERNORM ? to_float(((const T *)p.bias)[c]) : 0.0f;
    return normalise<OP>(x, mean_or_max, rstd_or_rcp, weight, bias);
}

/* Calls launch(op, element) with the operator as a constant and an element of the type. */
template <int OP, typename LAUNCH>
static inline void with_type(const struct rows_problem &p, LAUNCH launch) {
    std::integral_constant<int, OP> op;
    FOR_ELEMENT_TYPE(p.type, launch(op, E()));
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

/* Calls launch(grid, op, element) for a grid-stride loop of blocks with `rows` rows each. */
template <typename LAUNCH>
static inline enum status launch_rows(const char *name, const struct rows_problem &p, size_t rows,
                                      struct error *error, LAUNCH launch) {
    const size_t most = (size_t)1 << 20;
    bool empty;
    TRY(rows_check(&p, &empty, error));
    if (empty) {
        return STATUS_OK;
    }
    size_t blocks = (p.rows + rows - 1) / rows;
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    with_op_and_type(p, [&](auto op, auto t) { launch(grid, op, t); });
    return device_launched(name, error);
}

#endif

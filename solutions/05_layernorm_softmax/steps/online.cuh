/**
 * @file online.cuh
 * @brief Statistics of a part of a row in one pass, and the merge of two parts.
 *
 * LayerNorm: count, mean and M2 = sum of (x - mean)^2. One more element is
 * Welford's step (1962), the merge of two parts Chan's formula (Chan, Golub,
 * LeVeque 1979). Neither subtracts two large numbers to get a small one, as
 * E[x^2] - mean^2 does. Softmax: the running max, and the running sum of
 * e^(x - max), which is rescaled when the max grows (online softmax, Milakov,
 * Gimelshein 2018). The max is kept times log2 e here.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_ONLINE_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_ONLINE_CUH_

#include "solutions/05_layernorm_softmax/steps/operators.cuh"

struct row_stats {
    float count;       /* LayerNorm only */
    float mean_or_max; /* mean, or max times log2 e */
    float sum;         /* M2, sum of squares, or sum of exponentials */
};

template <int OP> static __device__ __forceinline__ struct row_stats empty_stats() {
    return {0.0f, add_or_max_identity<OP>(), 0.0f};
}

/* Chan's formula. A part may be empty. */
static __device__ __forceinline__ struct row_stats merge_moments(struct row_stats a,
                                                                 struct row_stats b) {
    float count = a.count + b.count;
    float share = count > 0.0f ? __fdividef(b.count, count) : 0.0f;
    float d = b.mean_or_max - a.mean_or_max;
    return {count, fmaf(d, share, a.mean_or_max), a.sum + b.sum + d * d * a.count * share};
}

/* A part that is all masked has the max -inf and the sum 0. */
static __device__ __forceinline__ struct row_stats merge_exponentials(struct row_stats a,
                                                                      struct row_stats b) {
    float largest = fmaxf(a.mean_or_max, b.mean_or_max);
    float from = largest == -INFINITY ? 0.0f : largest;
    return {0.0f, largest,
            a.sum * exp2_approx(a.mean_or_max - from) + b.sum * exp2_approx(b.mean_or_max - from)};
}

template <int OP>
static __device__ __forceinline__ struct row_stats merge(struct row_stats a, struct row_stats b) {
    if (OP == ROWS_LAYERNORM) {
        return merge_moments(a, b);
    }
    if (OP == ROWS_SOFTMAX) {
        return merge_exponentials(a, b);
    }
    return {0.0f, 0.0f, a.sum + b.sum};
}

/* Adds one element. */
template <int OP>
static __device__ __forceinline__ struct row_stats add(struct row_stats a, float x) {
    if (OP == ROWS_LAYERNORM) {
        float count = a.count + 1.0f, d = x - a.mean_or_max;
        float mean = a.mean_or_max + __fdividef(d, count);
        return {count, mean, fmaf(d, x - mean, a.sum)};
    }
    if (OP == ROWS_SOFTMAX) {
        float largest = fmaxf(a.mean_or_max, x * LOG2_E),
              from = largest == -INFINITY ? 0.0f : largest;
        float own = exponential(x, from);
        return {0.0f, largest, fmaf(a.sum, exp2_approx(a.mean_or_max - from), own)};
    }
    return {0.0f, 0.0f, fmaf(x, x, a.sum)};
}

/* Merges the statistics of GROUP neighbouring lanes, in each of them. */
template <int OP, int GROUP>
static __device__ __forceinline__ struct row_stats lanes_merge(struct row_stats a) {
#pragma unroll
    for (int offset = GROUP / 2; offset > 0; offset /= 2) {
        struct row_stats b = a;
        if (OP == ROWS_LAYERNORM) {
            b.count = __shfl_xor_sync(0xffffffffu, a.count, offset);
        }
        if (HAS_MEAN_OR_MAX<OP>) {
            b.mean_or_max = __shfl_xor_sync(0xffffffffu, a.mean_or_max, offset);
        }
        b.sum = __shfl_xor_sync(0xffffffffu, a.sum, offset);
        a = merge<OP>(a, b);
    }
    return a;
}

/* Of a whole row. */
template <int OP> static __device__ __forceinline__ float stats_mean_or_max(struct row_stats a) {
    return OP == ROWS_SOFTMAX && a.mean_or_max == -INFINITY ? 0.0f : a.mean_or_max;
}

template <int OP>
static __device__ __forceinline__ float stats_rstd_or_rcp(struct row_stats a,
                                                          const struct rows_problem &p) {
    return rstd_or_rcp_of<OP>(a.sum, p);
}

#endif

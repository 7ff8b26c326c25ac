/**
 * @file online.cuh
 * @brief What is known of a part of a row after one look at it, and how two parts become one.
 *
 * LayerNorm: count, mean and M2 = sum of (x - mean)^2. One element more is
 * Welford's step (1962), two parts together are Chan's formula (Chan, Golub,
 * LeVeque 1979). Neither subtracts two large numbers to get a small one, as
 * E[x^2] - mean^2 does. Softmax: the largest, and the sum of e^(x - largest);
 * when a larger one comes, the sum is rescaled (Milakov, Gimelshein 2018). The
 * largest is kept times log2 e here.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_ONLINE_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_ONLINE_CUH_

#include "solutions/05_layernorm_softmax/steps/parts.cuh"

struct part {
    float count;  /* LayerNorm only */
    float centre; /* mean, or the largest times log2 e */
    float spread; /* M2, sum of squares, or sum of exponentials */
};

template <int OP> static __device__ __forceinline__ struct part part_of_none() {
    return {0.0f, first_of_none<OP>(), 0.0f};
}

/* Chan's formula. A part may be empty. */
static __device__ __forceinline__ struct part merge_moments(struct part a, struct part b) {
    float count = a.count + b.count;
    float share = count > 0.0f ? __fdividef(b.count, count) : 0.0f;
    float d = b.centre - a.centre;
    return {count, fmaf(d, share, a.centre), a.spread + b.spread + d * d * a.count * share};
}

/* A part of which nothing is seen has the centre -inf and the spread 0. */
static __device__ __forceinline__ struct part merge_exponentials(struct part a, struct part b) {
    float largest = fmaxf(a.centre, b.centre);
    float from = largest == -INFINITY ? 0.0f : largest;
    return {0.0f, largest,
            a.spread * exp2_approx(a.centre - from) + b.spread * exp2_approx(b.centre - from)};
}

template <int OP>
static __device__ __forceinline__ struct part merge(struct part a, struct part b) {
    if (OP == ROWS_LAYERNORM) {
        return merge_moments(a, b);
    }
    if (OP == ROWS_SOFTMAX) {
        return merge_exponentials(a, b);
    }
    return {0.0f, 0.0f, a.spread + b.spread};
}

/* One element more. */
template <int OP> static __device__ __forceinline__ struct part add(struct part a, float x) {
    if (OP == ROWS_LAYERNORM) {
        float count = a.count + 1.0f, d = x - a.centre;
        float mean = a.centre + __fdividef(d, count);
        return {count, mean, fmaf(d, x - mean, a.spread)};
    }
    if (OP == ROWS_SOFTMAX) {
        float largest = fmaxf(a.centre, x * LOG2_E), from = largest == -INFINITY ? 0.0f : largest;
        float own = exponential(x, from);
        return {0.0f, largest, fmaf(a.spread, exp2_approx(a.centre - from), own)};
    }
    return {0.0f, 0.0f, fmaf(x, x, a.spread)};
}

/* Of GROUP neighbouring lanes, in each of them. */
template <int OP, int GROUP>
static __device__ __forceinline__ struct part lanes_merge(struct part a) {
#pragma unroll
    for (int offset = GROUP / 2; offset > 0; offset /= 2) {
        struct part b = a;
        if (OP == ROWS_LAYERNORM) {
            b.count = __shfl_xor_sync(0xffffffffu, a.count, offset);
        }
        if (HAS_CENTRE<OP>) {
            b.centre = __shfl_xor_sync(0xffffffffu, a.centre, offset);
        }
        b.spread = __shfl_xor_sync(0xffffffffu, a.spread, offset);
        a = merge<OP>(a, b);
    }
    return a;
}

/* Centre and scale of a whole row. */
template <int OP> static __device__ __forceinline__ float part_centre(struct part a) {
    return OP == ROWS_SOFTMAX && a.centre == -INFINITY ? 0.0f : a.centre;
}

template <int OP>
static __device__ __forceinline__ float part_scale(struct part a, const struct rows_problem &p) {
    return scale_of<OP>(a.spread, p);
}

#endif

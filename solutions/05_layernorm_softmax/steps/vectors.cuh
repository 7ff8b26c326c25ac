/**
 * @file vectors.cuh
 * @brief A row as 16-byte vectors, for any length and any alignment.
 *
 * Vector i of a row are the 16 aligned bytes that hold columns first ..
 * first + LANES - 1, with first = i * LANES - shift. In a row that starts past a
 * 16-byte boundary (with an odd C three of four rows do) vector 0 lacks the
 * elements of that shift, and the last one others. Such vectors are loaded and
 * stored element by element, all others 16 bytes at a time. With ALIGNED there
 * are none, and the compiler omits that code.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_VECTORS_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_VECTORS_CUH_

#include "common/cuda/warp.cuh"
#include "solutions/05_layernorm_softmax/steps/operators.cuh"

/* The first pass's operator over GROUP neighbouring lanes, in each of them. */
template <int OP> struct add_or_max_operator {
    static __device__ __forceinline__ float apply(float a, float b) {
        return add_or_max<OP>(a, b);
    }
};

template <int OP, int GROUP> static __device__ __forceinline__ float warp_add_or_max(float x) {
    return warp_reduce<add_or_max_operator<OP>, GROUP>(x);
}

/* One row of a problem. */
template <typename T> struct row_view {
    const T *x;
    T *y;
    const uint8_t *mask; /* NULL: nothing is masked */
    int C;               /* at most ROWS_MAX_C */
    int shift;           /* elements between a 16-byte boundary and x; 0 where ALIGNED */
};

template <int OP, typename T, bool ALIGNED>
static __device__ __forceinline__ row_view<T> view_row(const struct rows_problem &p, size_t row) {
    row_view<T> view = {(const T *)p.in + row * p.C, (T *)p.out + row * p.C, mask_of<OP>(p, row),
                        (int)p.C, 0};
    if (!ALIGNED) {
        view.shift = (int)((uintptr_t)view.x % 16 / sizeof(T));
    }
    return view;
}

/* Whether all elements of the vector that begins at column `first` are in the row. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ bool is_whole(const row_view<T> &view, int first) {
    return ALIGNED || (first >= 0 && first + VECTOR_ELEMENTS<T> <= view.C);
}

/* Whether element e of that vector is. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ bool is_inside(const row_view<T> &view, int first, int e) {
    return ALIGNED || (unsigned)(first + e) < (unsigned)view.C;
}

/* LANES bytes of a mask that is aligned to as many. */
template <int COUNT>
static __device__ __forceinline__ void read_mask(const uint8_t *from, uint8_t (&seen)[COUNT]) {
    if constexpr (COUNT == 4) {
        unsigned word = *(const unsigned *)from;
        memcpy(seen, &word, sizeof word);
    } else {
        uint2 words = *(const uint2 *)from;
        memcpy(seen, &words, sizeof words);
    }
}

/* -inf for masked elements; -inf has a bit pattern in every type, so nothing is rounded. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ uint4 apply_mask(const row_view<T> view, int first, uint4 bits) {
    float x[VECTOR_ELEMENTS<T>];
    uint8_t seen[VECTOR_ELEMENTS<T>];
    unpack(bits, x, T());
    if constexpr (ALIGNED) {
        read_mask(view.mask + first, seen);
    }
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
        bool inside = is_inside<T, ALIGNED>(view, first, e);
        bool shown = ALIGNED ? seen[e] != 0 : inside && view.mask[first + e] != 0;
        x[e] = shown ? x[e] : -INFINITY;
    }
    return pack(x, T());
}

/* A vector with missing elements; these are 0, for softmax -inf. */
template <int OP, typename T>
static __device__ __noinline__ uint4 load_elements(const row_view<T> view, int first) {
    float x[VECTOR_ELEMENTS<T>];
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
        bool inside = is_inside<T, false>(view, first, e);
        x[e] = inside ? to_float(view.x[first + e]) : add_or_max_identity<OP>();
    }
    return pack(x, T());
}

/* A plain load: __ldcs() and other hints to drop the line early cost 4% on an H200. */
template <int OP, typename T, bool ALIGNED>
static __device__ __forceinline__ uint4 load_vector(const row_view<T> &view, int i) {
    int first = i * VECTOR_ELEMENTS<T> - view.shift;
    uint4 bits;
    if (is_whole<T, ALIGNED>(view, first)) {
        bits = *(const uint4 *)(view.x + first);
    } else {
        bits = load_elements<OP>(view, first);
    }
    return bits;
}

template <typename T>
static __device__ __noinline__ void store_elements(const row_view<T> view, int first, uint4 bits) {
    float x[VECTOR_ELEMENTS<T>];
    unpack(bits, x, T());
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
        if (is_inside<T, false>(view, first, e)) {
            store_rounded(view.y + first + e, x[e]);
        }
    }
}

/* out may have another alignment than in: then none of its vectors is aligned. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ void store_vector(const row_view<T> &view, int first,
                                                    uint4 bits) {
    if (is_whole<T, ALIGNED>(view, first) && (ALIGNED || (uintptr_t)(view.y + first) % 16 == 0)) {
        *(uint4 *)(view.y + first) = bits;
    } else {
        store_elements(view, first, bits);
    }
}

/* Weights (or biases) of a vector; 0 where there are none. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ void load_weights(const row_view<T> &view, const T *weights,
                                                    int first, float (&w)[VECTOR_ELEMENTS<T>]) {
    if constexpr (ALIGNED) {
        unpack(__ldg((const uint4 *)(weights + first)), w, T());
    } else {
#pragma unroll
        for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
            w[e] = is_inside<T, false>(view, first, e) ? to_float(weights[first + e]) : 0.0f;
        }
    }
}

template <int OP, typename T>
static __device__ __forceinline__ uint4 normalise_elements(
    uint4 bits, float mean_or_max, float rstd_or_rcp, const float (&weight)[VECTOR_ELEMENTS<T>],
    const float (&bias)[VECTOR_ELEMENTS<T>]) {
    float x[VECTOR_ELEMENTS<T>];
    unpack(bits, x, T());
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
        x[e] = normalise<OP>(x[e], mean_or_max, rstd_or_rcp, weight[e], bias[e]);
    }
    return pack(x, T());
}

/* Normalises and stores vector i. */
template <int OP, typename T, bool ALIGNED>
static __device__ __forceinline__ void normalise_vector(const struct rows_problem &p,
                                                        const row_view<T> &view, int i, uint4 bits,
                                                        float mean_or_max, float rstd_or_rcp) {
    int first = i * VECTOR_ELEMENTS<T> - view.shift;
    float weight[VECTOR_ELEMENTS<T>] = {}, bias[VECTOR_ELEMENTS<T>] = {};
    if (OP != ROWS_SOFTMAX) {
        load_weights<T, ALIGNED>(view, (const T *)p.weight, first, weight);
    }
    if (OP == ROWS_LAYERNORM) {
        load_weights<T, ALIGNED>(view, (const T *)p.bias, first, bias);
    }
    store_vector<T, ALIGNED>(
        view, first, normalise_elements<OP, T>(bits, mean_or_max, rstd_or_rcp, weight, bias));
}

/* With 1 / C, which is known before the row arrives: no division is left after it. */
template <int OP>
static __device__ __forceinline__ float row_mean_or_max(float sum_or_max, float share) {
    return OP == ROWS_SOFTMAX ? mean_or_max_of<OP>(sum_or_max, 1) : sum_or_max * share;
}

template <int OP>
static __device__ __forceinline__ float row_rstd_or_rcp(float sum, float share, float eps) {
    if (OP == ROWS_SOFTMAX) {
        return sum == 0.0f ? 0.0f : __fdividef(1.0f, sum);
    }
    return rsqrtf(fmaf(sum, share, eps));
}

/* Adds a vector in the first pass. Missing elements add nothing. */
template <int OP, typename T>
static __device__ __forceinline__ float vector_add_or_max(uint4 bits, float sum_or_max) {
    float x[VECTOR_ELEMENTS<T>];
    unpack(bits, x, T());
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
        sum_or_max = add_or_max<OP>(sum_or_max, x[e]);
    }
    return sum_or_max;
}

/* Adds a vector in the second pass, where LayerNorm's missing elements would add (0 - mean)^2. */
template <int OP, typename T, bool ALIGNED>
static __device__ __forceinline__ float vector_squares_or_exps(const row_view<T> &view, int i,
                                                               uint4 bits, float mean_or_max) {
    float x[VECTOR_ELEMENTS<T>], sum = 0.0f;
    unpack(bits, x, T());
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
        bool counts = OP != ROWS_LAYERNORM ||
                      is_inside<T, ALIGNED>(view, i * VECTOR_ELEMENTS<T> - view.shift, e);
        sum += counts ? square_or_exp<OP>(x[e], mean_or_max) : 0.0f;
    }
    return sum;
}

/* Whether every row of a problem, its output, its weights and its mask allow whole vectors. */
static inline bool is_aligned(const struct rows_problem &p) {
    size_t size = p.type == NN_F32 ? 4 : 2, lanes = 16 / size;
    uintptr_t bits = (uintptr_t)p.in | (uintptr_t)p.out;
    if (p.op != ROWS_SOFTMAX) {
        bits |= (uintptr_t)p.weight;
    }
    if (p.op == ROWS_LAYERNORM) {
        bits |= (uintptr_t)p.bias;
    }
    bool mask = p.op != ROWS_SOFTMAX || p.mask == NULL || (uintptr_t)p.mask % lanes == 0;
    return bits % 16 == 0 && p.C % lanes == 0 && mask;
}

/* Vectors that a row touches at most. */
static inline size_t vectors_of(const struct rows_problem &p) {
    size_t lanes = p.type == NN_F32 ? 4 : 8;
    return is_aligned(p) ? p.C / lanes : (p.C + lanes - 2) / lanes + 1;
}

#endif

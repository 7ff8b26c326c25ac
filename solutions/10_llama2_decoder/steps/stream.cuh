/**
 * @file stream.cuh
 * @brief Products with one vector: a warp streams through a row of weights, or through row n of the
 *        gate and row n of up side by side, whose product silu(gate) * up is written once.
 *
 * Memory is busy if enough bytes are in flight: a lane loads STREAM_VECTORS times 16 bytes before
 it needs the first, and a multiprocessor has 16 to 32 such warps, none of which waits for another.
 x lies in shared memory. No kernel writes weights, so the first of them are loaded before the
 previous kernel is done.
 *
 *
 * The norm needs no pass of its own: n(x) = rstd * (x * norm), and rstd, one number, multiplies the
 sums at the end.

 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_STREAM_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_STREAM_CUH_

#include "solutions/10_llama2_decoder/steps/elements.cuh"

enum {
    STREAM_THREADS = 512,
    STREAM_WARPS = STREAM_THREADS / 32,
    STREAM_VECTORS = 8 /* of 16 bytes, in flight per lane */
};

/* Sizes and pointers of a product; a vector is 16 bytes. */
struct stream {
    const uint4 *weight;
    size_t up_offset;       /* vectors from a row of the gate to the same row of up */
    unsigned rows, vectors; /* rows of the result; vectors of a row of weights */
    const float *in;        /* (K) */
    const float *norm;      /* (K), or NULL */
    const float *residual;  /* (rows), or NULL; not with a gate */
    float *out;             /* (rows) */
    float eps;
};

/*
 * A lane's vectors in flight: with a gate, half of them are the gate's and the others are up's at
 the same offsets; else all are of one row.

 */
template <bool GATE> struct lane_vectors {
    static constexpr int VECTORS = GATE ? STREAM_VECTORS / 2 : STREAM_VECTORS;
    uint4 w[STREAM_VECTORS];

    /* @param row the row's first vector @param first index of the lane's first vector in it */
    __device__ __forceinline__ void load(const struct stream &s, const uint4 *row, unsigned first) {
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            unsigned vector = first + i * 32;
            bool there = vector < s.vectors;
            w[i] = there ? load_no_allocate(row + vector) : make_uint4(0, 0, 0, 0);
            if (GATE) {
                w[VECTORS + i] =
                    there ? load_no_allocate(row + s.up_offset + vector) : make_uint4(0, 0, 0, 0);
            }
        }
    }

    /* Adds the products with x, which lies in planes of float4: one for each four elements of a
     * vector. */
    template <typename E>
    __device__ __forceinline__ void multiply(float sums[2], const struct stream &s,
                                             const float4 *planes, unsigned first) const {
        constexpr int COUNT = VECTOR_ELEMENTS<E>;
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            unsigned vector =
                first + i * 32 < s.vectors ? first + i * 32 : 0; /* the weights are 0 */
            float x[COUNT], values[COUNT];
#pragma unroll
            for (int j = 0; j < COUNT / 4; j++) {
                float4 four = planes[j * s.vectors + vector];
                x[4 * j] = four.x, x[4 * j + 1] = four.y;
                x[4 * j + 2] = four.z, x[4 * j + 3] = four.w;
            }
            unpack(w[i], values, E());
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                sums[GATE ? 0 : i % 2] += values[j] * x[j];
            }
            if (GATE) {
                unpack(w[VECTORS + i], values, E());
#pragma unroll
                for (int j = 0; j < COUNT; j++) {
                    sums[1] += values[j] * x[j];
                }
            }
        }
    }
};

/* Stores x * norm in shared memory, float4 number j of each vector in plane j, so that a warp's
 * reads have no bank conflicts. @return the thread's sum of x^2 */
template <typename E>
static __device__ __forceinline__ float stage_input(float4 *planes, const struct stream &s) {
    constexpr unsigned FOURS = VECTOR_ELEMENTS<E> / 4;
    float squares = 0.0f;
    for (unsigned i = threadIdx.x; i < s.vectors * FOURS; i += STREAM_THREADS) {
        float4 x = ((const float4 *)s.in)[i];
        squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
        if (s.norm != NULL) {
            float4 n = ((const float4 *)s.norm)[i];
            x = make_float4(x.x * n.x, x.y * n.y, x.z * n.z, x.w * n.w);
        }
        planes[i % FOURS * s.vectors + i / FOURS] = x;
    }
    return squares;
}

/* 1 / RMS of x, 1 without a norm. Synchronises the block, after which the planes are complete. */
static __device__ __forceinline__ float rstd_of(float squares, const struct stream &s, unsigned K) {
    __shared__ float warp_squares[STREAM_WARPS];
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) {
        warp_squares[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    if (s.norm == NULL) {
        return 1.0f;
    }
    squares = 0.0f;
#pragma unroll
    for (int w = 0; w < STREAM_WARPS; w++) {
        squares += warp_squares[w];
    }
    return 1.0f / sqrtf(squares / (float)K + s.eps);
}

/*
 * Grid: warps take rows round robin. Dynamic shared memory: K floats.
 * Bytes: rows * K * sizeof(E), twice that with a gate.
 */
template <typename E, bool GATE>
static __global__ void __launch_bounds__(STREAM_THREADS, 2) stream_kernel(const struct stream s) {
    extern __shared__ float4 planes[];
    unsigned lane = threadIdx.x % 32, stride = gridDim.x * STREAM_WARPS;
    unsigned n = blockIdx.x * STREAM_WARPS + threadIdx.x / 32;
    constexpr unsigned EACH = 32 * lane_vectors<GATE>::VECTORS;
    const uint4 *row = s.weight + (size_t)n * s.vectors;
    struct lane_vectors<GATE> weights;
    if (n < s.rows) {
        weights.load(s, row, lane);
    }
    dependent_launch_begin();
    float residual = n < s.rows && s.residual != NULL ? s.residual[n] : 0.0f; /* loaded early */
    float rstd = rstd_of(stage_input<E>(planes, s), s, s.vectors * VECTOR_ELEMENTS<E>);
    while (n < s.rows) {
        float sums[2] = {0.0f, 0.0f};
        unsigned next = n + stride;
        for (unsigned first = lane;;) {
            weights.template multiply<E>(sums, s, planes, first);
            first += EACH;
            if (first >= s.vectors + lane) { /* the same for the whole warp */
                break;
            }
            weights.load(s, row, first);
        }
        row = s.weight + (size_t)next * s.vectors;
        if (next < s.rows) {
            weights.load(s, row, lane);
        }
        float one = rstd * warp_sum(GATE ? sums[0] : sums[0] + sums[1]);
        float other = GATE ? rstd * warp_sum(sums[1]) : 0.0f;
        if (lane == 0) {
            s.out[n] = GATE ? silu_of(one) * other : residual + one;
        }
        residual = next < s.rows && s.residual != NULL ? s.residual[next] : 0.0f;
        n = next;
    }
}

#endif

/**
 * @file stream.cuh
 * @brief Products with one vector: a warp streams through a row of weights, or through row n of the
 *        gate and row n of up side by side, whose product silu(gate) * up is written once.
 *
 * What keeps memory busy is how many bytes are on their way: a lane asks for STREAM_PIECES times 16
 * bytes before it needs the first, and a multiprocessor has 16 to 32 such warps, each on its own. x
 * lies in shared memory. Weights are never written, so the first of them are asked for before the
 * kernel in front of this one is done.
 *
 * The norm costs no pass of its own: n(x) = f * (x * norm) with one number f, which the sums are
 * multiplied with at the end.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_STREAM_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_STREAM_CUH_

#include "solutions/10_llama2_decoder/steps/elements.cuh"

enum {
    STREAM_THREADS = 512,
    STREAM_WARPS = STREAM_THREADS / 32,
    STREAM_PIECES = 8 /* of a lane, on their way together */
};

/* Sizes and pointers of a product; pieces are 16 bytes. */
struct stream {
    const uint4 *weight;
    size_t apart;          /* pieces from a row of the gate to the row of up */
    unsigned rows, pieces; /* of the result; pieces of a row */
    const float *in;       /* (K) */
    const float *norm;     /* (K), or NULL */
    const float *residual; /* (rows), or NULL; not with a gate */
    float *out;            /* (rows) */
    float eps;
};

/*
 * Pieces of a lane that are on their way together: with a gate half of them are the gate's and the
 * others up's at the same places, else all are one row's.
 */
template <bool GATE> struct pieces_of_lane {
    static constexpr int PLACES = GATE ? STREAM_PIECES / 2 : STREAM_PIECES;
    uint4 w[STREAM_PIECES];

    /* `row`: the row's first piece; `first`: the lane's first place in it. */
    __device__ __forceinline__ void ask(const struct stream &s, const uint4 *row, unsigned first) {
#pragma unroll
        for (int i = 0; i < PLACES; i++) {
            unsigned place = first + i * 32;
            bool there = place < s.pieces;
            w[i] = there ? load_no_allocate(row + place) : make_uint4(0, 0, 0, 0);
            if (GATE) {
                w[PLACES + i] =
                    there ? load_no_allocate(row + s.apart + place) : make_uint4(0, 0, 0, 0);
            }
        }
    }

    /* Adds the products with x: planes of float4, one for each four elements of a piece. */
    template <typename E>
    __device__ __forceinline__ void multiply(float sums[2], const struct stream &s,
                                             const float4 *planes, unsigned first) const {
        constexpr int COUNT = VECTOR_ELEMENTS<E>;
#pragma unroll
        for (int i = 0; i < PLACES; i++) {
            unsigned place = first + i * 32 < s.pieces ? first + i * 32 : 0; /* the weights are 0 */
            float x[COUNT], values[COUNT];
#pragma unroll
            for (int j = 0; j < COUNT / 4; j++) {
                float4 four = planes[j * s.pieces + place];
                x[4 * j] = four.x, x[4 * j + 1] = four.y;
                x[4 * j + 2] = four.z, x[4 * j + 3] = four.w;
            }
            unpack(w[i], values, E());
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                sums[GATE ? 0 : i % 2] += values[j] * x[j];
            }
            if (GATE) {
                unpack(w[PLACES + i], values, E());
#pragma unroll
                for (int j = 0; j < COUNT; j++) {
                    sums[1] += values[j] * x[j];
                }
            }
        }
    }
};

/* x * norm into shared memory, float4 number j of each piece into plane j, so that a warp's reads
   do not collide. @return the thread's sum of x^2 */
template <typename E>
static __device__ __forceinline__ float place_input(float4 *planes, const struct stream &s) {
    constexpr unsigned FOURS = VECTOR_ELEMENTS<E> / 4;
    float squares = 0.0f;
    for (unsigned i = threadIdx.x; i < s.pieces * FOURS; i += STREAM_THREADS) {
        float4 x = ((const float4 *)s.in)[i];
        squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
        if (s.norm != NULL) {
            float4 n = ((const float4 *)s.norm)[i];
            x = make_float4(x.x * n.x, x.y * n.y, x.z * n.z, x.w * n.w);
        }
        planes[i % FOURS * s.pieces + i / FOURS] = x;
    }
    return squares;
}

/* The norm's factor, 1 without one; the planes are there for all when it is known. */
static __device__ __forceinline__ float factor_of(float squares, const struct stream &s,
                                                  unsigned K) {
    __shared__ float parts[STREAM_WARPS];
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    if (s.norm == NULL) {
        return 1.0f;
    }
    squares = 0.0f;
#pragma unroll
    for (int w = 0; w < STREAM_WARPS; w++) {
        squares += parts[w];
    }
    return 1.0f / sqrtf(squares / (float)K + s.eps);
}

/*
 * Grid: warps take rows in turn. Dynamic shared memory: K floats.
 * Bytes: rows * K * sizeof(E), twice that with a gate.
 */
template <typename E, bool GATE>
static __global__ void __launch_bounds__(STREAM_THREADS, 2) stream_kernel(const struct stream s) {
    extern __shared__ float4 planes[];
    unsigned lane = threadIdx.x % 32, stride = gridDim.x * STREAM_WARPS;
    unsigned n = blockIdx.x * STREAM_WARPS + threadIdx.x / 32;
    constexpr unsigned EACH = 32 * pieces_of_lane<GATE>::PLACES;
    const uint4 *row = s.weight + (size_t)n * s.pieces;
    struct pieces_of_lane<GATE> pieces;
    if (n < s.rows) {
        pieces.ask(s, row, lane);
    }
    chained_begin();
    float residual = n < s.rows && s.residual != NULL ? s.residual[n] : 0.0f; /* early */
    float factor = factor_of(place_input<E>(planes, s), s, s.pieces * VECTOR_ELEMENTS<E>);
    while (n < s.rows) {
        float sums[2] = {0.0f, 0.0f};
        unsigned next = n + stride;
        for (unsigned first = lane;;) {
            pieces.template multiply<E>(sums, s, planes, first);
            first += EACH;
            if (first >= s.pieces + lane) { /* the same for the whole warp */
                break;
            }
            pieces.ask(s, row, first);
        }
        row = s.weight + (size_t)next * s.pieces;
        if (next < s.rows) {
            pieces.ask(s, row, lane);
        }
        float one = factor * warp_sum(GATE ? sums[0] : sums[0] + sums[1]);
        float other = GATE ? factor * warp_sum(sums[1]) : 0.0f;
        if (lane == 0) {
            s.out[n] = GATE ? silu_of(one) * other : residual + one;
        }
        residual = next < s.rows && s.residual != NULL ? s.residual[next] : 0.0f;
        n = next;
    }
}

#endif

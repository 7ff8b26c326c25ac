/**
 * @file one_input.cuh
 * @brief d8: how a product's input comes from other blocks into shared memory, normed on the way.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_INPUT_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_INPUT_CUH_

#include <math.h>

#include "solutions/10_llama2_decoder/one_kernel.cuh"

/* Brings what will be read soon, K floats that nobody writes, to L2. */
static __device__ __forceinline__ void ask_l2(const float *from, unsigned K) {
    enum { LINE = 128 / sizeof(float) };
    for (unsigned i = threadIdx.x * LINE; i < K; i += ONE_THREADS * LINE) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
    }
}

/* What a block works with, beside its ring: shared memory, and what all threads know. */
struct work {
    float4 *x;      /* the product's input: first quads of all pieces, then second ones */
    float *sums;    /* of slices: (rows, slices) */
    float *squares; /* (WARPS) */
    float factor;   /* of a norm; 1 without */
};

static __device__ __forceinline__ float sum_of_lanes(float x) {
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(~0u, x, step);
    }
    return x;
}

/* Puts channels 2i and 2i + 1 where products look for them. */
template <typename E>
static __device__ __forceinline__ void put_two(struct work *b, unsigned i, float2 x, unsigned K) {
    constexpr unsigned QUADS = elements<E>::COUNT / 4;
    unsigned pieces = K / elements<E>::COUNT, quad = i / 2;
    ((float2 *)b->x)[2 * (quad % QUADS * pieces + quad / QUADS) + i % 2] = x;
}

static __device__ __forceinline__ float2 norm_at(const float *norm, unsigned i) {
    return ((const float2 *)norm)[i];
}

/* All have put their channels: b->x is whole, and b->factor what a norm of it multiplies with. */
static __device__ __forceinline__ void end_input(struct work *b, float squares, bool norms,
                                                 unsigned K, const struct one &p) {
    if (norms) {
        squares = sum_of_lanes(squares);
        if (threadIdx.x % 32 == 0) {
            b->squares[threadIdx.x / 32] = squares;
        }
    }
    __syncthreads();
    b->factor = 1.0f;
    if (norms) {
        squares = 0.0f;
#pragma unroll
        for (int w = 0; w < ONE_WARPS; w++) {
            squares += b->squares[w];
        }
        b->factor = 1.0f / sqrtf(squares / (float)K + p.eps);
    }
}

/* b->x = a row of the embedding, times norm. */
template <typename E>
static __device__ __forceinline__ void take_embedding(struct work *b, const E *row,
                                                      const float *norm, const struct one &p) {
    float squares = 0.0f;
    for (unsigned i = threadIdx.x; i < p.C / 2; i += ONE_THREADS) {
        float2 x = make_float2(elements<E>::widen(row[2 * i]), elements<E>::widen(row[2 * i + 1]));
        float2 n = norm_at(norm, i);
        squares += x.x * x.x + x.y * x.y;
        put_two<E>(b, i, make_float2(x.x * n.x, x.y * n.y), p.C);
    }
    end_input(b, squares, true, p.C, p);
}

/*
 * b->x = what comes in (K), times norm, if there is one. While a block waits, each thread looks at
 * one place only; then at several at a time.
 */
template <typename E, bool NORM>
static __device__ __forceinline__ void take_input(struct work *b, struct post in, unsigned tag,
                                                  const float *norm, unsigned K,
                                                  const struct one &p) {
    constexpr unsigned AT_ONCE = NORM ? 4 : 6;
    float squares = 0.0f;
    for (unsigned first = threadIdx.x; first < K / 2; first += AT_ONCE * ONE_THREADS) {
        struct pair x[AT_ONCE];
        float2 n[AT_ONCE];
        bool there;
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j++) {
            unsigned i = first + j * ONE_THREADS;
            n[j] = NORM && i < K / 2 ? norm_at(norm, i) : make_float2(1.0f, 1.0f);
        }
        while (first == threadIdx.x && !is_there(look(in, 2 * first), tag)) {
        }
        do {
            there = true;
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                unsigned i = first + j * ONE_THREADS;
                if (i < K / 2) {
                    x[j] = look(in, 2 * i);
                }
            }
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                there = there && (first + j * ONE_THREADS >= K / 2 || is_there(x[j], tag));
            }
        } while (!there);
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j++) {
            unsigned i = first + j * ONE_THREADS;
            if (i < K / 2) {
                float2 y = values_of(x[j]);
                squares += y.x * y.x + y.y * y.y;
                put_two<E>(b, i, make_float2(y.x * n[j].x, y.y * n[j].y), K);
            }
        }
    }
    end_input(b, squares, NORM, K, p);
}

#endif

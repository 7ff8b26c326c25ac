/**
 * @file one_input.cuh
 * @brief d8: how a product's input comes from other blocks into shared memory, normed on the way.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_INPUT_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_INPUT_CUH_

#include <math.h>

#include "solutions/10_llama2_decoder/steps/one_ring.cuh"

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

/* Puts channels 4i to 4i + 3 where products look for them. */
template <typename E>
static __device__ __forceinline__ void put_four(struct work *b, unsigned i, float4 x, unsigned K) {
    constexpr unsigned QUADS = VECTOR_ELEMENTS<E> / 4;
    b->x[i % QUADS * (K / VECTOR_ELEMENTS<E>)+i / QUADS] = x;
}

static __device__ __forceinline__ float4 times(float4 a, float4 b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

static __device__ __forceinline__ float square_of(float4 x) {
    return (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w);
}

/* All have put their channels: b->x is whole, and b->factor what a norm of it multiplies with. */
static __device__ __forceinline__ void end_input(struct work *b, float squares, bool norms,
                                                 unsigned K, const struct one &p) {
    if (norms) {
        squares = warp_sum(squares);
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

/* The norm in front of a half of a layer, or of the classifier. */
static __device__ __forceinline__ const float *norm_of(const struct plan *plan, unsigned half,
                                                       const struct one &p) {
    const struct one_layer *layer = &plan->layers[half / 2];
    return half == 2 * p.L ? p.final_norm : half % 2 == 0 ? layer->attention_norm : layer->ffn_norm;
}

/* b->x = a row of the embedding, times norm. */
template <typename E>
static __device__ __forceinline__ void take_embedding(struct work *b, const E *row,
                                                      const float *norm, const struct one &p) {
    float squares = 0.0f;
    for (unsigned i = threadIdx.x; i < p.C / 4; i += ONE_THREADS) {
        float4 x = make_float4(to_float(row[4 * i]), to_float(row[4 * i + 1]),
                               to_float(row[4 * i + 2]), to_float(row[4 * i + 3]));
        squares += square_of(x);
        put_four<E>(b, i, times(x, ((const float4 *)norm)[i]), p.C);
    }
    end_input(b, squares, true, p.C, p);
}

/* Waits for what comes in at place i, where that is below `all`; the lanes leave together. Each
   look that was too early lets memory have one slice that is owed. */
static __device__ __forceinline__ void wait_for(struct ring *r, struct board in, unsigned i,
                                                unsigned all, unsigned bit, const struct one &p) {
    while (!__all_sync(~0u, i >= all || are_there(look_at_four(in, i), bit))) {
        catch_up(r, p);
    }
}

/*
 * b->x = what comes in (K), times norm, if there is one. While a block waits, each thread looks at
 * one place only; then at several at a time.
 */
template <typename E, bool NORM>
static __device__ __forceinline__ void take_input(struct ring *r, struct work *b, struct board in,
                                                  unsigned bit, const float *norm, unsigned K,
                                                  const struct one &p) {
    constexpr unsigned AT_ONCE = NORM ? 3 : 4;
    unsigned lane = threadIdx.x % 32, all = K / 4;
    float squares = 0.0f;
    for (unsigned first = threadIdx.x; first - lane < all; first += AT_ONCE * ONE_THREADS) {
        uint4 x[AT_ONCE];
        float4 n[AT_ONCE];
        bool there;
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j++) {
            unsigned i = first + j * ONE_THREADS;
            n[j] = NORM && i < all ? ((const float4 *)norm)[i] : make_float4(1, 1, 1, 1);
        }
        if (first == threadIdx.x) {
            wait_for(r, in, first, all, bit, p);
        }
        do {
            there = true;
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                unsigned i = first + j * ONE_THREADS;
                if (i < all) {
                    x[j] = look_at_four(in, i);
                }
            }
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                there = there && (first + j * ONE_THREADS >= all || are_there(x[j], bit));
            }
        } while (!there);
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j++) {
            unsigned i = first + j * ONE_THREADS;
            if (i < all) {
                float4 y = values_of(x[j]);
                squares += square_of(y);
                put_four<E>(b, i, times(y, n[j]), K);
            }
        }
    }
    catch_up_all(r, p);
    end_input(b, squares, NORM, K, p);
}

#endif

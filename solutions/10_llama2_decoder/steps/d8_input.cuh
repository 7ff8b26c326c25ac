/**
 * @file d8_input.cuh
 * @brief d8: gathers a product's input from other blocks into shared memory and normalises it.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_INPUT_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_INPUT_CUH_

#include <math.h>

#include "solutions/10_llama2_decoder/steps/d8_pipeline.cuh"

/* Prefetches K floats, which the kernel never writes, to L2. */
static __device__ __forceinline__ void prefetch_l2(const float *from, unsigned K) {
    enum { LINE = 128 / sizeof(float) };
    for (unsigned i = threadIdx.x * LINE; i < K; i += ONE_THREADS * LINE) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
    }
}

/* A block's state beside its pipelines: shared memory, and one value that all threads have. */
struct block_state {
    float4 *x;      /* the product's input, in the order of W */
    float *sums;    /* dot products of slices, in the order of W */
    float *squares; /* (WARPS) */
    float rstd;     /* 1 / RMS of the input; 1 without a norm */
    unsigned layer; /* under way */
};

static __device__ __forceinline__ float4 times(float4 a, float4 b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

static __device__ __forceinline__ float square_of(float4 x) {
    return (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w);
}

/* Synchronises the block, after which b->x is complete, and computes b->rstd. */
static __device__ __forceinline__ void complete_input(struct block_state *b, float squares,
                                                      bool norms, unsigned K,
                                                      const struct one_arguments &p) {
    if (norms) {
        squares = warp_sum(squares);
        if (threadIdx.x % 32 == 0) {
            b->squares[threadIdx.x / 32] = squares;
        }
    }
    __syncthreads();
    b->rstd = 1.0f;
    if (norms) {
        float sums[4] = {};
#pragma unroll
        for (int w = 0; w < ONE_WARPS; w++) {
            sums[w % 4] += b->squares[w];
        }
        squares = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        b->rstd = rsqrtf(squares / (float)K + p.eps);
    }
}

/* The norm in front of a sublayer, or of the classifier. */
static __device__ __forceinline__ const float *norm_of(const struct plan *plan, unsigned sublayer,
                                                       const struct one_arguments &p) {
    const struct one_layer *layer = &plan->layers[sublayer / 2];
    return sublayer == 2 * p.L ? p.final_norm
           : sublayer % 2 == 0 ? layer->attention_norm
                               : layer->ffn_norm;
}

/* b->x = a row of the embedding, times norm. */
template <typename W>
static __device__ __forceinline__ void
load_embedding(struct block_state *b, const typename W::embedding *row, const float *norm,
               const struct one_arguments &p) {
    float squares = 0.0f;
    unsigned lane = threadIdx.x % 32;
    for (unsigned i = threadIdx.x; i - lane < p.C / 4; i += ONE_THREADS) {
        float4 x = {};
        if (i < p.C / 4) {
            x = make_float4(to_float(row[4 * i]), to_float(row[4 * i + 1]),
                            to_float(row[4 * i + 2]), to_float(row[4 * i + 3]));
            squares += square_of(x);
            x = times(x, ((const float4 *)norm)[i]);
        }
        W::store_four(b, i, x, p.C);
    }
    W::store_padding(b, p.C);
    complete_input(b, squares, true, p.C, p);
}

/* Reads COUNT float4 of `in`, of which there are `quads`, a block's threads apart, from `first` on.
   @return whether all have been published */
template <unsigned COUNT>
static __device__ __forceinline__ bool read_quads(uint4 x[COUNT], struct flagged_mailbox in,
                                                  unsigned first, unsigned quads, unsigned flag) {
    bool ready = true;
#pragma unroll
    for (unsigned j = 0; j < COUNT; j++) {
        if (first + j * ONE_THREADS < quads) {
            x[j] = read_four(in, first + j * ONE_THREADS);
        }
    }
#pragma unroll
    for (unsigned j = 0; j < COUNT; j++) {
        ready = ready && (first + j * ONE_THREADS >= quads || has_flag(x[j], flag));
    }
    return ready;
}

/* Stores quad i of a product's input, and N - 1 of a block's threads further on, those that there
 * are. */
template <typename W, unsigned N>
static __device__ __forceinline__ void store_quads(struct block_state *b, unsigned i,
                                                   const float4 x[N], unsigned K) {
    if constexpr (W::SIDE_BY_SIDE) {
        unsigned left = K / 4 - (i - threadIdx.x % 32);
        unsigned count = (left + ONE_THREADS - 1) / ONE_THREADS;
        if (count >= N) {
            W::template store_several<N>(b, i, x, N);
        } else {
            W::template store_several<N - 1>(b, i, x, count);
        }
    } else {
        W::store_four(b, i, x[0], K);
    }
}

/* What a warp does when a poll came too early: it issues one prefetch held back, or has L2 fetch
 * the slice after the next `ahead` ones. @return how many L2 has been asked for */
static __device__ __forceinline__ unsigned use_wait(struct pipeline *pipe, unsigned ahead,
                                                    const struct one_arguments &p) {
    if (pipe->held_back > 0) {
        issue_held_back(pipe, p);
    } else if (ONE_SLICES_ARE_RUNS && ahead < p.ahead && pipe->plan->item.splits == 1) {
        prefetch_ahead(pipe, ahead);
        ahead++;
    }
    return ahead;
}

/*
 * b->x = the K published values of `in`, times norm if there is one. Each thread polls several
 * float4 at a time, and the poll that finds all of them has the values, too; the lanes of a warp
 * leave together.
 */
template <typename W, bool NORM>
static __device__ __forceinline__ void
gather_input(struct pipeline *pipe, struct block_state *b, struct flagged_mailbox in, unsigned flag,
             const float *norm, unsigned K, const struct one_arguments &p) {
    constexpr unsigned AT_ONCE = NORM ? 3 : 4, TOGETHER = W::SIDE_BY_SIDE ? AT_ONCE : 1;
    unsigned lane = threadIdx.x % 32, quads = K / 4;
    float squares = 0.0f;
    unsigned ahead = 0;
    for (unsigned first = threadIdx.x; first - lane < quads; first += AT_ONCE * ONE_THREADS) {
        uint4 x[AT_ONCE];
        float4 n[AT_ONCE];
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j++) {
            unsigned i = first + j * ONE_THREADS;
            n[j] = NORM && i < quads ? ((const float4 *)norm)[i] : make_float4(1, 1, 1, 1);
        }
        while (!__all_sync(~0u, read_quads<AT_ONCE>(x, in, first, quads, flag))) {
            ahead = use_wait(pipe, ahead, p);
        }
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j += TOGETHER) {
            unsigned i = first + j * ONE_THREADS;
            if (i - lane >= quads) {
                break;
            }
            float4 y[TOGETHER];
#pragma unroll
            for (unsigned k = 0; k < TOGETHER; k++) {
                bool exists = i + k * ONE_THREADS < quads;
                y[k] = exists ? values_of(x[j + k]) : make_float4(0, 0, 0, 0);
                squares += square_of(y[k]);
                y[k] = times(y[k], n[j + k]);
            }
            store_quads<W, TOGETHER>(b, i, y, K);
        }
    }
    W::store_padding(b, K);
    issue_all_held_back(pipe, p);
    complete_input(b, squares, NORM, K, p);
}

#endif

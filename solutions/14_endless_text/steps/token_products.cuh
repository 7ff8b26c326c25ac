/**
 * @file token_products.cuh
 * @brief v6: inputs of products, gathered from other blocks, and the products.
 *
 * An input of K floats lies in two planes of float4, so that a warp reads it without bank
 * conflicts: the first four channels of all 16-byte pieces of weights, then their other four.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_PRODUCTS_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_PRODUCTS_CUH_

#include "solutions/14_endless_text/steps/token_pipeline.cuh"

/* Stores channels 4i to 4i + 3 of K. */
static __device__ __forceinline__ void store_quad(float *input, unsigned i, float4 x, unsigned K) {
    ((float4 *)input)[i % 2 * (K / 8) + i / 2] = x;
}

static __device__ __forceinline__ float sum_of(float4 x) {
    return x.x + x.y + (x.z + x.w);
}

/* Sum over the block, in all threads. */
static __device__ __forceinline__ float token_block_sum(float x, float *of_warps) {
    float sum = 0.0f;
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) {
        of_warps[threadIdx.x / 32] = x;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TOKEN_WARPS; i++) {
        sum += of_warps[i];
    }
    return sum;
}

static __device__ __forceinline__ float4 quad_of(const float *from, unsigned i, float otherwise) {
    return from != NULL ? ((const float4 *)from)[i]
                        : make_float4(otherwise, otherwise, otherwise, otherwise);
}

/* A thread's float4s of the residual stream. */
struct token_quads {
    float4 x[TOKEN_QUADS];
};

/* Polls until they are published; the lanes of a warp leave together. */
template <int ROUNDS>
static __device__ __forceinline__ struct token_quads
gather_residual(struct token_ring *ring, unsigned flag, const struct token_arguments &p) {
    struct token_quads q = {};
    for (;;) {
        bool ready = true;
        uint4 bits[TOKEN_QUADS];
#pragma unroll
        for (int j = 0; j < TOKEN_QUADS; j++) {
            unsigned i = threadIdx.x + j * TOKEN_THREADS;
            if (i < p.C / 4) {
                bits[j] = read_four(p.residual, i);
            }
        }
#pragma unroll
        for (int j = 0; j < TOKEN_QUADS; j++) {
            if (threadIdx.x + j * TOKEN_THREADS < p.C / 4) {
                ready = ready && has_flag(bits[j], flag);
                q.x[j] = values_of(bits[j]);
            }
        }
        if (__all_sync(~0u, ready)) {
            break;
        }
        token_issue<ROUNDS>(ring, p);
    }
    token_issue_all<ROUNDS>(ring, p);
    return q;
}

/* x less its mean, for all quads. @return rstd */
static __device__ __forceinline__ float centre(struct token_quads *q, float squares[2][TOKEN_WARPS],
                                               const struct token_arguments &p) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < TOKEN_QUADS; j++) {
        sum += sum_of(q->x[j]);
    }
    float mean = token_block_sum(sum, squares[0]) / (float)p.C;
    sum = 0.0f;
#pragma unroll
    for (int j = 0; j < TOKEN_QUADS; j++) {
        if (threadIdx.x + j * TOKEN_THREADS < p.C / 4) {
            float4 x = q->x[j];
            x = make_float4(x.x - mean, x.y - mean, x.z - mean, x.w - mean);
            sum += sum_of(make_float4(x.x * x.x, x.y * x.y, x.z * x.z, x.w * x.w));
            q->x[j] = x;
        }
    }
    return 1.0f / sqrtf(token_block_sum(sum, squares[1]) / (float)p.C + p.eps);
}

/* input = the `count` norms of the residual stream, one behind the other. Called by all threads,
   when nobody reads the input any more but for those that a block barrier has not stopped yet. */
template <int ROUNDS>
static __device__ __forceinline__ void
gather_norms(struct token_ring *ring, float *input, float squares[2][TOKEN_WARPS], unsigned flag,
             const float *const norms[2], const float *const biases[2], int count,
             const struct token_arguments &p) {
    float4 weight[2][TOKEN_QUADS], bias[2][TOKEN_QUADS];
#pragma unroll
    for (int n = 0; n < 2; n++) {
#pragma unroll
        for (int j = 0; j < TOKEN_QUADS; j++) {
            unsigned i = threadIdx.x + j * TOKEN_THREADS;
            bool there = n < count && i < p.C / 4; /* loaded before the wait */
            weight[n][j] = quad_of(there ? norms[n] : NULL, i, 0.0f);
            bias[n][j] = quad_of(there ? biases[n] : NULL, i, 0.0f);
        }
    }
    struct token_quads q = gather_residual<ROUNDS>(ring, flag, p);
    float rstd = centre(&q, squares, p);
#pragma unroll
    for (int n = 0; n < 2; n++) {
#pragma unroll
        for (int j = 0; j < TOKEN_QUADS; j++) {
            unsigned i = threadIdx.x + j * TOKEN_THREADS;
            if (n < count && i < p.C / 4) {
                float4 x = q.x[j], w = weight[n][j], b = bias[n][j];
                store_quad(input + n * p.C, i,
                           make_float4(x.x * rstd * w.x + b.x, x.y * rstd * w.y + b.y,
                                       x.z * rstd * w.z + b.z, x.w * rstd * w.w + b.w),
                           p.C);
            }
        }
    }
    __syncthreads();
}

/* input = K published values. */
template <int ROUNDS>
static __device__ __forceinline__ void gather(struct token_ring *ring, float *input,
                                              struct flagged_mailbox in, unsigned flag, unsigned K,
                                              const struct token_arguments &p) {
    enum { AT_ONCE = 4 };
    unsigned lane = threadIdx.x % 32, quads = K / 4;
    for (unsigned first = threadIdx.x; first - lane < quads; first += AT_ONCE * TOKEN_THREADS) {
        uint4 x[AT_ONCE];
        for (;;) {
            bool ready = true;
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                if (first + j * TOKEN_THREADS < quads) {
                    x[j] = read_four(in, first + j * TOKEN_THREADS);
                }
            }
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                ready = ready && (first + j * TOKEN_THREADS >= quads || has_flag(x[j], flag));
            }
            if (__all_sync(~0u, ready)) {
                break;
            }
            token_issue<ROUNDS>(ring, p);
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (first + j * TOKEN_THREADS < quads) {
                store_quad(input, first + j * TOKEN_THREADS, values_of(x[j]), K);
            }
        }
    }
}

/* The warp's slices of a kind: sums[slice] = its product with the input of K floats.
   @param hold_back its last prefetches, before a wait */
template <typename E, int ROUNDS>
static __device__ __forceinline__ void
token_multiply(struct token_ring *ring, float *sums, const float *input, unsigned K, unsigned kind,
               bool hold_back, const struct token_arguments &p) {
    const struct token_part part = ring->plan->parts[kind];
    const float4 *planes = (const float4 *)input;
    unsigned lane = threadIdx.x % 32, held = hold_back ? TOKEN_HELD_BACK * TOKEN_WARPS : 0;
#pragma unroll 1
    for (unsigned slice = threadIdx.x / 32; slice < part.slices; slice += TOKEN_WARPS) {
        const float4 *x = planes + slice % part.columns * (ROUNDS * 32) + lane;
        float sum[2] = {0.0f, 0.0f};
        cp_async_wait<TOKEN_STAGES - 1>();
        unsigned stage = token_stage<ROUNDS>(ring, 0) + lane * 16;
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            float w[8];
            float4 low = x[i * 32], high = x[K / 8 + i * 32];
            unpack(token_read(stage + i * 512), w, E());
            sum[0] += w[0] * low.x + w[1] * low.y + w[2] * low.z + w[3] * low.w;
            sum[1] += w[4] * high.x + w[5] * high.y + w[6] * high.z + w[7] * high.w;
        }
        token_release<ROUNDS>(ring, slice + held >= part.slices, p);
        float total = warp_sum(sum[0] + sum[1]);
        if (lane == 0) {
            sums[slice] = total;
        }
    }
}

/* Row r of the block's share: the sum of its slices. */
static __device__ __forceinline__ float row_of(const float *sums, unsigned r, unsigned columns) {
    float sum = 0.0f;
    for (unsigned i = 0; i < columns; i++) {
        sum += sums[r * columns + i];
    }
    return sum;
}

/* The thread's row of a kind: its bias, loaded before the product. */
static __device__ __forceinline__ float token_bias(const struct token_part *part,
                                                   const float *bias) {
    return bias != NULL && threadIdx.x < part->rows ? bias[part->first + threadIdx.x] : 0.0f;
}

/* A product whose rows are published: of TOKEN_QKV as they are, else activated. */
template <typename E, int ROUNDS>
static __device__ __forceinline__ void
token_publish_product(struct token_ring *ring, float *sums, const float *input, unsigned kind,
                      bool hold_back, const float *biases, struct flagged_mailbox box,
                      unsigned flag, const struct token_arguments &p) {
    const struct token_part *part = &ring->plan->parts[kind];
    float bias = token_bias(part, biases);
    token_multiply<E, ROUNDS>(ring, sums, input, p.C, kind, hold_back, p);
    __syncthreads();
    if (threadIdx.x < part->rows) {
        float y = row_of(sums, threadIdx.x, part->columns) + bias;
        publish(box, part->first + threadIdx.x, kind == TOKEN_QKV ? y : activate(y, p.activation),
                flag);
    }
}

#endif

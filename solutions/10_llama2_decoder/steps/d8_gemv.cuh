/**
 * @file d8_gemv.cuh
 * @brief d8's products: a warp multiplies slices of rows from its pipeline, a block adds them up.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_GEMV_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_GEMV_CUH_

#include "solutions/10_llama2_decoder/steps/d8_input.cuh"
#include "solutions/10_llama2_decoder/steps/d8_pipeline.cuh"

/* A block's outputs of a matrix. */
struct outputs {
    unsigned first, count;
};

/* The part of the input that a lane multiplies a slice with: pieces from `first` on. */
template <typename E> struct input_fragment {
    static constexpr int COUNT = VECTOR_ELEMENTS<E>, ROUNDS = ONE_STAGE_BYTES / 512;
    float4 x[ROUNDS][COUNT / 4];
};

template <typename E>
static __device__ __forceinline__ struct input_fragment<E>
load_input(const struct block_state *b, unsigned first, unsigned pieces) {
    struct input_fragment<E> f;
#pragma unroll
    for (int i = 0; i < f.ROUNDS; i++) {
        unsigned piece = first + threadIdx.x % 32 + i * 32;
#pragma unroll
        for (int q = 0; q < f.COUNT / 4; q++) {
            f.x[i][q] = b->x[q * pieces + (piece < pieces ? piece : first)];
        }
    }
    return f;
}

/* A lane's weights of a slice. */
struct weight_fragment {
    uint4 x[ONE_STAGE_BYTES / 512];
};

/* @param WHOLE whether all slices fill their stages @param left pieces of the row from the
   slice on */
template <bool WHOLE>
static __device__ __forceinline__ struct weight_fragment load_weights(unsigned stage,
                                                                      unsigned left) {
    struct weight_fragment w;
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < ONE_STAGE_BYTES / 512; i++) {
        w.x[i] = make_uint4(0, 0, 0, 0);
        if (WHOLE || lane + i * 32 < left) {
            w.x[i] = read_shared(stage + (lane + i * 32) * 16);
        }
    }
    return w;
}

template <typename E>
static __device__ __forceinline__ float dot(const struct weight_fragment &w,
                                            const struct input_fragment<E> &f) {
    float sums[4] = {};
#pragma unroll
    for (int i = 0; i < f.ROUNDS; i++) {
        float x[f.COUNT];
        unpack(w.x[i], x, E());
#pragma unroll
        for (int q = 0; q < f.COUNT / 4; q++) {
            sums[0] += x[4 * q] * f.x[i][q].x;
            sums[1] += x[4 * q + 1] * f.x[i][q].y;
            sums[2] += x[4 * q + 2] * f.x[i][q].z;
            sums[3] += x[4 * q + 3] * f.x[i][q].w;
        }
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/*
 * The warp's slices of a matrix times b->x, to sums (rows, slices) in shared memory. A warp whose
 * slices all have the same index in their rows loads its input once. Sums of lanes are reduced
 * while the next slice is multiplied. @param held_back prefetches to hold back at the end
 *
 */
template <typename E, bool WHOLE>
static __device__ __forceinline__ void
multiply_slices(struct pipeline *pipe, const struct block_state *b, unsigned kind, float *sums,
                unsigned held_back, const struct one_arguments &p) {
    constexpr unsigned PIECES = ONE_STAGE_BYTES / 16;
    const struct share share = pipe->plan->shares[kind];
    unsigned pieces = share.row_bytes / 16, warp = threadIdx.x / 32;
    unsigned count = warp_slices_of(pipe->plan, kind)->count,
             slice = warp_slices_of(pipe->plan, kind)->slice;
    struct input_fragment<E> f = load_input<E>(b, slice * PIECES, pieces);
    float last = 0.0f, *to = sums + warp;
    for (unsigned i = 0; i < count; i++) {
        struct weight_fragment w =
            load_weights<WHOLE>(pipeline_wait(pipe), pieces - slice * PIECES);
        pipeline_release(pipe, i + held_back >= count, p);
        float sum = dot<E>(w, f);
        last = warp_sum(last);
        if (threadIdx.x % 32 == 0 && i > 0) {
            to[(i - 1) * ONE_WARPS] = last;
        }
        last = sum;
        if (share.slice_step != 0) {
            next_slice(&slice, share);
            f = load_input<E>(b, slice * PIECES, pieces);
        }
    }
    last = warp_sum(last);
    if (threadIdx.x % 32 == 0 && count > 0) {
        to[(count - 1) * ONE_WARPS] = last;
    }
}

/* Weights of type E, row after row; warps take slices round robin. */
template <typename E> struct plain_weights {
    typedef E embedding;
    typedef E cache;
    static constexpr bool SIDE_BY_SIDE = false; /* whether it has store_several() */

    static __device__ __forceinline__ struct share share_of(const struct one_arguments &p,
                                                            unsigned kind) {
        struct share s = rows_of_block(outputs_of(p, kind));
        s.row_bytes = inputs_of(p, kind) * (unsigned)sizeof(E);
        s.slices = (s.row_bytes + ONE_STAGE_BYTES - 1) / ONE_STAGE_BYTES;
        s.slice_step = ONE_WARPS % s.slices;
        s.byte_step = ONE_WARPS / s.slices * s.row_bytes + s.slice_step * ONE_STAGE_BYTES;
        return s;
    }

    static __device__ __forceinline__ struct warp_slices slices_of(const struct share &s,
                                                                   unsigned warp) {
        unsigned all = s.rows * s.slices, row = warp / s.slices, slice = warp % s.slices;
        return {(all + ONE_WARPS - 1 - warp) / ONE_WARPS, slice,
                (size_t)row * s.row_bytes + slice * ONE_STAGE_BYTES};
    }

    /* Stores channels 4i to 4i + 3: the first float4 of all 16-byte pieces of weights, then the
     * second ones. All lanes of a warp call it, with neighbouring i, some perhaps with channels
     * behind K - 1, which are zeros. */
    static __device__ __forceinline__ void store_four(struct block_state *b, unsigned i, float4 x,
                                                      unsigned K) {
        constexpr unsigned QUADS = VECTOR_ELEMENTS<E> / 4;
        if (i < K / 4) {
            b->x[i % QUADS * (K / VECTOR_ELEMENTS<E>)+i / QUADS] = x;
        }
    }

    /* Behind channel K - 1 nothing is read. */
    static __device__ __forceinline__ void store_padding(struct block_state *, unsigned) {
    }

    /* Sums (rows, slices). @return the floats behind them */
    static __device__ __forceinline__ float *multiply(struct pipeline *pipe,
                                                      const struct block_state *b, unsigned kind,
                                                      float *sums, unsigned held_back,
                                                      const struct one_arguments &p) {
        const struct share *share = &pipe->plan->shares[kind];
        if (share->row_bytes % ONE_STAGE_BYTES == 0) {
            multiply_slices<E, true>(pipe, b, kind, sums, held_back, p);
        } else {
            multiply_slices<E, false>(pipe, b, kind, sums, held_back, p);
        }
        return sums + share->rows * share->slices;
    }

    /* A thread's scales of its output: none. */
    struct scales {};

    static __device__ __forceinline__ struct scales scales_of(const struct pipeline *,
                                                              const struct block_state *, unsigned,
                                                              unsigned,
                                                              const struct one_arguments &) {
        return {};
    }

    static __device__ __forceinline__ struct outputs
    own_outputs(const struct pipeline *pipe, unsigned kind, const struct one_arguments &) {
        const struct share *share = &pipe->plan->shares[kind];
        return {share->first, share->rows};
    }

    /* A row's product, from the sums of its slices. */
    static __device__ __forceinline__ float product_of(const struct pipeline *pipe,
                                                       const struct block_state *b, unsigned kind,
                                                       unsigned row, const struct scales &,
                                                       const float *sums) {
        unsigned slices = pipe->plan->shares[kind].slices;
        float sum = 0.0f;
#pragma unroll 4
        for (unsigned i = 0; i < slices; i++) {
            sum += sums[row * slices + i];
        }
        return sum * b->rstd;
    }

    static __device__ __forceinline__ float product_of(const struct pipeline *pipe,
                                                       const struct block_state *b, unsigned kind,
                                                       unsigned row, const struct scales &s) {
        return product_of(pipe, b, kind, row, s, b->sums);
    }

    /* (gate, up) of a channel. */
    static __device__ __forceinline__ float2 gate_and_up(const struct pipeline *pipe,
                                                         const struct block_state *b, unsigned row,
                                                         const struct scales &s) {
        const struct share *share = &pipe->plan->shares[ONE_GATE];
        const float *ups = b->sums + share->rows * share->slices;
        return make_float2(product_of(pipe, b, ONE_GATE, row, s),
                           product_of(pipe, b, ONE_GATE, row, s, ups));
    }
};

/* b->sums = the block's rows of the matrices from `kind` to `last` times b->x. */
template <typename W>
static __device__ __forceinline__ void
multiply_all(struct pipeline *pipe, const struct block_state *b, unsigned kind, unsigned last,
             unsigned held_back, const struct one_arguments &p) {
    float *sums = b->sums;
#pragma unroll 1
    for (; kind <= last; kind++) {
        sums = W::multiply(pipe, b, kind, sums, kind == last ? held_back : 0, p);
    }
    __syncthreads();
}

/* What W knows of output i of a block: `early` where the thread has asked for it, before it
 * multiplied. */
template <typename W>
static __device__ __forceinline__ typename W::scales
scales_at(const struct pipeline *pipe, const struct block_state *b, unsigned kind, unsigned i,
          const typename W::scales &early, const struct one_arguments &p) {
    return i == threadIdx.x ? early : W::scales_of(pipe, b, kind, i, p);
}

/* Channel n of the residual stream. @param row the token's embedding in the first sublayer, else
 * NULL */
template <typename E>
static __device__ __forceinline__ float residual_at(unsigned n, const E *row,
                                                    const struct one_arguments &p) {
    return row != NULL ? to_float(row[n]) : p.x[n];
}

/* Adds a product to the residual stream and publishes it. */
template <typename W>
static __device__ __forceinline__ void
add_to_residual(struct pipeline *pipe, const struct block_state *b, unsigned kind,
                const typename W::embedding *row, unsigned flag, const struct one_arguments &p) {
    const struct outputs out = W::own_outputs(pipe, kind, p);
    float early = threadIdx.x < out.count ? residual_at(out.first + threadIdx.x, row, p) : 0.0f;
    const typename W::scales scales = W::scales_of(pipe, b, kind, threadIdx.x, p);
    multiply_all<W>(pipe, b, kind, kind, p.held_back, p);
    for (unsigned i = threadIdx.x; i < out.count; i += ONE_THREADS) {
        unsigned n = out.first + i;
        float x = i == threadIdx.x ? early : residual_at(n, row, p);
        x += W::product_of(pipe, b, kind, i, scales_at<W>(pipe, b, kind, i, scales, p));
        p.x[n] = x;
        publish(p.residual, n, x, flag);
    }
}

/* Publishes queries, keys and values from the block's sums. */
template <typename W>
static __device__ __forceinline__ void
publish_qkv(const struct pipeline *pipe, const struct block_state *b,
            const typename W::scales &scales, unsigned tag, const struct one_arguments &p) {
    const struct outputs out = W::own_outputs(pipe, ONE_QKV, p);
    for (unsigned i = threadIdx.x; i < out.count; i += ONE_THREADS) {
        publish(p.qkv, out.first + i,
                W::product_of(pipe, b, ONE_QKV, i, scales_at<W>(pipe, b, ONE_QKV, i, scales, p)),
                tag);
    }
}

/* Publishes silu(gate) * up from the block's sums. */
template <typename W>
static __device__ __forceinline__ void
publish_gated(const struct pipeline *pipe, const struct block_state *b,
              const typename W::scales &scales, unsigned flag, const struct one_arguments &p) {
    const struct outputs out = W::own_outputs(pipe, ONE_GATE, p);
    for (unsigned i = threadIdx.x; i < out.count; i += ONE_THREADS) {
        float2 x = W::gate_and_up(pipe, b, i, scales_at<W>(pipe, b, ONE_GATE, i, scales, p));
        publish(p.gated, out.first + i, silu_of(x.x) * x.y, flag);
    }
}

template <typename W>
static __device__ __forceinline__ void
store_logits(const struct pipeline *pipe, const struct block_state *b,
             const typename W::scales &scales, const struct one_arguments &p) {
    const struct outputs out = W::own_outputs(pipe, ONE_CLASSIFIER, p);
    for (unsigned i = threadIdx.x; i < out.count; i += ONE_THREADS) {
        p.logits[out.first + i] = W::product_of(
            pipe, b, ONE_CLASSIFIER, i, scales_at<W>(pipe, b, ONE_CLASSIFIER, i, scales, p));
    }
}

#endif

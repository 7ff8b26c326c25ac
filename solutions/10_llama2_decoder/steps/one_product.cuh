/**
 * @file one_product.cuh
 * @brief d8's products: a warp multiplies slices of rows from its ring, a block puts them together.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_PRODUCT_CUH_

#include "solutions/10_llama2_decoder/steps/one_input.cuh"
#include "solutions/10_llama2_decoder/steps/one_ring.cuh"

/* What a lane multiplies a slice with: the input's pieces from `first` on. */
template <typename E> struct factors {
    static constexpr int COUNT = VECTOR_ELEMENTS<E>, ROUNDS = ONE_SLOT_BYTES / 512;
    float4 x[ROUNDS][COUNT / 4];
};

template <typename E>
static __device__ __forceinline__ struct factors<E> factors_of(const struct work *b, unsigned first,
                                                               unsigned pieces) {
    struct factors<E> f;
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

/* A lane's part of a slice. */
struct weights {
    uint4 x[ONE_SLOT_BYTES / 512];
};

/* @param WHOLE whether all slices are as long as a slot, @param left pieces of the row from the
   slice on */
template <bool WHOLE>
static __device__ __forceinline__ struct weights read_slot(unsigned slot, unsigned left) {
    struct weights w;
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < ONE_SLOT_BYTES / 512; i++) {
        w.x[i] = make_uint4(0, 0, 0, 0);
        if (WHOLE || lane + i * 32 < left) {
            w.x[i] = read_shared(slot + (lane + i * 32) * 16);
        }
    }
    return w;
}

template <typename E>
static __device__ __forceinline__ float dot(const struct weights &w, const struct factors<E> &f) {
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
 * slices are all at the same place of their rows reads its factors once. What the lanes have of a
 * slice is put together while the next one is multiplied. @param owed slices at the end
 */
template <typename E, bool WHOLE>
static __device__ __forceinline__ void multiply_slices(struct ring *r, const struct work *b,
                                                       unsigned kind, float *sums, unsigned owed,
                                                       const struct one &p) {
    constexpr unsigned PIECES = ONE_SLOT_BYTES / 16;
    const struct share share = r->plan->shares[kind];
    unsigned pieces = share.row_bytes / 16, warp = threadIdx.x / 32;
    unsigned count = begin_of(r->plan, kind)->count, slice = begin_of(r->plan, kind)->slice;
    struct factors<E> f = factors_of<E>(b, slice * PIECES, pieces);
    float last = 0.0f, *to = sums + warp;
    for (unsigned i = 0; i < count; i++) {
        struct weights w = read_slot<WHOLE>(wait(r), pieces - slice * PIECES);
        pass(r, i + owed >= count, p);
        float sum = dot<E>(w, f);
        last = warp_sum(last);
        if (threadIdx.x % 32 == 0 && i > 0) {
            to[(i - 1) * ONE_WARPS] = last;
        }
        last = sum;
        if (share.turn != 0) {
            next_slice(&slice, share);
            f = factors_of<E>(b, slice * PIECES, pieces);
        }
    }
    last = warp_sum(last);
    if (threadIdx.x % 32 == 0 && count > 0) {
        to[(count - 1) * ONE_WARPS] = last;
    }
}

template <typename E>
static __device__ __forceinline__ void multiply(struct ring *r, const struct work *b, unsigned kind,
                                                float *sums, unsigned owed, const struct one &p) {
    if (r->plan->shares[kind].row_bytes % ONE_SLOT_BYTES == 0) {
        multiply_slices<E, true>(r, b, kind, sums, owed, p);
    } else {
        multiply_slices<E, false>(r, b, kind, sums, owed, p);
    }
}

/* A row's product. */
static __device__ __forceinline__ float product_of(const struct work *b, const float *sums,
                                                   const struct share *share, unsigned row) {
    float sum = 0.0f;
#pragma unroll 4
    for (unsigned i = 0; i < share->slices; i++) {
        sum += sums[row * share->slices + i];
    }
    return sum * b->factor;
}

/* The block's rows of all matrices from `kind` to `last`, which have as many rows each, times b->x,
   to b->sums. */
template <typename E>
static __device__ __forceinline__ void multiply_all(struct ring *r, const struct work *b,
                                                    unsigned kind, unsigned last, unsigned owed,
                                                    const struct one &p) {
    float *sums = b->sums;
#pragma unroll 1
    for (; kind <= last; kind++) {
        multiply<E>(r, b, kind, sums, kind == last ? owed : 0, p);
        sums += r->plan->shares[kind].rows * r->plan->shares[kind].slices;
    }
    __syncthreads();
}

/* Row n of the residual stream. @param row the embedding's, where the stream begins; else NULL */
template <typename E>
static __device__ __forceinline__ float stream_at(unsigned n, const E *row, const struct one &p) {
    return row != NULL ? to_float(row[n]) : p.x[n];
}

/* A product added to the residual stream, for all to see. */
template <typename E>
static __device__ __forceinline__ void add_product(struct ring *r, const struct work *b,
                                                   unsigned kind, const E *row, unsigned bit,
                                                   const struct one &p) {
    const struct share *share = &r->plan->shares[kind];
    float early = threadIdx.x < share->rows ? stream_at(share->first + threadIdx.x, row, p) : 0.0f;
    multiply_all<E>(r, b, kind, kind, ONE_OWED, p);
    for (unsigned i = threadIdx.x; i < share->rows; i += ONE_THREADS) {
        unsigned n = share->first + i;
        float x = i == threadIdx.x ? early : stream_at(n, row, p);
        x += product_of(b, b->sums, share, i);
        p.x[n] = x;
        show(p.stream, n, x, bit);
    }
}

/* Queries, keys and values, whose block's sums are there, are sent. */
static __device__ __forceinline__ void send_qkv(const struct ring *r, const struct work *b,
                                                unsigned tag, const struct one &p) {
    const struct share *share = &r->plan->shares[ONE_QKV];
    for (unsigned row = threadIdx.x; row < share->rows; row += ONE_THREADS) {
        send(p.qkv, share->first + row, product_of(b, b->sums, share, row), tag);
    }
}

/* silu(gate) * up, both of whose sums are there, is shown. */
static __device__ __forceinline__ void show_gated(const struct ring *r, const struct work *b,
                                                  unsigned bit, const struct one &p) {
    const struct share *share = &r->plan->shares[ONE_GATE];
    const float *ups = b->sums + share->rows * share->slices;
    for (unsigned row = threadIdx.x; row < share->rows; row += ONE_THREADS) {
        float gate = product_of(b, b->sums, share, row), up = product_of(b, ups, share, row);
        show(p.gated, share->first + row, silu_of(gate) * up, bit);
    }
}

static __device__ __forceinline__ void put_logits(const struct ring *r, const struct work *b,
                                                  const struct one &p) {
    const struct share *share = &r->plan->shares[ONE_CLASSIFIER];
    for (unsigned row = threadIdx.x; row < share->rows; row += ONE_THREADS) {
        p.logits[share->first + row] = product_of(b, b->sums, share, row);
    }
}

#endif

/**
 * @file tile_loads.cuh
 * @brief Shared by several steps: the sequence and queries of a block, visible keys, copies of
 * rows.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_TILE_LOADS_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_TILE_LOADS_CUH_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/async_copy.cuh"
#include "common/cuda/convert.cuh"
#include "common/cuda/math.cuh"
#include "common/cuda/mma.cuh"
#include "common/cuda/warp.cuh"
#include "labs/07_attention/attention.h"

/* One sequence and one head, as a block sees them; pointers are at the head's first channel. */
template <typename E> struct sequence {
    const E *q, *k, *v;
    E *out;
    const uint8_t *mask; /* (S), or NULL */
    int T, S;
    int first; /* the block's first query; at or beyond T: the block has nothing to do */
};

/* The sequence `b` and head `h`; first is not set. */
template <typename E>
static __device__ __forceinline__ struct sequence<E> sequence_of(const struct attention_problem &p,
                                                                 size_t b, unsigned h) {
    size_t q_token = b * p.T, kv_token = b * p.S;
    int T = (int)p.T, S = (int)p.S;
    if (p.starts != NULL) {
        int start = p.starts[b];
        T = S = p.starts[b + 1] - start;
        q_token = kv_token = (size_t)start;
    }
    unsigned group =
        (unsigned)p.NH / (unsigned)p.KVH; /* a division of 64 bits is 100 instructions */
    size_t kv = kv_token * p.kv_stride + h / group * p.HS;
    struct sequence<E> s;
    s.q = (const E *)p.q + q_token * p.q_stride + h * p.HS;
    s.k = (const E *)p.k + kv;
    s.v = (const E *)p.v + kv;
    s.out = (E *)p.out + q_token * p.out_stride + h * p.HS;
    s.mask = p.mask != NULL ? p.mask + b * p.S : NULL;
    s.T = T;
    s.S = S;
    s.first = 0;
    return s;
}

/* Blocks are (b, h, tile) in blockIdx.x, tiles of `rows` queries innermost; causal tiles, which
   have the more keys the later they come, come last first. */
template <typename E>
static __device__ __forceinline__ struct sequence<E>
padded_sequence(const struct attention_problem &p, unsigned rows) {
    unsigned tiles = (unsigned)((p.T + rows - 1) / rows);
    unsigned tile = blockIdx.x % tiles, rest = blockIdx.x / tiles;
    struct sequence<E> s = sequence_of<E>(p, rest / (unsigned)p.NH, rest % (unsigned)p.NH);
    s.first = (int)((p.causal ? tiles - 1 - tile : tile) * rows);
    return s;
}

/* Where the logarithms (tokens, NH) of the sequence's head begin; out is contiguous. */
template <typename E>
static __device__ __forceinline__ float *lse_of_head(float *lse, const struct sequence<E> &s,
                                                     const struct attention_problem &p) {
    return lse + (size_t)(s.out - (E *)p.out) / p.HS;
}

/* Number of keys that the query sees without a mask. */
template <typename E>
static __device__ __forceinline__ int keys_seen(const struct sequence<E> &s, bool causal, int t) {
    return causal ? min(s.S - s.T + t + 1, s.S) : s.S;
}

/* A tile of keys: bit i of visible says whether some query may see key tile * KEYS + i. */
struct key_tile {
    int tile;
    unsigned long long visible;
};

/* The lowest `count` bits; none when it is not positive. */
static __device__ __forceinline__ unsigned long long low_bits(int count) {
    return count >= 64 ? ~0ull : count <= 0 ? 0ull : (1ull << count) - 1;
}

/*
 * The tile, and which of its keys before `end` the mask leaves. With `skip`, the first such tile
 * from there on that has any. Every warp of the block finds the same, so no barrier is needed.
 */
template <int KEYS>
static __device__ __forceinline__ struct key_tile seek(const uint8_t *mask, int tile, int end,
                                                       bool skip) {
    static_assert(KEYS == 32 || KEYS == 64, "one or two keys a lane");
    int lane = threadIdx.x % 32;
    for (;; tile++) {
        int first = tile * KEYS;
        unsigned long long visible = low_bits(min(end - first, KEYS));
        if (mask != NULL && first < end) {
            bool low = first + lane < end && mask[first + lane] != 0;
            bool high = KEYS == 64 && first + 32 + lane < end && mask[first + 32 + lane] != 0;
            visible = __ballot_sync(~0u, low);
            if (KEYS == 64) {
                visible |= (unsigned long long)__ballot_sync(~0u, high) << 32;
            }
        }
        if (!skip || visible != 0 || first >= end) {
            return {tile, visible};
        }
    }
}

/*
 * Starts copying ROWS rows of a head, `stride` elements apart, to rows of `pitch` elements; rows
 * that `inside` denies and channels from `channels` up to HS become 0. With `vector`, 16 bytes at a
 * time; otherwise fp32 by 4 bytes, and 16-bit elements by plain loads and stores.
 */
template <int ROWS, int HS, int THREADS, typename E, typename INSIDE>
static __device__ __forceinline__ void load_rows(E *to, int pitch, const E *from, size_t stride,
                                                 int channels, bool vector, INSIDE inside) {
    constexpr int WIDE = 16 / sizeof(E), CHUNKS = HS / WIDE;
    static_assert(ROWS * CHUNKS % THREADS == 0, "every thread copies as often");
    if (vector) {
#pragma unroll
        for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
            int index = (int)threadIdx.x + i * THREADS, row = index / CHUNKS;
            int channel = index % CHUNKS * WIDE;
            bool there = inside(row) && channel < channels;
            cp_async<16>(to + row * pitch + channel, there ? from + row * stride + channel : from,
                         there);
        }
        return;
    }
    for (int index = threadIdx.x; index < ROWS * HS; index += THREADS) {
        int row = index / HS, channel = index % HS;
        bool there = inside(row) && channel < channels;
        E *place = to + row * pitch + channel;
        const E *source = there ? from + row * stride + channel : from;
        if (sizeof(E) == 4) {
            cp_async<4>(place, source, there);
        } else {
            *place = there ? *source : from_float<E>(0.0f);
        }
    }
}

/*
 * The 16-byte pieces of tiles of a head's rows that one thread copies: one of each PASS rows,
 * always the same channels. Values that do not depend on the tile are kept, so that a copy is few
 * instructions.
 */
template <int HS, int THREADS, typename E> struct pieces {
    static constexpr int WIDE = 16 / sizeof(E), CHUNKS = HS / WIDE, PASS = THREADS / CHUNKS;
    const E *from; /* row 0 of the sequence, at the thread's row and channel */
    size_t stride; /* elements from row to row */
    int row;       /* of the tile, the thread's first */
    bool there;    /* whether the head has these channels */
};

template <int HS, int THREADS, typename E>
static __device__ __forceinline__ struct pieces<HS, THREADS, E>
pieces_of(const E *head, size_t stride, int channels) {
    typedef struct pieces<HS, THREADS, E> P;
    static_assert(THREADS % P::CHUNKS == 0, "a thread keeps its channels");
    int channel = (int)threadIdx.x % P::CHUNKS * P::WIDE;
    P p;
    p.row = (int)threadIdx.x / P::CHUNKS;
    p.there = channel < channels;
    p.from = head + (p.there ? p.row * stride + channel : 0);
    p.stride = stride;
    return p;
}

/* Starts copying the thread's pieces of ROWS rows from row `first` on; unless `all`, visible() says
   which rows are not 0. `place`: of the thread's first piece; the next ones are `step` elements on.
 */
template <int ROWS, int HS, int THREADS, typename E, typename VISIBLE>
static __device__ __forceinline__ void copy_rows(E *place, int step,
                                                 const struct pieces<HS, THREADS, E> &p,
                                                 size_t first, bool all, VISIBLE visible) {
    constexpr int PASS = pieces<HS, THREADS, E>::PASS;
    static_assert(ROWS % PASS == 0 && ROWS <= 64, "every thread copies as often");
    const E *from = p.from + first * p.stride;
    if (all && p.there) {
#pragma unroll
        for (int i = 0; i < ROWS / PASS; i++) {
            cp_async<16>(place + i * step, from, true);
            from += PASS * p.stride;
        }
        return;
    }
    unsigned long long rows = p.there ? visible() >> p.row : 0;
#pragma unroll
    for (int i = 0; i < ROWS / PASS; i++) {
        bool there = (rows >> i * PASS & 1) != 0;
        cp_async<16>(place + i * step, there ? from + i * PASS * p.stride : p.from, there);
    }
}

/* Whether every token's every head begins 16-byte aligned, in q, k and v. */
static inline bool heads_aligned(const struct attention_problem *p) {
    size_t element = nn_dtype_bytes(p->dtype);
    size_t bytes = (p->HS | p->q_stride | p->kv_stride) * element;
    return (((uintptr_t)p->q | (uintptr_t)p->k | (uintptr_t)p->v | bytes) & 15u) == 0;
}

/* Blocks of `rows` queries each, for the padded form (and, where sequences are shorter, blocks that
   end at once). */
static inline enum status count_blocks(const struct attention_problem *p, size_t rows,
                                       unsigned *blocks, struct error *error) {
    size_t count = p->B * p->NH * ((p->T + rows - 1) / rows);
    if (p->B * p->NH > INT_MAX || count > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: B = %zu, NH = %zu, T = %zu need more than %d blocks", p->B,
                         p->NH, p->T, INT_MAX);
    }
    *blocks = (unsigned)(p->HS == 0 ? 0 : count);
    return STATUS_OK;
}

#endif

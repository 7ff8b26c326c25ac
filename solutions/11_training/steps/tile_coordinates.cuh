/**
 * @file tile_coordinates.cuh
 * @brief The tiles of v4 and v5: rows that a block owns, and other rows that it loops over.
 *
 * dk and dv are sums over queries, dq is a sum over keys. For the block that accumulates them both
 * are the same computation. It has operands x and y of its own rows, and, tile by tile, x' and y'
 * of the other rows, and computes
 *
 *     p = exp(scale * x . x' - lse),  ds = p * (y . y' - delta),
 *     first = scale * sum of ds * x',  second = sum of p * y'.
 *
 *                     x, y           x', y'         first    second
 *     keys own        k, v           q, dout        dk       dv
 *     queries own     q, dout        k, v           dq       -
 *
 * lse and delta = dout . out belong to the query. p and ds are computed twice, once in each kernel:
 * two products of seven, but no sum leaves its block, and the order of each sum is fixed.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_TILE_COORDINATES_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_TILE_COORDINATES_CUH_

#include "solutions/11_training/steps/ladder.h"
#include "solutions/11_training/steps/vectors.cuh"

#define LOG2_E 1.4426950408889634f

/* Operands of one head of one sequence: pointers to its row 0 and first channel. */
template <typename E> struct operands {
    const E *x, *y;
    size_t x_stride, y_stride;
};

template <typename E>
static __device__ __forceinline__ struct operands<E>
query_operands(const struct attention_backward_problem &p, size_t start, unsigned h) {
    size_t stride = p.NH * p.HS, q = start * p.q_stride + h * p.HS,
           dout = start * stride + h * p.HS;
    return {(const E *)p.q + q, (const E *)p.dout + dout, p.q_stride, stride};
}

template <typename E>
static __device__ __forceinline__ struct operands<E>
key_operands(const struct attention_backward_problem &p, size_t start, unsigned h) {
    size_t first = start * p.kv_stride + h * p.HS;
    return {(const E *)p.k + first, (const E *)p.v + first, p.kv_stride, p.kv_stride};
}

/* Statistics of each query of each head, in the scratch memory: (NH, rows), so that those of a tile
   are contiguous. */
struct query_stats {
    float *lse; /* times log2 e */
    float *delta;
};

static __host__ __device__ __forceinline__ struct query_stats
query_stats_in(const struct attention_backward_problem &p, void *scratch) {
    return {(float *)scratch, (float *)scratch + p.NH * p.rows};
}

/* A block's tile: OWN rows of a head of a sequence, and the heads and tiles of other rows. */
struct tile_coordinates {
    unsigned sequence;
    size_t start;              /* the sequence's first row */
    int T;                     /* its length */
    int first;                 /* the block's first row; at or beyond T: nothing to do */
    unsigned head;             /* of the own rows */
    unsigned other, other_end; /* heads that it loops over */
    int tile, tile_end;        /* tiles of each of them */
};

/* The block's number is (sequence, head, tile), tiles innermost. The blocks with the most work come
   first: of causal sequences the first keys, and the last queries. */
template <bool KEYS_OWN, int OWN, int OTHER>
static __device__ __forceinline__ struct tile_coordinates
locate_tile(const struct attention_backward_problem &p, unsigned block = blockIdx.x) {
    unsigned heads = (unsigned)(KEYS_OWN ? p.KVH : p.NH), group = (unsigned)(p.NH / p.KVH);
    unsigned tiles = (unsigned)((p.longest + OWN - 1) / OWN);
    unsigned tile = block % tiles, rest = block / tiles, b = rest / heads;
    struct tile_coordinates s;
    s.sequence = b;
    s.start = (size_t)p.starts[b];
    s.T = p.starts[b + 1] - p.starts[b];
    s.head = rest % heads;
    s.first = (int)((p.causal && !KEYS_OWN ? tiles - 1 - tile : tile) * OWN);
    s.other = KEYS_OWN ? s.head * group : s.head / group;
    s.other_end = s.other + (KEYS_OWN ? group : 1);
    s.tile = p.causal && KEYS_OWN ? s.first / OTHER : 0;
    int end = p.causal && !KEYS_OWN ? min(s.first + OWN, s.T) : s.T;
    s.tile_end = (end + OTHER - 1) / OTHER;
    return s;
}

template <bool KEYS_OWN, typename E>
static __device__ __forceinline__ struct operands<E>
own_operands(const struct attention_backward_problem &p, const struct tile_coordinates &s) {
    return KEYS_OWN ? key_operands<E>(p, s.start, s.head) : query_operands<E>(p, s.start, s.head);
}

template <bool KEYS_OWN, typename E>
static __device__ __forceinline__ struct operands<E>
other_operands(const struct attention_backward_problem &p, const struct tile_coordinates &s,
               unsigned head) {
    return KEYS_OWN ? query_operands<E>(p, s.start, head) : key_operands<E>(p, s.start, head);
}

/* Whether the query sees the key; the other row may lie behind the sequence. */
template <bool KEYS_OWN>
static __device__ __forceinline__ bool is_visible(int own, int other, int T, bool causal) {
    int query = KEYS_OWN ? other : own, key = KEYS_OWN ? own : other;
    return other < T && (!causal || key <= query);
}

/* Whether all queries see all keys, of `count` own rows and `others` other rows. */
template <bool KEYS_OWN>
static __device__ __forceinline__ bool all_visible(int own, int count, int other, int others, int T,
                                                   bool causal) {
    int query = KEYS_OWN ? other : own, key = KEYS_OWN ? own + count - 1 : other + others - 1;
    return other + others <= T && (!causal || key <= query);
}

/* Whether no query sees any of the keys. */
template <bool KEYS_OWN>
static __device__ __forceinline__ bool none_visible(int own, int count, int other, int others,
                                                    int T, bool causal) {
    int query = KEYS_OWN ? other + others - 1 : own + count - 1, key = KEYS_OWN ? own : other;
    return other >= T || (causal && key > query);
}

/* The grid: tiles of `own` rows, as many for each sequence as the longest one has. */
static inline enum status count_tiles(const struct attention_backward_problem *p, bool keys_own,
                                      size_t own, unsigned *blocks, struct error *error) {
    size_t tiles = (p->longest + own - 1) / own;
    return count_blocks("attention_backward", p->B * (keys_own ? p->KVH : p->NH) * tiles, blocks,
                        error);
}

#endif

/**
 * @file sides.cuh
 * @brief How v4 and v5 see attention's gradient: rows that a block owns, and rows it goes through.
 *
 * dk and dv are sums over queries, dq is a sum over keys. Seen from the block that has the sums in
 * its registers, both are the same: of its own rows it knows x and y, of the others, tile by tile,
 * x' and y', and
 *
 *     p = exp(scale * x . x' - lse),  ds = p * (y . y' - delta),
 *     first = scale * sum of ds * x',  second = sum of p * y'.
 *
 *                     x, y           x', y'         first    second
 *     keys own        k, v           q, dout        dk       dv
 *     queries own     q, dout        k, v           dq       -
 *
 * lse and delta = dout . out belong to the query. So p and ds are computed twice, once for each
 * kernel; that costs two products of seven, but no sum needs to leave a block, and the order of
 * each is fixed.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_SIDES_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_SIDES_CUH_

#include "solutions/11_training/steps/ladder.h"
#include "solutions/11_training/steps/parts.cuh"

#define LOG2_E 1.4426950408889634f

/* One head of one sequence: pointers are at its row 0 and first channel. */
template <typename E> struct side {
    const E *x, *y;
    size_t x_stride, y_stride;
};

template <typename E>
static __device__ __forceinline__ struct side<E>
queries_of(const struct attention_backward_problem &p, size_t start, unsigned h) {
    size_t stride = p.NH * p.HS, q = start * p.q_stride + h * p.HS,
           dout = start * stride + h * p.HS;
    return {(const E *)p.q + q, (const E *)p.dout + dout, p.q_stride, stride};
}

template <typename E>
static __device__ __forceinline__ struct side<E> keys_of(const struct attention_backward_problem &p,
                                                         size_t start, unsigned h) {
    size_t first = start * p.kv_stride + h * p.HS;
    return {(const E *)p.k + first, (const E *)p.v + first, p.kv_stride, p.kv_stride};
}

/* What belongs to each query of each head, in the scratch memory: (NH, rows), so that a tile's are
   neighbours. */
struct query_numbers {
    float *lse; /* times log2 e */
    float *delta;
};

static __host__ __device__ __forceinline__ struct query_numbers
numbers_in(const struct attention_backward_problem &p, void *scratch) {
    return {(float *)scratch, (float *)scratch + p.NH * p.rows};
}

/* What a block works on: OWN rows of a head of a sequence, and heads and tiles of the others. */
struct block_place {
    size_t start;              /* the sequence's first row */
    int T;                     /* its length */
    int first;                 /* the block's first row; at or beyond T: nothing to do */
    unsigned head;             /* of the own rows */
    unsigned other, other_end; /* heads that it goes through */
    int tile, tile_end;        /* tiles of each of them */
};

/* Blocks are (sequence, head, tile) in blockIdx.x, tiles innermost; those with the most to do come
   first: of causal sequences the first keys, and the last queries. */
template <bool KEYS_OWN, int OWN, int OTHER>
static __device__ __forceinline__ struct block_place
place_block(const struct attention_backward_problem &p) {
    unsigned heads = (unsigned)(KEYS_OWN ? p.KVH : p.NH), group = (unsigned)(p.NH / p.KVH);
    unsigned tiles = (unsigned)((p.longest + OWN - 1) / OWN);
    unsigned tile = blockIdx.x % tiles, rest = blockIdx.x / tiles, b = rest / heads;
    struct block_place s;
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
static __device__ __forceinline__ struct side<E>
own_side(const struct attention_backward_problem &p, const struct block_place &s) {
    return KEYS_OWN ? keys_of<E>(p, s.start, s.head) : queries_of<E>(p, s.start, s.head);
}

template <bool KEYS_OWN, typename E>
static __device__ __forceinline__ struct side<E>
other_side(const struct attention_backward_problem &p, const struct block_place &s, unsigned head) {
    return KEYS_OWN ? queries_of<E>(p, s.start, head) : keys_of<E>(p, s.start, head);
}

/* Whether own row `own` has to do with the other row, which may lie behind the sequence. */
template <bool KEYS_OWN>
static __device__ __forceinline__ bool sees(int own, int other, int T, bool causal) {
    int query = KEYS_OWN ? other : own, key = KEYS_OWN ? own : other;
    return other < T && (!causal || key <= query);
}

/* Whether all of COUNT own rows have to do with all of OTHERS other rows. */
template <bool KEYS_OWN>
static __device__ __forceinline__ bool sees_all(int own, int count, int other, int others, int T,
                                                bool causal) {
    int query = KEYS_OWN ? other : own, key = KEYS_OWN ? own + count - 1 : other + others - 1;
    return other + others <= T && (!causal || key <= query);
}

/* Whether none has to do with any. */
template <bool KEYS_OWN>
static __device__ __forceinline__ bool sees_none(int own, int count, int other, int others, int T,
                                                 bool causal) {
    int query = KEYS_OWN ? other + others - 1 : own + count - 1, key = KEYS_OWN ? own : other;
    return other >= T || (causal && key > query);
}

/* Blocks of OWN rows, of the longest sequence in each. */
static inline enum status count_places(const struct attention_backward_problem *p, bool keys_own,
                                       size_t own, unsigned *blocks, struct error *error) {
    size_t tiles = (p->longest + own - 1) / own;
    return count_blocks("attention_backward", p->B * (keys_own ? p->KVH : p->NH) * tiles, blocks,
                        error);
}

#endif

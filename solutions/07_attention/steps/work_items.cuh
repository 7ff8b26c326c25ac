/**
 * @file work_items.cuh
 * @brief The items that the persistent blocks of step v7 take: a head's queries, `rows` at a time.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_WORK_ITEMS_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_WORK_ITEMS_CUH_

#include "solutions/07_attention/steps/tile_list.cuh"

/* One item; rows and columns are those of the matrices (tokens, heads * HS) that the TMA reads. */
template <typename E> struct work_item {
    struct sequence<E> s;    /* with its first query */
    int q_token, kv_token;   /* the sequence's first rows */
    int q_column, kv_column; /* the head's first channels */
};

/* How many items there are, and the order of those of the padded form: the tiles of
   `heads_together` heads, the last tile of each head first if that has the most keys. So blocks
   that run together read the keys of these heads alone, which L2 holds. */
struct work_order {
    unsigned items, tiles, heads_together;
};

template <typename E>
static __device__ __forceinline__ struct work_item<E>
work_item_of(const struct attention_problem &p, size_t b, unsigned h, int first) {
    struct work_item<E> item;
    unsigned group = (unsigned)p.NH / (unsigned)p.KVH;
    item.s = sequence_of<E>(p, b, h);
    item.s.first = first;
    item.q_token = p.starts != NULL ? p.starts[b] : (int)(b * p.T);
    item.kv_token = p.starts != NULL ? p.starts[b] : (int)(b * p.S);
    item.q_column = (int)(h * (unsigned)p.HS);
    item.kv_column = (int)(h / group * (unsigned)p.HS);
    return item;
}

template <typename E>
static __device__ __forceinline__ struct work_item<E>
work_item_at(const struct attention_problem &p, const struct no_list &,
             const struct work_order &order, unsigned index, int rows) {
    unsigned together = order.heads_together, heads = (unsigned)(p.B * p.NH);
    unsigned group = index / (together * order.tiles), inside = index % (together * order.tiles);
    unsigned width = min(together, heads - group * together);
    unsigned tile = inside / width, head = group * together + inside % width;
    tile = p.causal ? order.tiles - 1 - tile : tile;
    return work_item_of<E>(p, head / (unsigned)p.NH, head % (unsigned)p.NH, (int)tile *rows);
}

template <typename E>
static __device__ __forceinline__ struct work_item<E>
work_item_at(const struct attention_problem &p, const struct tile_list &list,
             const struct work_order &, unsigned index, int rows) {
    unsigned i = index / (unsigned)p.NH;
    return work_item_of<E>(p, list.tiles[i].sequence, index % (unsigned)p.NH,
                           (int)list.tiles[i].tile *rows);
}

/* The block's item of a round. Items become shorter, so every second round goes backwards: a block
   that had the longest of one round has the shortest of the next. */
static __device__ __forceinline__ unsigned
index_of_round(unsigned round) {
    unsigned place = round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    return round * gridDim.x + place;
}

/* Heads whose keys and values fill at most a part of L2 that other data leave. */
static inline unsigned count_heads_together(const struct attention_problem *p, size_t l2_bytes) {
    size_t bytes = 2 * p->S * p->HS * nn_dtype_bytes(p->dtype) * p->KVH / p->NH + 1;
    size_t heads = l2_bytes / 2 / bytes, all = p->B * p->NH;
    return (unsigned)(heads < 1 ? 1 : heads < all ? heads : all);
}

#endif

/**
 * @file work_items.cuh
 * @brief The items that the persistent blocks of step v7 take: a head's queries, `rows` at a time.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_WORK_ITEMS_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_WORK_ITEMS_CUH_

#include <string.h>

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

/* ---- Host ---- */

/* A causal launch: its heads' tiles, the keys of tile 0 and of each one more, and its blocks. */
struct causal_shares {
    size_t heads, tiles, blocks, first_keys, tile_keys, most_keys;
};

static inline struct causal_shares causal_shares_of(const struct attention_problem *p,
                                                    const struct work_order &order, int rows,
                                                    unsigned most_blocks) {
    size_t blocks = order.items < most_blocks ? order.items : most_blocks;
    size_t first = p->S - p->T + (size_t)rows;
    return {p->B * p->NH, order.tiles, blocks, first, (size_t)rows, p->S};
}

/* The longest of all blocks' shares, in keys, in the order of work_item_at() and index_of_round().
   An item's start and end take as long as ITEM keys. */
static inline size_t longest_share(const struct causal_shares &c, size_t together) {
    constexpr size_t ITEM = 100, MOST_BLOCKS = 256;
    size_t shares[MOST_BLOCKS] = {}, longest = 0, place = 0;
    bool backwards = false;
    for (size_t first = 0; first < c.heads && c.blocks <= MOST_BLOCKS; first += together) {
        size_t width = c.heads - first < together ? c.heads - first : together;
        for (size_t i = 0; i < c.tiles * width; i++) {
            size_t keys = c.first_keys + (c.tiles - 1 - i / width) * c.tile_keys;
            size_t *share = &shares[backwards ? c.blocks - 1 - place : place];
            *share += ITEM + (keys < c.most_keys ? keys : c.most_keys);
            longest = *share > longest ? *share : longest;
            if (++place == c.blocks) {
                place = 0, backwards = !backwards;
            }
        }
    }
    return longest;
}

/* How many heads a causal launch takes together: of the numbers whose keys and values fill a
   quarter to half of L2, and of all heads if they fill at most three quarters, the one that gives
   blocks the most equal shares. (Each group of heads begins with its longest items.) H100, ms: 32
   heads of 2048 tokens, 128 channels, 0.0661 all together, 0.0934 by 25 and 0.0832 by 22; 64
   heads 0.1258 by 22, 0.1433 by 25, 0.1331 by 33, 0.1502 together. */
static inline size_t choose_heads_together(const struct attention_problem *p,
                                           const struct causal_shares &c, size_t l2_bytes) {
    size_t bytes = 2 * p->S * p->HS * nn_dtype_bytes(p->dtype) * p->KVH / p->NH + 1;
    size_t half = l2_bytes / 2 / bytes, most = half < 1 ? 1 : half < c.heads ? half : c.heads;
    size_t best = l2_bytes / 4 * 3 / bytes >= c.heads ? c.heads : most;
    size_t least = longest_share(c, best);
    for (size_t together = most; best < c.heads && together > most / 2; together--) {
        size_t longest = longest_share(c, together);
        if (longest < least) {
            best = together, least = longest;
        }
    }
    return best;
}

/* The same; a model's layers ask for the same one after the other, so the last answer is kept. */
static inline unsigned count_heads_together(const struct attention_problem *p,
                                            const struct causal_shares &c, size_t l2_bytes) {
    static thread_local struct {
        struct causal_shares shares;
        size_t head_bytes, together;
    } last;
    size_t head_bytes = p->HS * nn_dtype_bytes(p->dtype) * p->KVH / p->NH;
    if (last.together == 0 || last.head_bytes != head_bytes ||
        memcmp(&last.shares, &c, sizeof c) != 0) {
        last.head_bytes = head_bytes, last.shares = c;
        last.together = choose_heads_together(p, c, l2_bytes);
    }
    return (unsigned)last.together;
}

#endif

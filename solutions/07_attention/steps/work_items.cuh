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

/* A causal launch of padded texts: its heads, their tiles of `rows` queries, its blocks, the keys
   of the first and of the last tile; keys are read `step` at a time. */
struct causal_shares {
    size_t heads, tiles, rows, blocks, first_keys, last_keys, step;
};

static inline struct causal_shares causal_shares_of(const struct attention_problem *p, size_t rows,
                                                    size_t step, size_t most_blocks) {
    size_t heads = p->B * p->NH, tiles = (p->T + rows - 1) / rows;
    size_t blocks = heads * tiles < most_blocks ? heads * tiles : most_blocks;
    return {heads, tiles, rows, blocks, p->S - p->T + rows, p->S, step};
}

struct causal_plan {
    size_t heads_together, longest_share; /* of a block, in keys */
};

/* The longest of all blocks' shares, in keys, in the order of work_item_at() and index_of_round().
   An item's start and end take as long as ITEM keys. */
static inline size_t longest_share(const struct causal_shares &c, size_t together) {
    constexpr size_t ITEM = 200, MOST_BLOCKS = 256;
    size_t shares[MOST_BLOCKS] = {}, longest = 0, place = 0;
    bool backwards = false;
    for (size_t first = 0; first < c.heads && c.blocks <= MOST_BLOCKS; first += together) {
        size_t width = c.heads - first < together ? c.heads - first : together;
        for (size_t tile = c.tiles; tile-- > 0;) {
            size_t keys = c.first_keys + tile * c.rows;
            keys = keys < c.last_keys ? keys : c.last_keys;
            keys = ITEM + (keys + c.step - 1) / c.step * c.step;
            for (size_t head = 0; head < width; head++) {
                size_t *share = &shares[backwards ? c.blocks - 1 - place : place];
                *share += keys;
                longest = *share > longest ? *share : longest;
                if (++place == c.blocks) {
                    place = 0, backwards = !backwards;
                }
            }
        }
    }
    return longest;
}

/* How many heads a causal launch takes together: of the numbers whose keys and values fill a
   quarter to half of L2, and of all heads if they fill at most three quarters, the one that gives
   blocks the most equal shares; of many items shares are equal. (Each group of heads begins with
   its longest items.) H100, ms: 32 heads of 2048 tokens, 128 channels, 0.0661 all together, 0.0934
   by 25 and 0.0832 by 22; 64 heads 0.1258 by 22, 0.1433 by 25, 0.1331 by 33, 0.1502 together. */
static inline struct causal_plan plan_causal(const struct causal_shares &c, size_t head_bytes,
                                             size_t l2_bytes) {
    size_t half = l2_bytes / 2 / head_bytes, most = half < 1 ? 1 : half < c.heads ? half : c.heads;
    size_t first = l2_bytes / 4 * 3 / head_bytes >= c.heads ? c.heads : most;
    bool search = first < c.heads && c.heads * c.tiles <= 64 * c.blocks;
    struct causal_plan best = {first, longest_share(c, first)};
    for (size_t n = most; search && n > most / 2; n -= 1 + most / 32) {
        size_t longest = longest_share(c, n);
        if (longest < best.longest_share) {
            best = {n, longest};
        }
    }
    return best;
}

/* The same; a model's layers ask for the same one after the other, so the last answer is kept, of
   each TILE. */
template <typename TILE>
static struct causal_plan causal_plan_of(const struct attention_problem *p, size_t most_blocks) {
    static const size_t l2_bytes = (size_t)gpu_attribute(cudaDevAttrL2CacheSize);
    static thread_local struct {
        struct causal_shares shares;
        size_t head_bytes;
        struct causal_plan plan;
    } last;
    const struct causal_shares shares = causal_shares_of(p, TILE::QUERIES, TILE::KEYS, most_blocks);
    size_t head_bytes = 2 * p->S * p->HS * nn_dtype_bytes(p->dtype) * p->KVH / p->NH + 1;
    if (last.head_bytes != head_bytes || memcmp(&last.shares, &shares, sizeof shares) != 0) {
        last = {shares, head_bytes, plan_causal(shares, head_bytes, l2_bytes)};
    }
    return last.plan;
}

#endif

/**
 * @file d8_split.cuh
 * @brief d8's split-KV: a block has a team of queries, which share a key head, and one split of the
 * context.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_SPLIT_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_SPLIT_CUH_

#include "solutions/10_llama2_decoder/steps/d8_kernel.cuh"

/* Fewest keys of a split; largest head. */
enum { ONE_SPLIT_KEYS = 128, ONE_MAX_HS = 256 };

static __device__ __forceinline__ unsigned smaller(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* x / y for x < 2^20, without the many instructions of a division of integers. */
static __device__ __forceinline__ unsigned small_quotient(unsigned x, unsigned y) {
    return (unsigned)__fdividef((float)x + 0.5f, (float)y);
}

/* Splits of a context of `keys` keys for each of `teams` teams on `blocks` blocks. */
static __host__ __device__ __forceinline__ unsigned one_splits(unsigned keys, unsigned teams,
                                                               unsigned blocks) {
    unsigned most = blocks / teams > 0 ? blocks / teams : 1;
    unsigned splits = (keys + ONE_SPLIT_KEYS - 1) / ONE_SPLIT_KEYS;
    return splits < most ? splits : most;
}

/* A block's work in attention: a team's GROUP queries over one split of the context. */
struct split_item {
    unsigned team, split, splits;
    unsigned head;       /* key head */
    unsigned first, end; /* keys of earlier tokens */
    bool has_newest;     /* whether the split has this token's own key, too */
    bool active;         /* whether the block has work */
    unsigned present;    /* bit i: whether there is partial result i of the block */
};

template <int GROUP>
static __device__ __forceinline__ struct split_item split_item_of(const struct one_arguments &p) {
    unsigned position = (unsigned)p.position, keys = position + 1, teams = p.NH / GROUP;
    unsigned splits = one_splits(keys, teams, gridDim.x), size = (keys + splits - 1) / splits;
    struct split_item item;
    item.splits = (keys + size - 1) / size; /* no split is empty */
    item.team = blockIdx.x / item.splits;
    item.split = blockIdx.x % item.splits;
    item.head = item.team * GROUP / (p.NH / p.KVH);
    item.first = item.split * size;
    item.end = smaller(item.first + size, position);
    item.has_newest = item.first + size > position;
    item.active = item.team < teams;
    return item;
}

#endif

/**
 * @file hopper_backward_block.cuh
 * @brief What the roles of v6's kernel share: sizes, barriers, items, and the order in which blocks
 *        add to dq.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_BLOCK_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_BLOCK_CUH_

#include <cuda.h>

#include "solutions/11_training/steps/tile_coordinates.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#endif

typedef __nv_bfloat16 bf16;

/* Sizes of the kernel for heads of HS_ channels, in elements: a block owns KEYS keys, 64 for each
   of two consumer warpgroups, and passes over tiles of QUERIES queries. */
template <int HS_> struct hopper_backward {
    static constexpr int HS = HS_, KEYS = 128, GROUPS = 2, GROUP = 128, GROUP_KEYS = 64;
    static constexpr int THREADS = (GROUPS + 1) * GROUP, CONSUMERS = GROUPS * GROUP;
    static constexpr int CONSUMER_REGISTERS = 240, OTHER_REGISTERS = 24;
    static constexpr int QUERIES = HS == 64 ? 128 : 64, RATIO = KEYS / QUERIES;
    static constexpr int PANELS = HS / 64, QUERY_PANELS = QUERIES / 64; /* of 64 columns */
    static constexpr int STAGES = 2, DS_STAGES = 2;
    static constexpr int KV = KEYS * HS, Q = QUERIES * HS, DS = KEYS * QUERIES;
    static constexpr int DQ = QUERIES * HS; /* fp32 */
    static constexpr size_t BYTES = (2 * KV + 2 * STAGES * Q + DS_STAGES * DS) * sizeof(bf16) +
                                    (DQ + 2 * STAGES * QUERIES) * sizeof(float) + 1024;
};

/* ---- Scratch memory ---- */

/* Sequences begin at multiples of PADDING rows in the scratch memory: tiles are contiguous and
   aligned there. */
enum { PADDING = 128, PADDED_TILE = 64 };

static __host__ __device__ __forceinline__ size_t padded_start(size_t start, size_t b) {
    return (start / PADDING + b) * PADDING;
}

/* Statistics and dq's sums: (NH, padded) and (NH, padded, HS), and a counter for each tile of
   PADDED_TILE queries: how many blocks have added to it. */
struct padded_scratch {
    size_t padded;
    float *dq, *lse, *delta; /* lse: times log2 e; of rows that do not exist +infinity, delta 0 */
    unsigned *added;
};

static __host__ __device__ __forceinline__ struct padded_scratch
padded_scratch_in(const struct attention_backward_problem &p, void *scratch) {
    struct padded_scratch s;
    s.padded = padded_start(p.rows, p.B);
    s.dq = (float *)scratch;
    s.lse = s.dq + p.NH * s.padded * p.HS;
    s.delta = s.lse + p.NH * s.padded;
    s.added = (unsigned *)(s.delta + p.NH * s.padded);
    return s;
}

static inline size_t padded_scratch_bytes(const struct attention_backward_problem *p) {
    size_t rows = p->NH * padded_start(p->rows, p->B);
    return rows * (p->HS + 2) * sizeof(float) + rows / PADDED_TILE * sizeof(unsigned);
}

/* ---- Items ---- */

/* Rounds of items: `heads` key heads with all their tiles of keys, a block each, so that all blocks
   that add to the same dq run at the same time. */
struct backward_rounds {
    unsigned tiles, heads, all_heads, rounds; /* tiles of keys of the longest sequence */
};

/* A block's item: a tile of keys of a key head. */
struct backward_item {
    int start, T, first;      /* the sequence's first row and length, the first key */
    size_t padded;            /* where the sequence begins in the scratch memory */
    unsigned head, own, keys; /* key head, tile of keys, and how many there are */
    int steps, query_tiles;   /* of each query head */
    bool upwards;             /* causal: from the diagonal up; otherwise down to it */
};

/* The item of a round, or false: the block has none in it. In every second causal round the tiles
   are handed out backwards: a block that had the most queries has the fewest then. */
template <typename TILE>
static __device__ __forceinline__ bool find_item(const struct attention_backward_problem &p,
                                                 const struct backward_rounds &r, unsigned round,
                                                 struct backward_item *item) {
    unsigned head = round * r.heads + blockIdx.x / r.tiles, own = blockIdx.x % r.tiles;
    if (blockIdx.x >= r.heads * r.tiles || head >= r.all_heads) {
        return false;
    }
    unsigned b = head / (unsigned)p.KVH;
    item->upwards = !p.causal || round % 2 == 0;
    item->own = item->upwards ? own : r.tiles - 1 - own;
    item->start = p.starts[b];
    item->T = p.starts[b + 1] - item->start;
    item->padded = padded_start((size_t)item->start, b);
    item->head = head % (unsigned)p.KVH;
    item->keys = (unsigned)(item->T + TILE::KEYS - 1) / TILE::KEYS;
    item->query_tiles = (item->T + TILE::QUERIES - 1) / TILE::QUERIES;
    item->first = (int)item->own * TILE::KEYS;
    item->steps = item->query_tiles - (p.causal ? (int)item->own * TILE::RATIO : 0);
    return item->own < item->keys;
}

/*
 * Blocks of a head add to dq's tiles in an order that is fixed and keeps them from waiting: block
 * `own` begins at its own queries, so that at each step all blocks are at different tiles, and a
 * tile gets its sums in the order in which blocks that start together reach it. Causal blocks that
 * go downwards started in the order of `own`, as the items before theirs were that much longer.
 */
template <typename TILE>
static __device__ __forceinline__ int query_tile(const struct attention_backward_problem &p,
                                                 const struct backward_item &item, int step) {
    int tile = (int)item.own * TILE::RATIO + step;
    if (p.causal) {
        return item.upwards ? tile : item.query_tiles - 1 - step;
    }
    return tile < item.query_tiles ? tile : tile - item.query_tiles;
}

/* How many blocks add to the tile of queries before this one. */
template <typename TILE>
static __device__ __forceinline__ unsigned turn_at(const struct backward_item &item, int tile) {
    unsigned diagonal = (unsigned)tile / TILE::RATIO;
    if (!item.upwards) {
        return item.own;
    }
    return item.own <= diagonal ? diagonal - item.own : diagonal + item.keys - item.own;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* ---- Shared memory ---- */

/* "full": a copy is there; "empty": it has been read. */
template <typename TILE> struct backward_barriers {
    uint64_t k_full, k_empty, v_full, v_empty;
    uint64_t q_full[TILE::STAGES], dout_full[TILE::STAGES], empty[TILE::STAGES];
    uint64_t dq_full, dq_empty; /* sums for dq, from the consumers to the storing warp */
    uint64_t landed;            /* copies that the producer is to change */
};

template <typename TILE>
static __device__ __forceinline__ void init_barriers(struct backward_barriers<TILE> &b) {
    constexpr unsigned WARPS = TILE::CONSUMERS / 32;
    mbarrier_init(shared_address(&b.k_full), 1);
    mbarrier_init(shared_address(&b.v_full), 1);
    mbarrier_init(shared_address(&b.k_empty), WARPS);
    mbarrier_init(shared_address(&b.v_empty), WARPS);
    for (int stage = 0; stage < TILE::STAGES; stage++) {
        mbarrier_init(shared_address(&b.q_full[stage]), 1);
        mbarrier_init(shared_address(&b.dout_full[stage]), 1);
        mbarrier_init(shared_address(&b.empty[stage]), WARPS);
    }
    mbarrier_init(shared_address(&b.dq_full), WARPS);
    mbarrier_init(shared_address(&b.dq_empty), 1);
    mbarrier_init(shared_address(&b.landed), 1);
    mbarrier_init_fence();
}

/* One arrival a warp, after all its lanes are done. */
static __device__ __forceinline__ void arrive(uint64_t *barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        mbarrier_arrive(shared_address(barrier));
    }
}

/* Tiles in shared memory: panels of 64 columns, 128-byte swizzle. */
template <typename TILE> struct backward_tiles {
    bf16 *k, *v;        /* (KEYS, HS) */
    bf16 *q, *dout;     /* STAGES of (QUERIES, HS) */
    bf16 *ds;           /* DS_STAGES of (KEYS, QUERIES) */
    float *dq;          /* (QUERIES, HS), in the order of the accumulators */
    float *lse, *delta; /* STAGES of (QUERIES) */
};

template <typename TILE>
static __device__ __forceinline__ struct backward_tiles<TILE> partition(unsigned char *bytes) {
    struct backward_tiles<TILE> t;
    t.k = (bf16 *)(bytes + (1024 - shared_address(bytes) % 1024) % 1024);
    t.v = t.k + TILE::KV;
    t.q = t.v + TILE::KV;
    t.dout = t.q + TILE::STAGES * TILE::Q;
    t.ds = t.dout + TILE::STAGES * TILE::Q;
    t.dq = (float *)(t.ds + TILE::DS_STAGES * TILE::DS);
    t.lse = t.dq + TILE::DQ;
    t.delta = t.lse + TILE::STAGES * TILE::QUERIES;
    return t;
}

/* A stage of a ring, and the parity of its barriers' phase. */
struct ring {
    unsigned stage, parity;

    __device__ __forceinline__ void advance() {
        stage ^= 1;
        parity ^= stage == 0;
    }
};

/* What all roles know. */
template <typename TILE> struct backward_block {
    const struct attention_backward_problem &p;
    const struct backward_rounds &rounds;
    const struct padded_scratch &scratch;
    const struct backward_tiles<TILE> &tiles;
    struct backward_barriers<TILE> &b;

    /* work(item) for each of the block's items. */
    template <typename WORK> __device__ __forceinline__ void for_items(WORK work) const {
        for (unsigned round = 0; round < rounds.rounds; round++) {
            struct backward_item item;
            if (find_item<TILE>(p, rounds, round, &item)) {
                work(item);
            }
        }
    }

    /* work(query head, tile of queries) for each of an item's steps. */
    template <typename WORK>
    __device__ __forceinline__ void for_steps(const struct backward_item &item, WORK work) const {
        unsigned group = (unsigned)(p.NH / p.KVH);
        for (unsigned head = item.head * group; head < (item.head + 1) * group; head++) {
            for (int step = 0; step < item.steps; step++) {
                work(head, query_tile<TILE>(p, item, step));
            }
        }
    }
};

#endif

#endif

/**
 * @file specialised_block.cuh
 * @brief What the roles of v7's kernel share: sizes, barriers, tiles in shared memory, the block's
 * items.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_BLOCK_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_BLOCK_CUH_

#include "solutions/07_attention/steps/warpgroup.cuh"
#include "solutions/07_attention/steps/work_items.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "common/cuda/mbarrier.cuh"
#endif

/* Sizes of the kernel for heads of HS_ channels; in elements. Three consumer warpgroups where the
   registers allow it: sums of 64 rows by 128 channels leave room for two. Four have registers for
   scores of 64 keys. */
template <typename E_, int HS_, int GROUPS_ = HS_ == 64 ? 3 : 2> struct specialised_tile {
    typedef E_ E;
    static constexpr int HS = HS_, GROUPS = GROUPS_, KEYS = GROUPS == 4 ? 64 : 128;
    static constexpr int GROUP = 128, THREADS = (GROUPS + 1) * GROUP;
    /* Of a thread, in multiples of 8: together those of a launch, 5 * 96, 4 * 128 or 3 * 168. */
    static constexpr int CONSUMER_REGISTERS = GROUPS == 4 ? 112 : GROUPS == 3 ? 160 : 232;
    static constexpr int PRODUCER_REGISTERS = GROUPS == 2 ? 40 : 32;
    static constexpr int GROUP_QUERIES = 64, QUERIES = GROUPS * GROUP_QUERIES;
    static constexpr int M_TILES = 1, KEY_TILES = KEYS / 8, CHANNEL_TILES = HS / 8;
    static constexpr int PANELS = HS / 64; /* of 64 channels */
    static constexpr int DEPTH = HS / 16;  /* of the first product, in wgmmas */
    static constexpr int KEY_PANEL = KEYS * 64;
    static constexpr int Q = GROUP_QUERIES * HS, Q_STAGES = 2; /* of a warpgroup */
    static constexpr int TILE = KEYS * HS;                     /* of K or of V */
    static constexpr int FIT = (int)((226 * 1024 / sizeof(E) - GROUPS * Q_STAGES * Q) / (2 * TILE));
    static constexpr int MOST = 512 / KEYS, STAGES = FIT < MOST ? FIT : MOST; /* of each */
    static constexpr int ELEMENTS = GROUPS * Q_STAGES * Q + 2 * STAGES * TILE;
    static constexpr size_t BYTES = ELEMENTS * sizeof(E) + 1024; /* 1024: to align */
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Barriers of a block. "full": the copy is there; "empty": it has been read. */
template <typename TILE> struct attention_barriers {
    uint64_t q_full[TILE::Q_STAGES][TILE::GROUPS], q_empty[TILE::Q_STAGES][TILE::GROUPS];
    uint64_t k_full[TILE::STAGES], k_empty[TILE::STAGES];
    uint64_t v_full[TILE::STAGES], v_empty[TILE::STAGES];
    uint64_t landed;             /* a tile of V that the producer is to change */
    uint64_t turn[TILE::GROUPS]; /* at the tensor cores */
};

/* Tiles in shared memory. */
template <typename TILE> struct attention_tiles {
    typename TILE::E *q, *k, *v;

    /* The queries of a warpgroup. */
    __device__ __forceinline__ typename TILE::E *queries(unsigned stage, int group) const {
        return q + (stage * TILE::GROUPS + group) * TILE::Q;
    }
};

/* A stage of a ring, and the parity of its barriers' phase. */
template <int STAGES> struct ring {
    unsigned stage, parity;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <typename TILE>
static __device__ __forceinline__ void init_barriers(struct attention_barriers<TILE> &b) {
    constexpr unsigned WARPS = TILE::GROUP / 32;
    for (int stage = 0; stage < TILE::Q_STAGES; stage++) {
        for (int group = 0; group < TILE::GROUPS; group++) {
            mbarrier_init(shared_address(&b.q_full[stage][group]), 1);
            mbarrier_init(shared_address(&b.q_empty[stage][group]), WARPS);
        }
    }
    for (int stage = 0; stage < TILE::STAGES; stage++) {
        mbarrier_init(shared_address(&b.k_full[stage]), 1);
        mbarrier_init(shared_address(&b.v_full[stage]), 1);
        mbarrier_init(shared_address(&b.k_empty[stage]), TILE::GROUPS * WARPS);
        mbarrier_init(shared_address(&b.v_empty[stage]), TILE::GROUPS * WARPS);
    }
    mbarrier_init(shared_address(&b.landed), 1);
    for (int group = 0; group < TILE::GROUPS; group++) {
        mbarrier_init(shared_address(&b.turn[group]), WARPS);
    }
    mbarrier_init_fence();
}

/* One arrival a warp, after all its lanes are done. */
static __device__ __forceinline__ void arrive(uint64_t *barrier) {
    if (threadIdx.x % 32 == 0) {
        mbarrier_arrive(shared_address(barrier));
    }
}

/* What both roles know. */
template <typename TILE, typename LIST> struct attention_block {
    const struct attention_problem &problem;
    const LIST &list;
    const struct work_order &order;
    const struct attention_tiles<TILE> &tiles;
    struct attention_barriers<TILE> &barriers;

    /* work(item, number of keys) for each of the block's items. */
    template <typename WORK> __device__ __forceinline__ void for_items(WORK work) const {
        for (unsigned round = 0;; round++) {
            unsigned index = index_of_round(round);
            if (index >= order.items) {
                return;
            }
            const auto item =
                work_item_at<typename TILE::E>(problem, list, order, index, TILE::QUERIES);
            int last = min(item.s.first + TILE::QUERIES, item.s.T) - 1;
            work(item, keys_seen(item.s, problem.causal, last));
        }
    }
};

#endif

#endif

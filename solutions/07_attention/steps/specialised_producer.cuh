/**
 * @file specialised_producer.cuh
 * @brief The producer of v7's kernel, one warp: it starts all copies, as their places become empty.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_PRODUCER_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_PRODUCER_CUH_

#include <cuda.h>

#include "solutions/07_attention/steps/specialised_block.cuh"

/* The TMA's descriptions of all tokens of q, k and v. */
struct attention_maps {
    CUtensorMap q, k, v;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Starts the copy of `rows` rows and HS channels, which completes at `barrier`. One lane. */
template <typename TILE>
static __device__ __forceinline__ void copy_tile(typename TILE::E *to, const CUtensorMap *map,
                                                 int row, int column, int rows, uint64_t *barrier) {
    unsigned bytes = (unsigned)(rows * TILE::HS * (int)sizeof(typename TILE::E));
    mbarrier_arrive_expect_tx(shared_address(barrier), bytes);
#pragma unroll
    for (int panel = 0; panel < TILE::PANELS; panel++) {
        tma_load_2d(shared_address(to + panel * rows * 64), map, column + panel * 64, row,
                    shared_address(barrier));
    }
}

/* Zeros in the rows of a tile of V from `first` on. The whole warp. */
template <typename TILE>
static __device__ __forceinline__ void clear_rows(typename TILE::E *v, int first) {
    constexpr int PIECES = 64 / 8; /* of a panel's row, 16 bytes each */
    int count = (TILE::KEYS - first) * PIECES;
    for (int panel = 0; panel < TILE::PANELS; panel++) {
        uint4 *piece = (uint4 *)(v + panel * TILE::KEY_PANEL + first * 64);
        for (int i = threadIdx.x % 32; i < count; i += 32) {
            piece[i] = make_uint4(0, 0, 0, 0);
        }
    }
}

/* Starts the copies of all items, as stages become empty. */
template <typename TILE, typename LIST>
static __device__ __forceinline__ void produce(const struct attention_maps &maps,
                                               const struct attention_block<TILE, LIST> &block) {
    typedef typename TILE::E E;
    struct attention_barriers<TILE> &b = block.barriers;
    struct ring<TILE::Q_STAGES> q = {
        0, 0
    };
    struct ring<TILE::STAGES> kv = {
        0, 0
    };
    unsigned landings = 0;
    bool first_lane = threadIdx.x % 32 == 0;
    block.for_items([&](const struct work_item<E> &item, int end) {
        for (int group = 0; group < TILE::GROUPS; group++) {
            mbarrier_wait(shared_address(&b.q_empty[q.stage][group]), q.parity ^ 1);
            if (first_lane) {
                copy_tile<TILE>(block.tiles.queries(q.stage, group), &maps.q,
                                item.q_token + item.s.first + group * TILE::GROUP_QUERIES,
                                item.q_column, TILE::GROUP_QUERIES, &b.q_full[q.stage][group]);
            }
        }
        q.advance();
        for (int key = 0; key < end; key += TILE::KEYS) {
            E *k = block.tiles.k + kv.stage * TILE::TILE,
              *v = block.tiles.v + kv.stage * TILE::TILE;
            bool whole = key + TILE::KEYS <= item.s.S;
            mbarrier_wait(shared_address(&b.k_empty[kv.stage]), kv.parity ^ 1);
            if (first_lane) {
                copy_tile<TILE>(k, &maps.k, item.kv_token + key, item.kv_column, TILE::KEYS,
                                &b.k_full[kv.stage]);
            }
            mbarrier_wait(shared_address(&b.v_empty[kv.stage]), kv.parity ^ 1);
            if (first_lane) {
                copy_tile<TILE>(v, &maps.v, item.kv_token + key, item.kv_column, TILE::KEYS,
                                whole ? &b.v_full[kv.stage] : &b.landed);
            }
            if (!whole) {
                mbarrier_wait(shared_address(&b.landed), landings++ % 2);
                clear_rows<TILE>(v, item.s.S - key);
                fence_proxy_async();
                __syncwarp();
                arrive(&b.v_full[kv.stage]);
            }
            kv.advance();
        }
    });
}

#endif

#endif

/**
 * @file hopper_backward_copies.cuh
 * @brief The two warps of v6's kernel that move data: the producer, and the one that adds to dq.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_COPIES_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_COPIES_CUH_

#include "solutions/11_training/steps/hopper_backward_block.cuh"
#include "solutions/11_training/steps/semaphore.cuh"

/* The TMA's descriptions of all rows of q, dout, k and v. */
struct backward_maps {
    CUtensorMap q, dout, k, v;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Starts the copy of ROWS rows and HS channels, which completes at `barrier`. One lane. */
template <int ROWS, typename TILE>
static __device__ __forceinline__ void copy_tile(bf16 *to, const CUtensorMap *map, int row,
                                                 int column, uint64_t *barrier) {
#pragma unroll
    for (int panel = 0; panel < TILE::PANELS; panel++) {
        tma_load_2d(shared_address(to + panel * ROWS * 64), map, column + panel * 64, row,
                    shared_address(barrier));
    }
}

/* Zeros in the rows of a tile from `first` on, which are other sequences'. The whole warp. */
template <int ROWS, typename TILE>
static __device__ __forceinline__ void clear_rows(bf16 *tile, int first) {
    constexpr int PIECES = 64 / 8; /* of a panel's row, 16 bytes each */
    for (int panel = 0; panel < TILE::PANELS; panel++) {
        uint4 *piece = (uint4 *)(tile + panel * ROWS * 64 + first * 64);
        for (int i = threadIdx.x % 32; i < (ROWS - first) * PIECES; i += 32) {
            piece[i] = make_uint4(0, 0, 0, 0);
        }
    }
}

/* The producer's state. */
template <typename TILE> struct backward_producer {
    const struct backward_maps &maps;
    const struct backward_block<TILE> &block;
    unsigned items, landings;
    struct ring q;

    /* Waits for copies that complete at `landed`. */
    __device__ __forceinline__ void await_landing() {
        mbarrier_wait(shared_address(&block.b.landed), landings++ % 2);
    }
};

/* Starts the copy of an item's keys or values. A tile that reaches beyond its sequence is cleared
   there: 0 * NaN would be NaN. */
template <typename TILE>
static __device__ __forceinline__ void
produce_keys(struct backward_producer<TILE> &c, const struct backward_item &item, bf16 *to,
             const CUtensorMap *map, uint64_t *full, const uint64_t *empty) {
    bool whole = item.first + TILE::KEYS <= item.T;
    mbarrier_wait(shared_address(empty), c.items % 2 ^ 1);
    if (threadIdx.x % 32 == 0) {
        uint64_t *barrier = whole ? full : &c.block.b.landed;
        mbarrier_arrive_expect_tx(shared_address(barrier), TILE::KV * sizeof(bf16));
        copy_tile<TILE::KEYS, TILE>(to, map, item.start + item.first,
                                    (int)(item.head * (unsigned)TILE::HS), barrier);
    }
    if (!whole) {
        c.await_landing();
        clear_rows<TILE::KEYS, TILE>(to, item.T - item.first);
        fence_proxy_async();
        arrive(full);
    }
}

/* The same of a step's queries or gradients of outputs, with a number for each row. */
template <typename TILE>
static __device__ __forceinline__ void
produce_queries(struct backward_producer<TILE> &c, const struct backward_item &item, unsigned head,
                int first, bf16 *to, const CUtensorMap *map, float *stats_to, const float *stats,
                uint64_t *full) {
    constexpr unsigned STATS_BYTES = TILE::QUERIES * sizeof(float);
    bool whole = first + TILE::QUERIES <= item.T, first_lane = threadIdx.x % 32 == 0;
    unsigned rows_bytes = TILE::Q * sizeof(bf16);
    if (first_lane) {
        uint64_t *barrier = whole ? full : &c.block.b.landed;
        mbarrier_arrive_expect_tx(shared_address(barrier), rows_bytes + (whole ? STATS_BYTES : 0));
        copy_tile<TILE::QUERIES, TILE>(to, map, item.start + first,
                                       (int)(head * (unsigned)TILE::HS), barrier);
    }
    if (!whole) {
        c.await_landing();
        clear_rows<TILE::QUERIES, TILE>(to, item.T - first);
        fence_proxy_async();
        __syncwarp();
    }
    if (first_lane) {
        if (!whole) {
            mbarrier_arrive_expect_tx(shared_address(full), STATS_BYTES);
        }
        bulk_load(shared_address(stats_to),
                  stats + head * c.block.scratch.padded + item.padded + (size_t)first, STATS_BYTES,
                  shared_address(full));
    }
}

/* Starts all copies, as places become empty; an item's first queries, for which there is room,
   before its keys. */
template <typename TILE>
static __device__ __forceinline__ void produce(const struct backward_maps &maps,
                                               const struct backward_block<TILE> &block) {
    const struct backward_tiles<TILE> &t = block.tiles;
    struct backward_barriers<TILE> &b = block.b;
    struct backward_producer<TILE> c = {
        maps, block, 0, 0, {
            0, 0
        }
    };
    block.for_items([&](const struct backward_item &item) {
        bool keys_started = false;
        block.for_steps(item, [&](unsigned head, int tile) {
            unsigned stage = c.q.stage;
            int first = tile * TILE::QUERIES;
            mbarrier_wait(shared_address(&b.empty[stage]), c.q.parity ^ 1);
            produce_queries<TILE>(c, item, head, first, t.q + stage * TILE::Q, &maps.q,
                                  t.lse + stage * TILE::QUERIES, block.scratch.lse,
                                  &b.q_full[stage]);
            produce_queries<TILE>(c, item, head, first, t.dout + stage * TILE::Q, &maps.dout,
                                  t.delta + stage * TILE::QUERIES, block.scratch.delta,
                                  &b.dout_full[stage]);
            c.q.advance();
            if (!keys_started) {
                produce_keys<TILE>(c, item, t.v, &maps.v, &b.v_full, &b.v_empty);
                produce_keys<TILE>(c, item, t.k, &maps.k, &b.k_full, &b.k_empty);
                c.items++;
                keys_started = true;
            }
        });
    });
}

/* Orders this thread's accesses to global memory and those of its bulk copies. */
static __device__ __forceinline__ void fence_proxy_async_global() {
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/* Adds the sums of all steps to dq, each when it is this block's turn. One lane. */
template <typename TILE>
static __device__ __forceinline__ void add_to_dq(const struct backward_block<TILE> &block) {
    constexpr unsigned BYTES = TILE::DQ * sizeof(float);
    const struct padded_scratch &s = block.scratch;
    unsigned steps = 0, from = shared_address(block.tiles.dq);
    block.for_items([&](const struct backward_item &item) {
        block.for_steps(item, [&](unsigned head, int tile) {
            size_t row = head * s.padded + item.padded + (size_t)(tile * TILE::QUERIES);
            unsigned turn = turn_at<TILE>(item, tile);
            float *to = s.dq + row * TILE::HS;
            mbarrier_wait(shared_address(&block.b.dq_full), steps++ % 2);
            if (turn == 0) {
                bulk_store(to, from, BYTES);
            } else {
                semaphore_wait(s.added + row / PADDED_TILE, turn);
                fence_proxy_async_global();
                bulk_add(to, from, BYTES);
            }
            tma_store_wait_read<0>();
            mbarrier_arrive(shared_address(&block.b.dq_empty));
            tma_store_wait();
            fence_proxy_async_global();
            semaphore_release(s.added + row / PADDED_TILE);
        });
    });
}

#endif

#endif

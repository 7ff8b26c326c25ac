/**
 * @file hopper_backward_copies.cuh
 * @brief The two warps of v6's kernel that move data: the producer, and the one that adds to dq.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_COPIES_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_COPIES_CUH_

#include "solutions/11_training/steps/hopper_backward_block.cuh"

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

/* Starts all copies, as places become empty. A tile that reaches beyond its sequence is cleared
   there: 0 * NaN would be NaN. */
template <typename TILE>
static __device__ __forceinline__ void produce(const struct backward_maps &maps,
                                               const struct backward_block<TILE> &block) {
    constexpr unsigned KV_BYTES = TILE::KV * sizeof(bf16), Q_BYTES = TILE::Q * sizeof(bf16);
    constexpr unsigned STATS_BYTES = TILE::QUERIES * sizeof(float);
    const struct backward_tiles<TILE> &t = block.tiles;
    struct backward_barriers<TILE> &b = block.b;
    struct ring q = {0, 0};
    unsigned items = 0, landings = 0;
    bool first_lane = threadIdx.x % 32 == 0;
    auto await_landing = [&]() { mbarrier_wait(shared_address(&b.landed), landings++ % 2); };
    block.for_items([&](const struct backward_item &item) {
        int column = (int)(item.head * (unsigned)TILE::HS);
        bool whole = item.first + TILE::KEYS <= item.T;
        mbarrier_wait(shared_address(&b.kv_empty), items++ % 2 ^ 1);
        if (first_lane) {
            uint64_t *full = whole ? &b.kv_full : &b.landed;
            mbarrier_arrive_expect_tx(shared_address(full), 2 * KV_BYTES);
            copy_tile<TILE::KEYS, TILE>(t.k, &maps.k, item.start + item.first, column, full);
            copy_tile<TILE::KEYS, TILE>(t.v, &maps.v, item.start + item.first, column, full);
        }
        if (!whole) {
            await_landing();
            clear_rows<TILE::KEYS, TILE>(t.k, item.T - item.first);
            clear_rows<TILE::KEYS, TILE>(t.v, item.T - item.first);
            fence_proxy_async();
            arrive(&b.kv_full);
        }
        block.for_steps(item, [&](unsigned head, int tile) {
            int first = tile * TILE::QUERIES, q_column = (int)(head * (unsigned)TILE::HS);
            bool whole_tile = first + TILE::QUERIES <= item.T;
            size_t stats = head * block.scratch.padded + item.padded + (size_t)first;
            bf16 *q_to = t.q + q.stage * TILE::Q, *dout_to = t.dout + q.stage * TILE::Q;
            mbarrier_wait(shared_address(&b.empty[q.stage]), q.parity ^ 1);
            if (first_lane) {
                uint64_t *q_full = whole_tile ? &b.q_full[q.stage] : &b.landed;
                uint64_t *dout_full = whole_tile ? &b.dout_full[q.stage] : &b.landed;
                unsigned bytes = Q_BYTES + STATS_BYTES;
                mbarrier_arrive_expect_tx(shared_address(q_full), whole_tile ? bytes : 2 * bytes);
                copy_tile<TILE::QUERIES, TILE>(q_to, &maps.q, item.start + first, q_column, q_full);
                bulk_load(shared_address(t.lse + q.stage * TILE::QUERIES),
                          block.scratch.lse + stats, STATS_BYTES, shared_address(q_full));
                if (whole_tile) {
                    mbarrier_arrive_expect_tx(shared_address(dout_full), bytes);
                }
                copy_tile<TILE::QUERIES, TILE>(dout_to, &maps.dout, item.start + first, q_column,
                                               dout_full);
                bulk_load(shared_address(t.delta + q.stage * TILE::QUERIES),
                          block.scratch.delta + stats, STATS_BYTES, shared_address(dout_full));
            }
            if (!whole_tile) {
                await_landing();
                clear_rows<TILE::QUERIES, TILE>(q_to, item.T - first);
                clear_rows<TILE::QUERIES, TILE>(dout_to, item.T - first);
                fence_proxy_async();
                arrive(&b.q_full[q.stage]);
                arrive(&b.dout_full[q.stage]);
            }
            q.advance();
        });
    });
}

static __device__ __forceinline__ void wait_for_turn(const unsigned *added, unsigned turn) {
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(added) : "memory");
    } while (now != turn);
}

static __device__ __forceinline__ void pass_turn(unsigned *added) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(added) : "memory");
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
                wait_for_turn(s.added + row / PADDED_TILE, turn);
                fence_proxy_async_global();
                bulk_add(to, from, BYTES);
            }
            tma_store_wait_read<0>();
            mbarrier_arrive(shared_address(&block.b.dq_empty));
            tma_store_wait();
            fence_proxy_async_global();
            pass_turn(s.added + row / PADDED_TILE);
        });
    });
}

#endif

#endif

/**
 * @file hopper_tile.cuh
 * @brief Tiles by wgmma from stages that the TMA brings: producer, ring, mainloop and schedules,
 * which v7 to v10 share.
 *
 * wgmma reads both operands from shared memory: no registers, no ldmatrix between. Warps are
 * specialised: one thread of a producer warpgroup starts all copies, through the TMA; two consumer
 * warpgroups multiply, and run the epilogue. A block takes tile after tile, and copies for the next
 * tile start before this one is done.
 *
 * In the ping-pong schedule each consumer warpgroup has tiles of its own: while one runs its
 * epilogue the other one multiplies. In the cooperative schedule both share a larger tile.
 *
 * Two blocks may be a cluster whose tiles lie one below the other: the weights of a step are the
 * same for both, so each fetches half of them, and the TMA writes it to both (multicast). Or the
 * blocks of a cluster have the same tile, and each a part of K (split-K): at the end each adds its
 * share of the tile over all of them, by distributed shared memory.
 *
 * A factor that is transposed, (K, M) or (K, N), comes in boxes of 64 rows of K and 64 columns, and
 * wgmma reads it "M-major" or "N-major".
 *
 * Without code for sm_90a the kernels are empty and have no static shared memory, by which
 * hopper_has_code() tells.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_TILE_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_TILE_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "common/cuda/dependent_launch.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"
#include "solutions/12_tensor_cores/steps/tensor_map.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#define CLUSTER_OF(T) __cluster_dims__(T::BLOCKS, 1, 1)
#else
#define CLUSTER_OF(T)
#endif

namespace {

constexpr int BK = 64;                              /* elements of K a step: 128 bytes */
constexpr int GROUP = 128;                          /* threads of a warpgroup */
constexpr int THREADS = 3 * GROUP;                  /* a producer, two consumers */
constexpr unsigned SHARED_BYTES = 227 * 1024 - 256; /* of a block, beside the barriers */

/* The blocks of a cluster: two whose tiles lie one below the other and share weights; or some that
   have the same tile, and each a part of K. */
enum pair { ALONE, ALONG_M, ALONG_K };

/* How the consumer warpgroups of a block work: in turn, each on a tile of its own, so that one
   multiplies while the other one stores (the ping-pong schedule); or together, on the upper and the
   lower half of a tile, or on its left and right one (the cooperative schedule). */
enum schedule { IN_TURN, TOP_AND_BOTTOM, SIDE_BY_SIDE };

/* ATOMS: 64-row wgmma instructions of a consumer warpgroup; IN_TRANSPOSED, WEIGHT_TRANSPOSED: which
   factors are transposed; SPLIT: blocks of a cluster ALONG_K.

   Results leave through shared memory, except those of FINISH_ANY: a warp has 16 rows, and a part
   of them, 128 bytes of each row, is a store tile (64 bytes where GROUP_COLUMNS is no multiple of
   64). PARTS: of a warp; SLOTS: store tiles that a warp has. FILLS: stages that a tile's residual
   takes in the ring, behind its steps, so that it is asked for when the steps' copies are, and no
   earlier. */
template <typename E_, int BN_, int ATOMS_, enum schedule SCHEDULE_, enum pair PAIR_,
          enum finish FINISH_ = FINISH_ANY, bool IN_TRANSPOSED_ = false,
          bool WEIGHT_TRANSPOSED_ = false, int SPLIT_ = 1>
struct hopper_tile {
    typedef E_ E;
    static constexpr bool IN_TRANSPOSED = IN_TRANSPOSED_, WEIGHT_TRANSPOSED = WEIGHT_TRANSPOSED_;
    static constexpr int BN = BN_, ATOMS = ATOMS_;
    static constexpr enum schedule SCHEDULE = SCHEDULE_;
    static constexpr bool PINGPONG = SCHEDULE == IN_TURN, HALVES = SCHEDULE == TOP_AND_BOTTOM;
    static constexpr int GROUP_COLUMNS = SCHEDULE == SIDE_BY_SIDE ? BN / 2 : BN;
    static constexpr enum pair PAIR = PAIR_;
    static constexpr enum finish FINISH = FINISH_;
    static constexpr int SPLIT = SPLIT_, SHARERS = PAIR == ALONG_M ? 2 : 1; /* of a stage */
    static constexpr int BLOCKS = SHARERS * SPLIT;                          /* of a cluster */
    static_assert((PAIR == ALONG_K) == (SPLIT > 1) && !(PINGPONG && SPLIT > 1), "no such schedule");
    static constexpr int GROUP_ROWS = 64 * ATOMS, BM = HALVES ? 2 * GROUP_ROWS : GROUP_ROWS;
    /* The residual comes by the ring, or into the store tiles, if there is one. */
    static constexpr bool RING_RESIDUAL =
        FINISH == FINISH_RESIDUAL || (FINISH == FINISH_FLOAT_RESIDUAL && PAIR != ALONG_K);
    static constexpr bool LOADS_RESIDUAL =
        FINISH == FINISH_ACTIVATION || (FINISH == FINISH_FLOAT_RESIDUAL && PAIR == ALONG_K);
    static constexpr bool HAS_BIAS = FINISH != FINISH_PLAIN && FINISH != FINISH_ANY &&
                                     !IN_TRANSPOSED && !WEIGHT_TRANSPOSED; /* or none */
    static constexpr bool FLOATS = FINISH == FINISH_FLOAT || FINISH == FINISH_FLOAT_RESIDUAL;
    /* Columns of out in a part, and a lane's sums of it: a gate needs twice as many. */
    static constexpr bool GATE = FINISH == FINISH_GATE;
    static constexpr int STORE_COLUMNS = !FLOATS && !GATE && GROUP_COLUMNS % 64 == 0 ? 64 : 32;
    static constexpr int EACH = GATE ? STORE_COLUMNS : STORE_COLUMNS / 2;
    static constexpr unsigned STORE_TILE = 16 * STORE_COLUMNS * (FLOATS ? 4 : 2);
    static constexpr int PARTS = ATOMS * GROUP_COLUMNS / 2 / EACH;
    static_assert(GROUP_COLUMNS / 2 % EACH == 0, "whole parts");
    static constexpr int OWN = (PARTS + SPLIT - 1) / SPLIT; /* of them stored by a block, at most */
    /* One store tile where that leaves room for a stage more. */
    static constexpr bool DEEP =
        ATOMS * GROUP_COLUMNS == 384
            ? FINISH == FINISH_PLAIN || FINISH == FINISH_BIAS || FINISH == FINISH_RESIDUAL
            : BN == 192 && !PINGPONG && RING_RESIDUAL && FLOATS;
    static constexpr int MOST_SLOTS = FINISH == FINISH_ANY ? 0 : LOADS_RESIDUAL ? 4 : DEEP ? 1 : 2;
    static constexpr int SLOTS = OWN < MOST_SLOTS ? OWN : MOST_SLOTS;
    static constexpr unsigned STAGING = SLOTS * STORE_TILE; /* bytes of a warp */
    static constexpr unsigned STORE_TILES = STAGING * (2 * GROUP / 32);
    static constexpr unsigned IN = BM * BK * 2, WEIGHT = BN * BK * 2, STAGE = IN + WEIGHT;
    static_assert(!WEIGHT_TRANSPOSED || GROUP_COLUMNS % BK == 0, "whole boxes");
    static constexpr int FIT = (SHARED_BYTES - 1024 - STORE_TILES) / STAGE;
    static constexpr int STAGES = FIT < 12 ? FIT : 12;
    static constexpr unsigned BYTES = STAGES * STAGE + STORE_TILES + 1024; /* 1024: to align */
    /* Stages that a tile's residual takes behind its steps: groups of columns, all rows of each. */
    static constexpr int COLUMN_GROUPS = BN / STORE_COLUMNS;
    static constexpr unsigned COLUMN_GROUP = BM * STORE_COLUMNS * (FLOATS ? 4 : 2);
    static constexpr int GROUPS_A_FILL = STAGE / COLUMN_GROUP;
    static constexpr int FILLS =
        RING_RESIDUAL ? (COLUMN_GROUPS + GROUPS_A_FILL - 1) / GROUPS_A_FILL : 0;
    static_assert(FILLS <= 3 && FILLS < STAGES, "stages");
    /* Bytes of the sums of a part that a block receives from another one. */
    static constexpr unsigned PARTIAL = 2 * GROUP * EACH * 4;
    static_assert(OWN * (SPLIT - 1) * PARTIAL <= STAGES * STAGE, "where stages were");
};

/* What a launch works on. */
struct hopper_sizes {
    unsigned steps;            /* of K */
    unsigned tiles_m, tiles_n; /* tiles, those of a cluster together */
    unsigned splits,
        split_steps;     /* of K, and the steps of each but the last; tiles of split 0 first */
    unsigned band;       /* tiles of M whose clusters run side by side */
    unsigned split_rows; /* rows of the partial sums of a split, those of whole tiles */
    bool weight_is_constant;
    bool in_once; /* whether L2 need not keep `in`: tma_load_2d_once() */
};

/* The TMA's descriptions of the matrices; out and residual: where the TMA moves these. */
struct hopper_maps {
    CUtensorMap in, weight, out, residual;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr unsigned short BOTH_BLOCKS = 3; /* of a cluster, as a mask */

/* What a block has in shared memory: addresses. */
struct hopper_shared {
    unsigned stages;      /* 1024-byte aligned */
    unsigned full, empty; /* barriers, one a stage: its copies have arrived; it has been read */
    unsigned order;       /* two barriers: whose turn it is in the ping-pong schedule */
};

/* Addresses of a tile's residual in the ring. */
struct residual_fills {
    unsigned at[3];
};

/* A stage of the ring, and the parity of its barriers' phase. */
struct ring {
    unsigned stage, parity;
};

template <typename T> __device__ __forceinline__ void advance(struct ring &r) {
    if (++r.stage == T::STAGES) {
        r.stage = 0;
        r.parity ^= 1;
    }
}

template <typename T> __device__ __forceinline__ void advance(struct ring &r, unsigned by) {
    unsigned at = r.stage + by;
    r.parity ^= at / T::STAGES & 1;
    r.stage = at % T::STAGES;
}

template <typename T> __device__ __forceinline__ unsigned rank_of_block() {
    return T::BLOCKS == 1 ? 0 : cluster_rank();
}

/* A tile's range of K. */
struct steps {
    unsigned first, count;
};

template <typename T>
__device__ __forceinline__ struct steps steps_of(const struct hopper_sizes &s, unsigned tile) {
    if constexpr (T::PAIR == ALONG_K) {
        unsigned rank = rank_of_block<T>(), first = s.steps * rank / T::SPLIT;
        return {first, s.steps * (rank + 1) / T::SPLIT - first};
    }
    if (s.splits == 1) {
        return {0, s.steps};
    }
    unsigned first = tile / (s.tiles_m * s.tiles_n) * s.split_steps;
    return {first, min(s.split_steps, s.steps - first)};
}

__device__ __forceinline__ unsigned tiles_of(const struct hopper_sizes &s) {
    return s.tiles_m * s.tiles_n * s.splits;
}

/* The tile scheduler: origin (row, column) of this block's tile. Clusters go down `band` tiles,
   then to the right. */
template <typename T>
__device__ __forceinline__ int2 tile_origin(const struct hopper_sizes &s, unsigned tile) {
    tile %= s.tiles_m * s.tiles_n;
    unsigned band = tile / (s.band * s.tiles_n), inside = tile % (s.band * s.tiles_n);
    unsigned height = min(s.band, s.tiles_m - band * s.band), rank = rank_of_block<T>();
    unsigned m = band * s.band + inside % height, n = inside / height;
    return make_int2((int)((T::PAIR == ALONG_M ? m * 2 + rank : m) * T::BM), (int)(n * T::BN));
}

/* Starts the copies of a factor's part of a step: SIZE rows (TRANSPOSED: columns) from `first` on,
   elements k to k + 64 of K. SHARED: both blocks need it, and each fetches half: half of the rows,
   or half of the 64 elements of K where the factor is transposed. ONCE: tma_load_2d_once(), where
   the factor is neither. */
template <bool TRANSPOSED, int SIZE, bool SHARED>
__device__ __forceinline__ void copy_factor(unsigned to, const CUtensorMap *map, int first, int k,
                                            unsigned rank, unsigned barrier, bool once) {
    constexpr unsigned BOX = BK * BK * 2, HALF = SIZE / 2;
    if constexpr (TRANSPOSED) {
#pragma unroll
        for (int i = 0; i < SIZE / BK; i++) {
            if constexpr (SHARED) {
                tma_load_2d_multicast(to + i * BOX + rank * (BOX / 2), map, first + i * BK,
                                      k + (int)rank * (BK / 2), barrier, BOTH_BLOCKS);
            } else {
                tma_load_2d(to + i * BOX, map, first + i * BK, k, barrier);
            }
        }
    } else if constexpr (SHARED) {
        tma_load_2d_multicast(to + rank * HALF * BK * 2, map, k, first + (int)(rank * HALF),
                              barrier, BOTH_BLOCKS);
    } else if (once) {
        tma_load_2d_once(to, map, k, first, barrier);
    } else {
        tma_load_2d(to, map, k, first, barrier);
    }
}

/* Starts the copies of a step's weights into an empty stage. */
template <typename T>
__device__ __forceinline__ void produce_weights(const struct hopper_maps &maps,
                                                const struct hopper_shared &shared, unsigned stage,
                                                int column, int k) {
    unsigned to = shared.stages + stage * T::STAGE + T::IN, barrier = shared.full + stage * 8;
    mbarrier_arrive_expect_tx(barrier, T::STAGE);
    copy_factor<T::WEIGHT_TRANSPOSED, T::BN, T::PAIR == ALONG_M>(
        to, &maps.weight, column, k, rank_of_block<T>(), barrier, false);
}

/* The same of all stages, of the block's first tile. @return how many steps have their weights */
template <typename T>
__device__ __forceinline__ unsigned produce_early(const struct hopper_maps &maps,
                                                  const struct hopper_sizes &s,
                                                  const struct hopper_shared &shared) {
    unsigned tile = blockIdx.x / T::BLOCKS;
    const struct steps steps = steps_of<T>(s, tile);
    unsigned count = min(steps.count, (unsigned)T::STAGES);
    int column = tile_origin<T>(s, tile).y;
    for (unsigned step = 0; step < count; step++) {
        produce_weights<T>(maps, shared, step, column, (int)((steps.first + step) * BK));
    }
    return count;
}

/* Starts the copies of a tile's steps, as stages become empty, the first `with_weights` without
   their weights, which are on their way; then those of its residual. */
template <typename T>
__device__ __forceinline__ void
produce_steps(const struct hopper_maps &maps, const struct hopper_sizes &s,
              const struct hopper_shared &shared, struct ring &r, unsigned tile,
              const struct steps &steps, unsigned with_weights) {
    int2 at = tile_origin<T>(s, tile);
    unsigned rank = rank_of_block<T>();
    for (unsigned step = 0; step < steps.count; step++) {
        unsigned to = shared.stages + r.stage * T::STAGE, barrier = shared.full + r.stage * 8;
        int k = (int)((steps.first + step) * BK);
        if (step >= with_weights) {
            mbarrier_wait(shared.empty + r.stage * 8, r.parity ^ 1);
            produce_weights<T>(maps, shared, r.stage, at.y, k);
        }
        copy_factor<T::IN_TRANSPOSED, T::BM, false>(to, &maps.in, at.x, k, rank, barrier,
                                                    s.in_once);
        advance<T>(r);
    }
    for (int fill = 0; fill < T::FILLS; fill++) {
        unsigned to = shared.stages + r.stage * T::STAGE, barrier = shared.full + r.stage * 8;
        int first = fill * T::GROUPS_A_FILL, end = min(first + T::GROUPS_A_FILL, T::COLUMN_GROUPS);
        mbarrier_wait(shared.empty + r.stage * 8, r.parity ^ 1);
        mbarrier_arrive_expect_tx(barrier, (end - first) * T::COLUMN_GROUP);
        for (int group = first; group < end; group++) {
            tma_load_2d(to + (group - first) * T::COLUMN_GROUP, &maps.residual,
                        at.y + group * T::STORE_COLUMNS, at.x, barrier);
        }
        advance<T>(r);
    }
}

/* The producer, one thread: all copies of the block. @param with_weights by produce_early() */
template <typename T>
__device__ __forceinline__ void produce(const struct hopper_maps &maps,
                                        const struct hopper_sizes &s,
                                        const struct hopper_shared &shared, unsigned with_weights) {
    unsigned tiles = tiles_of(s), clusters = gridDim.x / T::BLOCKS;
    struct ring r = {0, 0};
    for (unsigned tile = blockIdx.x / T::BLOCKS; tile < tiles; tile += clusters) {
        produce_steps<T>(maps, s, shared, r, tile, steps_of<T>(s, tile), with_weights);
        with_weights = 0;
    }
}

/* A consumer warpgroup releases a stage to the producers of both blocks: one arrival each. */
template <typename T> __device__ __forceinline__ void release(unsigned barrier) {
    if (threadIdx.x % 32 == 0 && threadIdx.x % GROUP / 32 < T::SHARERS) {
        if constexpr (T::SHARERS == 1) {
            mbarrier_arrive(barrier);
        } else {
            mbarrier_arrive_cluster(barrier, threadIdx.x % GROUP / 32);
        }
    }
}

/* Where a tile's residual is, in the stages from `first` on. */
template <typename T>
__device__ __forceinline__ struct residual_fills fills_at(const struct hopper_shared &shared,
                                                          struct ring first) {
    struct residual_fills fills = {};
    for (int fill = 0; fill < T::FILLS; fill++) {
        fills.at[fill] = shared.stages + first.stage * T::STAGE;
        advance<T>(first);
    }
    return fills;
}

/* Waits for it. */
template <typename T>
__device__ __forceinline__ void wait_for_fills(const struct hopper_shared &shared,
                                               struct ring first) {
    for (int fill = 0; fill < T::FILLS; fill++) {
        mbarrier_wait(shared.full + first.stage * 8, first.parity);
        advance<T>(first);
    }
}

/* Releases its stages, when all warps of the warpgroup have read them. */
template <typename T>
__device__ __forceinline__ void release_fills(const struct hopper_shared &shared,
                                              struct ring first) {
    if (T::FILLS > 0) {
        asm volatile("bar.sync %0, 128;" ::"r"(threadIdx.x / GROUP) : "memory");
    }
    for (int fill = 0; fill < T::FILLS; fill++) {
        release<T>(shared.empty + first.stage * 8);
        advance<T>(first);
    }
}

/* The mainloop: sums = the warpgroup's part of one tile; its rows of `in` lie `rows_at` bytes into
   those of a stage, its columns of weight `columns_at`. In the ping-pong schedule the other
   warpgroup may start when all steps of this tile have arrived, not earlier: a barrier's parity
   tells a phase from the next one only. early() runs while the first step is multiplied. */
template <typename T, typename EARLY>
__device__ __forceinline__ void
multiply_tile(float *sums, struct ring &r, unsigned steps, const struct hopper_shared &shared,
              unsigned rows_at, unsigned columns_at, unsigned next_in_order, EARLY early) {
    /* Sixteen elements of K in a descriptor's units of 16 bytes: 32 bytes, or sixteen rows. */
    constexpr int IN_STEP = T::IN_TRANSPOSED ? 16 * 128 >> 4 : 2;
    constexpr int WEIGHT_STEP = T::WEIGHT_TRANSPOSED ? 16 * 128 >> 4 : 2;
    unsigned last = 0;
    for (unsigned step = 0; step < steps; step++) {
        mbarrier_wait(shared.full + r.stage * 8, r.parity);
        unsigned stage = shared.stages + r.stage * T::STAGE;
        uint64_t in = wgmma_descriptor<T::IN_TRANSPOSED>(stage + rows_at);
        uint64_t weight = wgmma_descriptor<T::WEIGHT_TRANSPOSED>(stage + T::IN + columns_at);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) {
#pragma unroll
            for (int atom = 0; atom < T::ATOMS; atom++) {
                wgmma<T::GROUP_COLUMNS>::template run<T::IN_TRANSPOSED, T::WEIGHT_TRANSPOSED>(
                    sums + atom * (T::GROUP_COLUMNS / 2),
                    in + atom * (64 * BK * 2 >> 4) + IN_STEP * depth, weight + WEIGHT_STEP * depth,
                    step > 0 || depth > 0, typename T::E());
            }
        }
        wgmma_commit();
        if (step > 0) { /* the step before is read; this one is in flight */
            wgmma_wait<1>();
            release<T>(shared.empty + last * 8);
        } else {
            early();
        }
        last = r.stage;
        advance<T>(r);
    }
    wait_for_fills<T>(shared, r);
    if (T::PINGPONG && threadIdx.x % 32 == 0) {
        mbarrier_arrive(next_in_order);
    }
    wgmma_wait<0>();
    release<T>(shared.empty + last * 8);
    wgmma_keep_order<T::ATOMS * T::GROUP_COLUMNS / 2>(sums);
}

/* A consumer warpgroup: mainloop and epilogue of its tiles (in turn), or of its half of all tiles.
   Of each tile early(first row, first column) runs while its first step is multiplied, and
   epilogue(sums, first row, first column, tile, residual) behind the last one. */
template <typename T, typename EARLY, typename EPILOGUE>
__device__ __forceinline__ void consume(const struct hopper_sizes &s,
                                        const struct hopper_shared &shared, EARLY early,
                                        EPILOGUE epilogue) {
    unsigned group = threadIdx.x / GROUP - 1, parity = group ^ 1; /* warpgroup 0 is first */
    unsigned tiles = tiles_of(s), clusters = gridDim.x / T::BLOCKS;
    unsigned own = T::PINGPONG ? group : 0, stride = T::PINGPONG ? 2 : 1;
    unsigned first_row = T::HALVES ? group * T::GROUP_ROWS : 0;
    unsigned first_column = T::SCHEDULE == SIDE_BY_SIDE ? group * T::GROUP_COLUMNS : 0;
    unsigned first = blockIdx.x / T::BLOCKS;
    struct ring r = {0, 0};
    advance<T>(r, own * (steps_of<T>(s, first).count + T::FILLS));
    for (unsigned tile = first + own * clusters; tile < tiles; tile += stride * clusters) {
        float sums[T::ATOMS * T::GROUP_COLUMNS / 2];
        int2 at = tile_origin<T>(s, tile);
        at.x += (int)first_row;
        at.y += (int)first_column;
        if (T::PINGPONG) {
            mbarrier_wait(shared.order + group * 8, parity);
            parity ^= 1;
        }
        multiply_tile<T>(sums, r, steps_of<T>(s, tile).count, shared, first_row * BK * 2,
                         first_column * BK * 2, shared.order + (group ^ 1) * 8,
                         [&]() { early(at.x, at.y); });
        const struct ring residual = r;
        const struct residual_fills fills = fills_at<T>(shared, residual);
        advance<T>(r, T::FILLS);
        if (T::PINGPONG) { /* the other warpgroup's tile */
            advance<T>(r, steps_of<T>(s, tile + clusters).count + T::FILLS);
        }
        epilogue(sums, at.x, at.y, tile, fills);
        release_fills<T>(shared, residual);
    }
}

/* A block's work, in all threads. If the launch is an early one, the barriers are set up while the
   kernel before still runs, and constant weights are copied into all stages. ALONG_K the epilogue
   has two barriers of the cluster. */
template <typename T, typename EARLY, typename EPILOGUE>
__device__ __forceinline__ void run_tiles(const struct hopper_maps &maps,
                                          const struct hopper_sizes &s, EARLY early,
                                          EPILOGUE epilogue) {
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES], order[2];
    unsigned stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    const struct hopper_shared shared = {stages, shared_address(full), shared_address(empty),
                                         shared_address(order)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < T::STAGES; i++) {
            mbarrier_init(shared.full + i * 8, 1);
            /* the consumer warpgroups that read it, of both blocks */
            mbarrier_init(shared.empty + i * 8, T::SHARERS * (T::PINGPONG ? 1 : 2));
        }
        mbarrier_init(shared.order, 4);
        mbarrier_init(shared.order + 8, 4);
        mbarrier_init_fence();
    }
    if constexpr (T::BLOCKS == 1) {
        __syncthreads();
    } else {
        cluster_sync();
    }
    unsigned with_weights =
        threadIdx.x == 0 && s.weight_is_constant ? produce_early<T>(maps, s, shared) : 0;
    wait_on_dependent_grids();
    if (threadIdx.x < GROUP) {
        warpgroup_reg_dealloc<40>(); /* 40 + 2 * 232 = 3 * 168, which the block has */
        if (threadIdx.x == 0) {
            produce<T>(maps, s, shared, with_weights);
        }
        if constexpr (T::PAIR == ALONG_K) { /* those of the epilogue */
            cluster_sync();
            cluster_sync();
        }
    } else {
        warpgroup_reg_alloc<232>();
        consume<T>(s, shared, early, epilogue);
    }
    if constexpr (T::PAIR == ALONG_M) {
        cluster_sync(); /* no block exits while the other one writes to its shared memory */
    }
}

#endif

/* Whether this program has the code of a kernel for sm_90a: only that has barriers in shared
 * memory. */
template <auto KERNEL> bool hopper_has_code(void) {
    cudaFuncAttributes attributes;
    cudaError_t code = cudaFuncGetAttributes(&attributes, KERNEL);
    (void)cudaGetLastError();
    return code == cudaSuccess && attributes.sharedSizeBytes > 0;
}

size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* Describes both factors as T reads them. */
template <typename T>
enum status describe_factors(struct hopper_maps *maps, const struct gemm16_problem *p,
                             struct error *error) {
    constexpr unsigned WEIGHT = T::PAIR == ALONG_M ? 2 : 1;
    enum status status = T::IN_TRANSPOSED
                             ? describe(&maps->in, p->dtype, p->in, p->K, p->M, BK, BK, error)
                             : describe(&maps->in, p->dtype, p->in, p->M, p->K, T::BM, BK, error);
    if (status != STATUS_OK) {
        return status;
    }
    return T::WEIGHT_TRANSPOSED
               ? describe(&maps->weight, p->dtype, p->weight, p->K, p->N, BK / WEIGHT, BK, error)
               : describe(&maps->weight, p->dtype, p->weight, p->N, p->K, T::BN / WEIGHT, BK,
                          error);
}

/* Whether only blocks that run at the same time read the same of `in`: out is narrow, K long. On an
   H100 8192 x 768 x 3072 takes 55.0 us instead of 57.2, 59.8 instead of 65.1 with fp32 results, as
   what the kernel before wrote stays in L2, and need not go to memory meanwhile. (A policy of
   evict_normal, by createpolicy, made copies slower by a third: to L2 that is evict_normal_demote.
   Weights, and the factors of other products: as before, or slower.) */
inline bool is_read_once(const struct gemm16_problem *p) {
    return p->N <= 1024 && p->K >= 2048;
}

/* Tiles of T, in `splits` parts of K or fewer (none is empty). */
template <typename T>
struct hopper_sizes sizes_of(const struct gemm16_problem *p, size_t splits, unsigned band) {
    struct hopper_sizes s = {};
    s.steps = (unsigned)divide_up(p->K, BK);
    s.tiles_m = (unsigned)divide_up(p->M, T::BM * (T::PAIR == ALONG_M ? 2 : 1));
    s.tiles_n = (unsigned)divide_up(p->N, T::BN);
    s.split_steps = (unsigned)divide_up(s.steps, splits);
    s.splits = (unsigned)divide_up(s.steps, s.split_steps);
    s.band = band;
    s.weight_is_constant = p->weight_is_constant;
    s.in_once = is_read_once(p);
    s.split_rows = s.tiles_m * T::BM * (T::PAIR == ALONG_M ? 2 : 1);
    return s;
}

/* Blocks of a persistent launch: all that run at once, or fewer; ALONG_K a cluster has one tile. */
template <typename T>
unsigned persistent_blocks(const struct hopper_sizes &s, int multiprocessors) {
    size_t tiles = (size_t)s.tiles_m * s.tiles_n * s.splits;
    size_t clusters = T::PAIR == ALONG_K ? tiles : (size_t)multiprocessors / T::BLOCKS;
    clusters = clusters < 1 ? 1 : clusters;
    return (unsigned)(T::BLOCKS * (tiles < clusters ? tiles : clusters));
}

} // namespace

#endif

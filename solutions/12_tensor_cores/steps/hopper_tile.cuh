/**
 * @file hopper_tile.cuh
 * @brief Tiles by wgmma from stages that the TMA brings: producer, ring, mainloop and schedules,
 * which v7 to v10 share.
 *
 * wgmma reads both operands from shared memory: no registers, no ldmatrix between. Warps are
 * specialised: a warp of a producer warpgroup starts all copies, through the TMA; two consumer
 * warpgroups multiply, and run the epilogue. A block takes tile after tile, and copies for the next
 * tile start before this one is done.
 *
 * In the ping-pong schedule each consumer warpgroup has tiles of its own: while one runs its
 * epilogue the other one multiplies. In the cooperative schedule both share a larger tile.
 *
 * Blocks may be a cluster whose tiles lie one below the other: the weights of a step are the same
 * for all of them, so each fetches a share, and the TMA writes it to all (multicast). Tiles beside
 * each other share `in` in the same way. Or blocks of a cluster have the same tile, and each a part
 * of K (split-K): at the end each adds its share of the tile over all of them, by distributed
 * shared memory.
 *
 * A warpgroup's sums are up to three atoms, 64 rows of a wgmma each. In a tile's last steps all
 * products of an atom may come before those of the next one (TAIL), whose products then hide the
 * epilogue of the first one. These steps are written out: a loop makes each of its passes a group
 * of wgmma, and to wait for all but one of them is to wait for all.
 *
 * A factor that is transposed, (K, M) or (K, N), comes in groups of 64 or 32 columns, a row for
 * each k, and wgmma reads it "M-major" or "N-major". One copy brings all groups, as the third
 * dimension of a box: a copy for each group, as before, keeps the producer's thread busy for about
 * 140 cycles each (H100), more than the products of a step of 128 x 64, or of seven groups.
 *
 * wgmma reads its descriptors from uniform registers. If the compiler cannot know that an address
 * is the same in all lanes, it puts four moves (R2UR) before each wgmma, and the wgmma waits for
 * them: a step of 64 x 96 was 88 instructions, in a warp that is alone on its scheduler. By
 * addresses out of shuffles (consume()) it is 45, and the four wgmma stand one behind the other.
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
#include "common/cuda/warp.cuh"
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

/* The blocks of a cluster: two or four tiles that lie one below the other and share weights; two
   beside each other, which share `in`; two or four beside each other and two below, which share
   both. If K is split, that many such groups of blocks, which have the same tiles. */
enum cluster { ALONE, ALONG_M, FOUR_ALONG_M, ALONG_N, TWO_BY_TWO, TWO_BY_FOUR };

constexpr int blocks_below(enum cluster c) {
    return c == FOUR_ALONG_M ? 4 : c == ALONE || c == ALONG_N ? 1 : 2;
}

constexpr int blocks_beside(enum cluster c) {
    return c == TWO_BY_FOUR ? 4 : c == ALONG_N || c == TWO_BY_TWO ? 2 : 1;
}

/* How the consumer warpgroups of a block work: in turn, each on a tile of its own, so that one
   multiplies while the other one stores (the ping-pong schedule); or together, on the upper and the
   lower half of a tile, or on its left and right one (the cooperative schedule). */
enum schedule { IN_TURN, TOP_AND_BOTTOM, SIDE_BY_SIDE };

/* How a factor's part of a step lies in a stage: SIZE rows of 64 elements of K; or, TRANSPOSED,
   groups of WIDTH columns with a row for each k. SHARERS blocks fetch a share each, SHARE rows
   (TRANSPOSED: SHARE elements of K, one share of all groups behind the other). */
template <bool TRANSPOSED, int SIZE, int WIDTH, int SHARERS> struct factor {
    static constexpr int SHARE = (TRANSPOSED ? BK : SIZE) / SHARERS;
    static constexpr int GROUPS = TRANSPOSED ? SIZE / WIDTH : 1, COLUMNS = TRANSPOSED ? WIDTH : BK;
    static_assert(SHARE * SHARERS == (TRANSPOSED ? BK : SIZE) && SHARE % (TRANSPOSED ? 16 : 8) == 0,
                  "whole swizzled rows");
    static constexpr unsigned ROW = COLUMNS * 2, GROUP_BYTES = SHARE * ROW; /* of a share */
    static constexpr unsigned SHARE_BYTES = GROUPS * GROUP_BYTES;

    /* Where row (TRANSPOSED: column) `first`, a multiple of 64, lies. */
    static constexpr __host__ __device__ unsigned at(unsigned first) {
        return TRANSPOSED ? first / WIDTH * GROUP_BYTES : first * ROW;
    }

    /* Where elements 16 * depth and up of K lie. */
    static constexpr __host__ __device__ unsigned at_depth(unsigned depth) {
        return !TRANSPOSED ? depth * 32
                           : depth * 16 / SHARE * SHARE_BYTES + depth * 16 % SHARE * ROW;
    }
};

/* ATOMS: 64-row wgmma instructions of a consumer warpgroup; IN_TRANSPOSED, WEIGHT_TRANSPOSED: which
   factors are transposed; SPLIT: parts of K, of a cluster; EXCHANGED: `in` is the problem's weight,
   weight its `in`, and results leave transposed (launch_hopper()).

   Results leave through shared memory, except those of FINISH_ANY: a warp has 16 rows, and a part
   of them, 128 bytes of each row, is a store tile (64 bytes where GROUP_COLUMNS is no multiple of
   64; of a gate's results 64 or 32). PARTS: of a warp; SLOTS: store tiles that a warp has. FILLS:
   stages that a tile's residual takes in the ring, behind its steps, so that it is asked for when
   the steps' copies are, and no earlier; or its results (RING_RESULTS). */
template <typename E_, int BN_, int ATOMS_, enum schedule SCHEDULE_, enum cluster CLUSTER_,
          enum finish FINISH_ = FINISH_ANY, bool IN_TRANSPOSED_ = false,
          bool WEIGHT_TRANSPOSED_ = false, int SPLIT_ = 1, bool EXCHANGED_ = false>
struct hopper_tile {
    typedef E_ E;
    static constexpr bool IN_TRANSPOSED = IN_TRANSPOSED_, WEIGHT_TRANSPOSED = WEIGHT_TRANSPOSED_;
    static constexpr int BN = BN_, ATOMS = ATOMS_;
    static constexpr enum schedule SCHEDULE = SCHEDULE_;
    static constexpr bool PINGPONG = SCHEDULE == IN_TURN, HALVES = SCHEDULE == TOP_AND_BOTTOM;
    static constexpr int GROUP_COLUMNS = SCHEDULE == SIDE_BY_SIDE ? BN / 2 : BN;
    static constexpr enum cluster CLUSTER = CLUSTER_;
    static constexpr enum finish FINISH = FINISH_;
    static constexpr int BELOW = blocks_below(CLUSTER), BESIDE = blocks_beside(CLUSTER);
    static constexpr int SPLIT = SPLIT_, SHARERS = BELOW + BESIDE - 1;     /* of a stage */
    static constexpr int PLACES = BELOW * BESIDE, BLOCKS = PLACES * SPLIT; /* of a cluster */
    static_assert(!(PINGPONG && SPLIT > 1), "no such schedule");
    static constexpr bool EXCHANGED = EXCHANGED_;
    static constexpr int GROUP_ROWS = 64 * ATOMS, BM = HALVES ? 2 * GROUP_ROWS : GROUP_ROWS;
    /* The residual comes by the ring, or into the store tiles, if there is one. */
    static constexpr bool RING_RESIDUAL =
        FINISH == FINISH_RESIDUAL || (FINISH == FINISH_FLOAT_RESIDUAL && SPLIT == 1);
    /* Results leave from stages of the ring, those of the residual if there is one: where a block
       has few tiles, as for a gradient of weights, nothing else needs the ring at their end. */
    static constexpr bool RING_RESULTS =
        IN_TRANSPOSED && SPLIT == 1 && (FINISH == FINISH_FLOAT || FINISH == FINISH_FLOAT_RESIDUAL);
    static constexpr bool LOADS_RESIDUAL =
        FINISH == FINISH_ACTIVATION || (FINISH == FINISH_FLOAT_RESIDUAL && SPLIT > 1);
    static constexpr bool HAS_BIAS = FINISH != FINISH_PLAIN && FINISH != FINISH_ANY &&
                                     !IN_TRANSPOSED && !WEIGHT_TRANSPOSED; /* or none */
    /* Whether a warpgroup's bias lies in shared memory: where its sums leave few registers. */
    static constexpr bool SHARED_BIAS = HAS_BIAS && ATOMS * GROUP_COLUMNS >= 288;
    static constexpr bool FLOATS = FINISH == FINISH_FLOAT || FINISH == FINISH_FLOAT_RESIDUAL;
    /* Columns of out in a part, and a lane's sums of it: a gate needs twice as many. */
    static constexpr bool GATE = FINISH == FINISH_GATE;
    static constexpr bool WHOLE = GROUP_COLUMNS % 64 == 0;
    static constexpr int STORE_COLUMNS = GATE ? (WHOLE ? 32 : 16) : !FLOATS && WHOLE ? 64 : 32;
    static constexpr int EACH = GATE ? STORE_COLUMNS : STORE_COLUMNS / 2;
    static constexpr unsigned STORE_TILE = 16 * STORE_COLUMNS * (FLOATS ? 4 : 2);
    static constexpr int PARTS = ATOMS * GROUP_COLUMNS / 2 / EACH;
    static_assert(GROUP_COLUMNS / 2 % EACH == 0, "whole parts");
    static constexpr int OWN = (PARTS + SPLIT - 1) / SPLIT; /* of them stored by a block, at most */
    /* The store tiles that a warp needs: none where results leave from the ring, one where that
       leaves room for a stage more. */
    static constexpr bool IN_PLACE = FINISH == FINISH_RESIDUAL; /* results over the residual */
    static constexpr bool DEEP =
        ATOMS * GROUP_COLUMNS == 384 && (FINISH == FINISH_PLAIN || FINISH == FINISH_BIAS);
    static constexpr int NEEDED = FINISH == FINISH_ANY || RING_RESULTS || IN_PLACE ? 0
                                  : LOADS_RESIDUAL                                 ? 4
                                  : DEEP                                           ? 1
                                                                                   : 2;
    static constexpr int NEEDED_SLOTS = OWN < NEEDED ? OWN : NEEDED;
    static constexpr unsigned SLOT = STORE_TILE * (2 * GROUP / 32); /* bytes, of all warps */
    static constexpr unsigned IN = BM * BK * 2, WEIGHT = BN * BK * 2, STAGE = IN + WEIGHT;
    typedef factor<IN_TRANSPOSED, BM, 64, BESIDE> in_factor;
    typedef factor<WEIGHT_TRANSPOSED, BN, GROUP_COLUMNS % 64 == 0 ? 64 : 32, BELOW> weight_factor;
    static constexpr unsigned BIAS = SHARED_BIAS ? 2 * GROUP_COLUMNS * 4 : 0; /* fp32 */
    static constexpr unsigned FREE = SHARED_BYTES - 1024 - BIAS;
    static constexpr int FIT = (FREE - NEEDED_SLOTS * SLOT) / STAGE, STAGES = FIT < 12 ? FIT : 12;
    /* And those that it has: as many as fit beside the stages, so that it seldom waits for one. */
    static constexpr int ROOM = (FREE - STAGES * STAGE) / SLOT,
                         MOST_SLOTS = ROOM < OWN ? ROOM : OWN;
    static constexpr int SLOTS = NEEDED_SLOTS == 0 || LOADS_RESIDUAL ? NEEDED_SLOTS : MOST_SLOTS;
    static constexpr unsigned STAGING = SLOTS * STORE_TILE; /* bytes of a warp */
    static constexpr unsigned STORE_TILES = SLOTS * SLOT;
    static constexpr unsigned BYTES = STAGES * STAGE + STORE_TILES + 1024; /* 1024: to align */
    static_assert(!EXCHANGED || (RING_RESULTS && !HALVES), "no such epilogue");
    /* Stages that a tile's residual, or its results, take behind its steps: groups of columns of
       out, all rows of each. */
    static constexpr int OUT_ROWS = EXCHANGED ? BN : BM;
    static constexpr int COLUMN_GROUPS = (EXCHANGED ? BM : BN) / STORE_COLUMNS;
    static constexpr unsigned COLUMN_GROUP = OUT_ROWS * STORE_COLUMNS * (FLOATS ? 4 : 2);
    static constexpr int GROUPS_A_FILL = STAGE / COLUMN_GROUP;
    static constexpr int FILLS =
        RING_RESIDUAL || RING_RESULTS ? (COLUMN_GROUPS + GROUPS_A_FILL - 1) / GROUPS_A_FILL : 0;
    static_assert(FILLS <= 3 && FILLS < STAGES, "stages");
    /* The tail, a tile's last steps, has all products of an atom before those of the next one, so
       that the epilogue of the first rows runs beside the products of the others: where it is
       short. It keeps its stages, besides those of a step before it and of the residual. In the
       ping-pong schedule a block's last tile alone has one (ENDS_APART): for stages that are kept
       the other warpgroup would wait. */
    static constexpr bool SHORT = FINISH == FINISH_PLAIN ||
                                  (FINISH == FINISH_FLOAT && IN_TRANSPOSED) ||
                                  (FINISH == FINISH_BIAS && SCHEDULE == SIDE_BY_SIDE);
    static constexpr int ROOM_OF_TAIL = STAGES - 1 - FILLS, MOST_OF_TAIL = 3;
    static constexpr bool HAS_TAIL = ATOMS > 1 && ROOM_OF_TAIL > 0 && SPLIT == 1 && SHORT;
    static constexpr int TAIL = !HAS_TAIL                     ? 0
                                : ROOM_OF_TAIL < MOST_OF_TAIL ? ROOM_OF_TAIL
                                                              : MOST_OF_TAIL;
    static constexpr bool ENDS_APART = HAS_TAIL && PINGPONG;
    static constexpr unsigned LEAST_STEPS = TAIL + 1; /* of a tile; those beyond K are zeros */
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
    bool groups_of_in, groups_of_weight; /* whether one copy brings all of a transposed factor's */
    bool in_once;                        /* whether L2 need not keep `in`: tma_load_2d_once() */
};

/* The TMA's descriptions of the matrices; out and residual: where the TMA moves these. */
struct hopper_maps {
    CUtensorMap in, weight, out, residual;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

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

/* The block's part of K, and its place among the blocks that have this part, which go down and then
   to the right. */
template <typename T> __device__ __forceinline__ unsigned part_of_block() {
    return T::SPLIT == 1 ? 0 : rank_of_block<T>() / T::PLACES;
}

template <typename T> __device__ __forceinline__ unsigned place_of_block() {
    return T::PLACES == 1 ? 0 : rank_of_block<T>() % T::PLACES;
}

template <typename T> __device__ __forceinline__ unsigned block_below() {
    return place_of_block<T>() % T::BELOW;
}

template <typename T> __device__ __forceinline__ unsigned block_beside() {
    return place_of_block<T>() / T::BELOW;
}

/* A tile's range of K. */
struct steps {
    unsigned first, count;
};

template <typename T>
__device__ __forceinline__ struct steps steps_of(const struct hopper_sizes &s, unsigned tile) {
    if constexpr (T::SPLIT > 1) {
        unsigned part = part_of_block<T>(), first = s.steps * part / T::SPLIT;
        return {first, s.steps * (part + 1) / T::SPLIT - first};
    }
    if (s.splits == 1) {
        return {0, max(s.steps, T::LEAST_STEPS)};
    }
    unsigned first = tile / (s.tiles_m * s.tiles_n) * s.split_steps;
    return {first, max(min(s.split_steps, s.steps - first), T::LEAST_STEPS)};
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
    unsigned height = min(s.band, s.tiles_m - band * s.band);
    unsigned m = band * s.band + inside % height, n = inside / height;
    return make_int2((int)((m * T::BELOW + block_below<T>()) * T::BM),
                     (int)((n * T::BESIDE + block_beside<T>()) * T::BN));
}

/* Blocks of a cluster, as a mask. */
template <typename T> __device__ __forceinline__ unsigned short sharers_of_weight() {
    return (unsigned short)(((1u << T::BELOW) - 1)
                            << part_of_block<T>() * T::PLACES + block_beside<T>() * T::BELOW);
}

template <typename T> __device__ __forceinline__ unsigned short sharers_of_in() {
    unsigned blocks = 0;
#pragma unroll
    for (int i = 0; i < T::BESIDE; i++) {
        blocks |= 1u << i * T::BELOW;
    }
    return (unsigned short)(blocks << part_of_block<T>() * T::PLACES + block_below<T>());
}

/* A factor, its part of a tile, and the blocks that share it, of which this one is number `which`;
   groups: whether one copy brings all; once: tma_load_2d_once(). */
struct factor_copy {
    const CUtensorMap *map;
    int first; /* row, or column */
    unsigned short blocks;
    unsigned which;
    bool groups, once;
};

template <typename T>
__device__ __forceinline__ struct factor_copy copy_of_in(const struct hopper_maps &maps,
                                                         const struct hopper_sizes &s, int row) {
    return {&maps.in, row, sharers_of_in<T>(), block_beside<T>(), s.groups_of_in, s.in_once};
}

template <typename T>
__device__ __forceinline__ struct factor_copy
copy_of_weight(const struct hopper_maps &maps, const struct hopper_sizes &s, int column) {
    return {&maps.weight,       column, sharers_of_weight<T>(), block_below<T>(),
            s.groups_of_weight, false};
}

/* Starts the copies of a factor's part of a step, or of this block's share of it: elements k to
   k + 64 of K. One thread. */
template <bool TRANSPOSED, int SIZE, int WIDTH, int SHARERS>
__device__ __forceinline__ void start_copy(factor<TRANSPOSED, SIZE, WIDTH, SHARERS>, unsigned to,
                                           const struct factor_copy &c, int k, unsigned barrier) {
    typedef factor<TRANSPOSED, SIZE, WIDTH, SHARERS> F;
    to += c.which * F::SHARE_BYTES;
    if constexpr (TRANSPOSED) {
        int place = c.groups ? 0 : c.first, group = c.groups ? c.first / WIDTH : 0;
        k += (int)c.which * F::SHARE;
#pragma unroll 1
        for (int i = c.groups ? F::GROUPS - 1 : 0; i < F::GROUPS; i++) {
            if constexpr (SHARERS > 1) {
                tma_load_3d_multicast(to, c.map, place, k, group, barrier, c.blocks);
            } else {
                tma_load_3d(to, c.map, place, k, group, barrier);
            }
            to += F::GROUP_BYTES;
            place += WIDTH;
        }
    } else if constexpr (SHARERS > 1) {
        tma_load_2d_multicast(to, c.map, k, c.first + (int)c.which * F::SHARE, barrier, c.blocks);
    } else if (c.once) {
        tma_load_2d_once(to, c.map, k, c.first, barrier);
    } else {
        tma_load_2d(to, c.map, k, c.first, barrier);
    }
}

/* Starts the copies of weights into all stages, of the block's first tile. @return how many steps
   have their weights */
template <typename T>
__device__ __forceinline__ unsigned produce_early(const struct hopper_maps &maps,
                                                  const struct hopper_sizes &s,
                                                  const struct hopper_shared &shared) {
    unsigned tile = blockIdx.x / T::BLOCKS;
    const struct steps steps = steps_of<T>(s, tile);
    unsigned count = min(steps.count, (unsigned)T::STAGES);
    const struct factor_copy weight = copy_of_weight<T>(maps, s, tile_origin<T>(s, tile).y);
    for (unsigned step = 0; step < count; step++) {
        unsigned to = shared.stages + step * T::STAGE + T::IN, barrier = shared.full + step * 8;
        if (elect_lane()) {
            mbarrier_arrive_expect_tx(barrier, T::STAGE);
            start_copy(typename T::weight_factor(), to, weight, (int)((steps.first + step) * BK),
                       barrier);
        }
    }
    return count;
}

/* Starts the copies of a tile's residual, as stages become empty; or passes these stages on for its
   results. */
template <typename T>
__device__ __forceinline__ void produce_fills(const struct hopper_maps &maps,
                                              const struct hopper_shared &shared, struct ring &r,
                                              int2 at) {
    for (int fill = 0; fill < T::FILLS; fill++) {
        unsigned to = shared.stages + r.stage * T::STAGE, barrier = shared.full + r.stage * 8;
        int first = fill * T::GROUPS_A_FILL, end = min(first + T::GROUPS_A_FILL, T::COLUMN_GROUPS);
        int row = T::EXCHANGED ? at.y : at.x, column = T::EXCHANGED ? at.x : at.y;
        mbarrier_wait(shared.empty + r.stage * 8, r.parity ^ 1);
        if (!T::RING_RESIDUAL && elect_lane()) {
            mbarrier_arrive(barrier);
        } else if (T::RING_RESIDUAL && elect_lane()) {
            mbarrier_arrive_expect_tx(barrier, (end - first) * T::COLUMN_GROUP);
            for (int group = first; group < end; group++) {
                tma_load_2d(to + (group - first) * T::COLUMN_GROUP, &maps.residual,
                            column + group * T::STORE_COLUMNS, row, barrier);
            }
        }
        advance<T>(r);
    }
}

/* Starts the copies of a tile's steps, as stages become empty, the first `with_weights` without
   their weights, which are on their way; then those of its residual. */
template <typename T>
__device__ __forceinline__ void produce_tile(const struct hopper_maps &maps,
                                             const struct hopper_sizes &s,
                                             const struct hopper_shared &shared, struct ring &r,
                                             unsigned tile, unsigned with_weights) {
    const struct steps steps = steps_of<T>(s, tile);
    const int2 at = tile_origin<T>(s, tile);
    const struct factor_copy in = copy_of_in<T>(maps, s, at.x),
                             weight = copy_of_weight<T>(maps, s, at.y);
    for (unsigned step = 0; step < steps.count; step++) {
        unsigned to = shared.stages + r.stage * T::STAGE, barrier = shared.full + r.stage * 8;
        int k = (int)((steps.first + step) * BK);
        bool whole = step >= with_weights;
        if (whole) {
            mbarrier_wait(shared.empty + r.stage * 8, r.parity ^ 1);
        }
        if (elect_lane()) {
            if (whole) {
                mbarrier_arrive_expect_tx(barrier, T::STAGE);
            }
            start_copy(typename T::in_factor(), to, in, k, barrier);
            if (whole) {
                start_copy(typename T::weight_factor(), to + T::IN, weight, k, barrier);
            }
        }
        advance<T>(r);
    }
    produce_fills<T>(maps, shared, r, at);
}

/* Waits until all stages are empty: then all arrivals of other blocks are there, and so this block
   may exit. (A barrier of the cluster would have to wait for memory as well: cluster_sync().) */
template <typename T>
__device__ __forceinline__ void wait_for_readers(const struct hopper_shared &shared,
                                                 struct ring r) {
    for (int i = 0; i < T::STAGES; i++) {
        mbarrier_wait(shared.empty + r.stage * 8, r.parity ^ 1);
        advance<T>(r);
    }
}

/* The producer, a warp: all copies of the block. @param with_weights by produce_early() */
template <typename T>
__device__ __forceinline__ void produce(const struct hopper_maps &maps,
                                        const struct hopper_sizes &s,
                                        const struct hopper_shared &shared, unsigned with_weights) {
    unsigned tiles = tiles_of(s), clusters = gridDim.x / T::BLOCKS;
    /* By the shuffle the addresses stay in uniform registers; else each use reads the block's rank
       anew. */
    const struct hopper_shared same = {__shfl_sync(~0u, shared.stages, 0),
                                       __shfl_sync(~0u, shared.full, 0),
                                       __shfl_sync(~0u, shared.empty, 0), shared.order};
    struct ring r = {0, 0};
    for (unsigned tile = blockIdx.x / T::BLOCKS; tile < tiles; tile += clusters) {
        produce_tile<T>(maps, s, same, r, tile, with_weights);
        with_weights = 0;
    }
    if constexpr (T::SHARERS > 1) {
        wait_for_readers<T>(same, r);
    }
}

/* A consumer warpgroup releases a stage to the producers of all blocks that copy into it: its own,
   those above and below, those beside. One arrival each. */
template <typename T> __device__ __forceinline__ void release(unsigned barrier) {
    if constexpr (T::SHARERS == 1) {
        if (threadIdx.x % GROUP == 0) {
            mbarrier_arrive(barrier);
        }
    } else {
        unsigned i = threadIdx.x % GROUP;
        if (i < T::SHARERS) {
            unsigned place = i < T::BELOW ? i + block_beside<T>() * T::BELOW
                                          : place_of_block<T>() + (i - T::BELOW + 1) * T::BELOW;
            mbarrier_arrive_cluster(barrier, part_of_block<T>() * T::PLACES + place % T::PLACES);
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

/* A barrier of the warpgroup's threads. */
__device__ __forceinline__ void sync_warpgroup() {
    asm volatile("bar.sync %0, 128;" ::"r"(threadIdx.x / GROUP) : "memory");
}

/* Releases its stages, when all warps of the warpgroup have read them. */
template <typename T>
__device__ __forceinline__ void release_fills(const struct hopper_shared &shared,
                                              struct ring first) {
    if (T::FILLS > 0) {
        sync_warpgroup();
    }
    for (int fill = 0; fill < T::FILLS; fill++) {
        release<T>(shared.empty + first.stage * 8);
        advance<T>(first);
    }
}

/* A warpgroup's part of a stage: addresses of its rows of `in` and of its columns of weight. */
struct stage_part {
    unsigned in, weight;
};

/* sums of atoms `first` to `end` - 1 += a step's products, or = where `accumulate` is false. */
template <typename T>
__device__ __forceinline__ void multiply_atoms(float *sums, const struct stage_part &stage,
                                               int first, int end, bool accumulate) {
    typedef typename T::in_factor I;
    typedef typename T::weight_factor W;
    uint64_t in = wgmma_descriptor<T::IN_TRANSPOSED, I::ROW, I::GROUP_BYTES>(stage.in);
    uint64_t weight = wgmma_descriptor<T::WEIGHT_TRANSPOSED, W::ROW, W::GROUP_BYTES>(stage.weight);
#pragma unroll
    for (int depth = 0; depth < BK / 16; depth++) {
#pragma unroll
        for (int atom = first; atom < end; atom++) {
            wgmma<T::GROUP_COLUMNS>::template run<T::IN_TRANSPOSED, T::WEIGHT_TRANSPOSED>(
                sums + atom * (T::GROUP_COLUMNS / 2),
                in + (I::at(64 * atom) + I::at_depth(depth) >> 4),
                weight + (W::at_depth(depth) >> 4), accumulate || depth > 0, typename T::E());
        }
    }
}

/* The mainloop: sums = the warpgroup's part of one tile; its rows of `in` lie `rows_at` bytes into
   a stage, its columns of weight `columns_at`. In the ping-pong schedule the other
   warpgroup may start when all steps of this tile have arrived, not earlier: a barrier's parity
   tells a phase from the next one only. early() runs while the first step is multiplied.
   @return the stages of the tail: the sums are there by wait_for_atom() */
template <typename T, int TAIL, typename EARLY>
__device__ __forceinline__ struct ring
multiply_tile(float *sums, struct ring &r, unsigned steps, const struct hopper_shared &shared,
              unsigned rows_at, unsigned columns_at, unsigned next_in_order, EARLY early) {
    auto part_of_stage = [&](const struct ring &at) {
        unsigned stage = shared.stages + at.stage * T::STAGE;
        return stage_part{stage + rows_at, stage + columns_at};
    };
    unsigned last = 0, step = 0;
    do {
        mbarrier_wait(shared.full + r.stage * 8, r.parity);
        wgmma_fence();
        multiply_atoms<T>(sums, part_of_stage(r), 0, T::ATOMS, step > 0);
        wgmma_commit();
        if (step > 0) { /* the step before is read; this one is in flight */
            wgmma_wait<1>();
            release<T>(shared.empty + last * 8);
        } else {
            early();
        }
        last = r.stage;
        advance<T>(r);
    } while (++step < steps - TAIL);
    const struct ring tail = r;
    if constexpr (TAIL > 0) {
#pragma unroll
        for (int atom = 0; atom < T::ATOMS; atom++) {
            r = tail;
#pragma unroll
            for (int i = 0; i < TAIL; i++) { /* in a loop each step would be a group of its own */
                if (atom == 0) {
                    mbarrier_wait(shared.full + r.stage * 8, r.parity);
                    wgmma_fence();
                }
                multiply_atoms<T>(sums, part_of_stage(r), atom, atom + 1, true);
                advance<T>(r);
            }
            wgmma_commit();
        }
    }
    wait_for_fills<T>(shared, r);
    if (T::PINGPONG && threadIdx.x % 32 == 0) {
        mbarrier_arrive(next_in_order);
    }
    wgmma_wait<TAIL == 0 ? 0 : T::ATOMS>();
    release<T>(shared.empty + last * 8);
    if constexpr (TAIL == 0) {
        wgmma_keep_order<T::ATOMS * T::GROUP_COLUMNS / 2>(sums);
    }
    return tail;
}

/* Waits for the sums of an atom, of three at most; behind the last one the tail is released. */
template <typename T, int TAIL>
__device__ __forceinline__ void
wait_for_atom(float *sums, int atom, const struct hopper_shared &shared, struct ring tail) {
    constexpr int SUMS = T::GROUP_COLUMNS / 2;
    if (TAIL == 0) {
        return;
    }
    if (atom == T::ATOMS - 1) {
        wgmma_wait<0>();
        for (int i = 0; i < TAIL; i++) {
            release<T>(shared.empty + tail.stage * 8);
            advance<T>(tail);
        }
    } else if (atom == T::ATOMS - 2) {
        wgmma_wait<1>();
    } else {
        wgmma_wait<2>();
    }
    wgmma_keep_order<SUMS>(sums + atom * SUMS);
}

/* A consumer warpgroup: where it is. */
struct consumer {
    struct hopper_shared shared;
    unsigned group; /* of the block's two */
    unsigned turns; /* parity of its next turn, in the ping-pong schedule */
    struct ring r;
};

/* Its mainloop and epilogue of one tile. */
template <typename T, int TAIL, typename EARLY, typename EPILOGUE>
__device__ __forceinline__ void consume_tile(const struct hopper_sizes &s, struct consumer &c,
                                             unsigned tile, EARLY early, EPILOGUE epilogue) {
    unsigned first_row = T::HALVES ? c.group * T::GROUP_ROWS : 0;
    unsigned first_column = T::SCHEDULE == SIDE_BY_SIDE ? c.group * T::GROUP_COLUMNS : 0;
    float sums[T::ATOMS * T::GROUP_COLUMNS / 2];
    int2 at = tile_origin<T>(s, tile);
    at.x += (int)first_row;
    at.y += (int)first_column;
    if (T::PINGPONG) {
        mbarrier_wait(c.shared.order + c.group * 8, c.turns);
        c.turns ^= 1;
    }
    const struct ring tail = multiply_tile<T, TAIL>(
        sums, c.r, steps_of<T>(s, tile).count, c.shared, T::in_factor::at(first_row),
        T::IN + T::weight_factor::at(first_column), c.shared.order + (c.group ^ 1) * 8,
        [&]() { early(at.x, at.y); });
    const struct ring residual = c.r;
    const struct residual_fills fills = fills_at<T>(c.shared, residual);
    advance<T>(c.r, T::FILLS);
    if (T::PINGPONG) { /* the other warpgroup's tile */
        advance<T>(c.r, steps_of<T>(s, tile + gridDim.x / T::BLOCKS).count + T::FILLS);
    }
    epilogue(sums, at.x, at.y, tile, fills,
             [&](int atom) { wait_for_atom<T, TAIL>(sums, atom, c.shared, tail); });
    release_fills<T>(c.shared, residual);
}

/* A consumer warpgroup: its tiles (in turn), or its half of all tiles. Of each tile early(first
   row, first column) runs while its first step is multiplied, and epilogue(sums, first row, first
   column, tile, residual, ready) behind the last one, which calls ready(atom) before it reads sums
   of an atom. */
template <typename T, typename EARLY, typename EPILOGUE>
__device__ __forceinline__ void consume(const struct hopper_sizes &s,
                                        const struct hopper_shared &given, EARLY early,
                                        EPILOGUE epilogue) {
    /* By shuffles, as in produce(): descriptors are computed in uniform registers. */
    struct consumer c = {};
    c.group = __shfl_sync(~0u, threadIdx.x / GROUP, 0) - 1;
    c.shared = {__shfl_sync(~0u, given.stages, 0), __shfl_sync(~0u, given.full, 0),
                __shfl_sync(~0u, given.empty, 0), __shfl_sync(~0u, given.order, 0)};
    c.turns = c.group ^ 1; /* warpgroup 0 is first */
    unsigned tiles = tiles_of(s), clusters = gridDim.x / T::BLOCKS;
    unsigned own = T::PINGPONG ? c.group : 0, stride = T::PINGPONG ? 2 : 1;
    unsigned first = blockIdx.x / T::BLOCKS;
    advance<T>(c.r, own * (steps_of<T>(s, first).count + T::FILLS));
    unsigned tile = first + own * clusters;
    unsigned others = T::ENDS_APART ? tiles - min(tiles, clusters) : tiles;
    for (; tile < others; tile += stride * clusters) {
        consume_tile<T, T::ENDS_APART ? 0 : T::TAIL>(s, c, tile, early, epilogue);
    }
    if (T::ENDS_APART && tile < tiles) { /* the block's last tile */
        consume_tile<T, T::TAIL>(s, c, tile, early, epilogue);
    }
}

/* A block's work, in all threads. If the launch is an early one, the barriers are set up while the
   kernel before still runs, and constant weights are copied into all stages. Where K is split the
   epilogue has two barriers of the cluster. */
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
            /* the consumer warpgroups that read it, of all blocks that copy into it */
            mbarrier_init(shared.empty + i * 8, T::SHARERS * (T::PINGPONG ? 1 : 2));
        }
        mbarrier_init(shared.order, 4);
        mbarrier_init(shared.order + 8, 4);
        mbarrier_init_fence();
    }
    if constexpr (T::BLOCKS == 1) {
        __syncthreads();
    } else {
        cluster_sync_relaxed();
    }
    /* The same in all lanes: by the shuffle the compiler knows that a warp does not diverge. */
    bool producer = __shfl_sync(~0u, threadIdx.x / 32, 0) == 0;
    unsigned with_weights =
        producer && s.weight_is_constant ? produce_early<T>(maps, s, shared) : 0;
    wait_on_dependent_grids();
    if (threadIdx.x < GROUP) {
        warpgroup_reg_dealloc<40>(); /* 40 + 2 * 232 = 3 * 168, which the block has */
        if (producer) {
            produce<T>(maps, s, shared, with_weights);
        }
        if constexpr (T::SPLIT > 1) { /* those of the epilogue */
            cluster_sync();
            cluster_sync();
        }
    } else {
        warpgroup_reg_alloc<232>();
        consume<T>(s, shared, early, epilogue);
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

/* Whether one copy brings all groups of a transposed factor: columns are whole groups, as the last
   one would reach into the next row. Else each comes by its own. */
template <bool TRANSPOSED, int SIZE, int WIDTH, int SHARERS>
bool is_grouped(factor<TRANSPOSED, SIZE, WIDTH, SHARERS>, size_t columns) {
    return TRANSPOSED && SIZE > WIDTH && columns % WIDTH == 0;
}

/* Describes a factor, `size` rows or, TRANSPOSED, columns, as start_copy() asks for it. */
template <bool TRANSPOSED, int SIZE, int WIDTH, int SHARERS>
enum status describe_factor(factor<TRANSPOSED, SIZE, WIDTH, SHARERS> part, CUtensorMap *map,
                            const struct gemm16_problem *p, const void *data, size_t size,
                            struct error *error) {
    typedef factor<TRANSPOSED, SIZE, WIDTH, SHARERS> F;
    struct tensor_map_matrix m = {p->dtype, data, size, p->K, F::SHARE, BK, F::ROW, 0};
    if (TRANSPOSED) {
        m.rows = p->K;
        m.columns = size;
        m.box_columns = WIDTH;
        m.box_groups = is_grouped(part, size) ? F::GROUPS : 1;
    }
    return tensor_map_create(map, &m, error);
}

/* Both factors as T reads them. */
template <typename T>
enum status describe_factors(struct hopper_maps *maps, const struct gemm16_problem *p,
                             struct error *error) {
    TRY(describe_factor(typename T::in_factor(), &maps->in, p, p->in, p->M, error));
    return describe_factor(typename T::weight_factor(), &maps->weight, p, p->weight, p->N, error);
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
    s.tiles_m = (unsigned)divide_up(p->M, T::BM * T::BELOW);
    s.tiles_n = (unsigned)divide_up(p->N, T::BN * T::BESIDE);
    s.split_steps = (unsigned)divide_up(s.steps, splits);
    s.split_steps = s.split_steps < T::LEAST_STEPS ? T::LEAST_STEPS : s.split_steps;
    s.splits = (unsigned)divide_up(s.steps, s.split_steps);
    s.band = band;
    s.weight_is_constant = p->weight_is_constant;
    s.in_once = is_read_once(p);
    s.groups_of_in = is_grouped(typename T::in_factor(), p->M);
    s.groups_of_weight = is_grouped(typename T::weight_factor(), p->N);
    s.split_rows = s.tiles_m * T::BM * T::BELOW;
    return s;
}

/* Clusters of KERNEL that run at once: 30 of four blocks, or 15 of eight, on an H100, as each lies
 * within a GPC, and not all of these have the same number of multiprocessors. */
template <typename T, auto KERNEL> int clusters_at_once() {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = T::BLOCKS;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(T::BLOCKS);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = T::BYTES;
    config.attrs = &cluster;
    config.numAttrs = 1;
    int count = 0;
    cudaError_t code = cudaOccupancyMaxActiveClusters(&count, KERNEL, &config);
    (void)cudaGetLastError();
    return code == cudaSuccess ? count : 0;
}

/* Blocks of a persistent launch: all that run at once, or fewer; where K is split a cluster has one
   tile. */
template <typename T, auto KERNEL>
unsigned persistent_blocks(const struct hopper_sizes &s, int multiprocessors) {
    size_t tiles = (size_t)s.tiles_m * s.tiles_n * s.splits;
    size_t clusters = T::SPLIT > 1 ? tiles : (size_t)multiprocessors / T::BLOCKS;
    if (T::SHARERS > 2 && T::SPLIT == 1) {
        static const int fit = clusters_at_once<T, KERNEL>();
        clusters = (size_t)fit < clusters ? (size_t)fit : clusters;
    }
    clusters = clusters < 1 ? 1 : clusters;
    return (unsigned)(T::BLOCKS * (tiles < clusters ? tiles : clusters));
}

} // namespace

#endif

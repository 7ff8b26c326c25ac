/**
 * @file gemm16_hopper.cuh
 * @brief The kernel for Hopper: wgmma on tiles that the TMA brings to two blocks at once.
 *
 * Changes since gemm16_tile.cu, and why.
 *
 * wgmma reads both operands from shared memory: no registers, no ldmatrix between. Warps are
 * specialised: one thread of a producer warpgroup starts all copies, through the TMA; two consumer
 * warpgroups multiply, and run the epilogue.
 *
 * Blocks come in clusters of two, which have the same columns: each fetches half of the weights and
 * the TMA writes them to both (multicast). Without that the L2 cache could not feed 132
 * multiprocessors: a step of 128 x 192 needs 40 KiB of it every 768 cycles, with it 28 KiB.
 *
 * The kernel is persistent: one block a multiprocessor, which takes tile after tile, and copies for
 * the next tile start before this one is done. In the ping-pong schedule each consumer warpgroup
 * has tiles of its own: while one runs its epilogue, with bias and GELU, the other one multiplies.
 * In the cooperative schedule both share a tile twice as large, which is better for a long K.
 *
 * A factor that is transposed, (K, M) or (K, N), comes in boxes of 64 rows of K and 64 columns, and
 * wgmma reads it "M-major" or "N-major". Those are a backward pass's products, which have neither
 * bias nor activation, and aligned rows; but a K that is long beside few tiles, hence split-K.
 *
 * Without code for sm_90a (so on simt) the kernel is empty and has no static shared memory, by
 * which gemm16_hopper_can() tells.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "labs/12_tensor_cores/given/tensor_map.h"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/mma.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#define CLUSTER_OF_TWO __cluster_dims__(2, 1, 1)
#else
#define CLUSTER_OF_TWO
#endif

namespace {

constexpr int BK = 64;                             /* elements of K a step: 128 bytes */
constexpr int GROUP = 128;                         /* threads of a warpgroup */
constexpr int THREADS = 3 * GROUP;                 /* a producer, two consumers */
constexpr int STORE_ROWS = 16, STORE_COLUMNS = 64; /* the store tile: what a warp stores at once */
constexpr unsigned STORE_TILE =
    STORE_ROWS * STORE_COLUMNS * 2;                 /* bytes; a warp has two store tiles */
constexpr unsigned SHARED_BYTES = 227 * 1024 - 256; /* of a block, beside the barriers */

/* ATOMS: 64-row wgmma instructions of a consumer warpgroup; PINGPONG: the ping-pong schedule, else
   the cooperative one; IN_TRANSPOSED, WEIGHT_TRANSPOSED: which factors are transposed; PLAIN:
   neither is, and there is no split-K. */
template <typename E_, int BN_, int ATOMS_, bool PINGPONG_, bool IN_TRANSPOSED_ = false,
          bool WEIGHT_TRANSPOSED_ = false>
struct hopper_tile {
    typedef E_ E;
    static constexpr bool IN_TRANSPOSED = IN_TRANSPOSED_, WEIGHT_TRANSPOSED = WEIGHT_TRANSPOSED_;
    static constexpr bool PLAIN = !IN_TRANSPOSED && !WEIGHT_TRANSPOSED;
    static constexpr int BN = BN_, ATOMS = ATOMS_;
    static constexpr bool PINGPONG = PINGPONG_;
    static constexpr int GROUP_ROWS = 64 * ATOMS, BM = PINGPONG ? GROUP_ROWS : 2 * GROUP_ROWS;
    static constexpr unsigned IN = BM * BK * 2, WEIGHT = BN * BK * 2, STAGE = IN + WEIGHT;
    static constexpr unsigned STORE_TILES = 2 * STORE_TILE * (2 * GROUP / 32);
    static constexpr int STAGES = (SHARED_BYTES - 1024 - STORE_TILES) / STAGE;
    static constexpr unsigned BYTES = STAGES * STAGE + STORE_TILES + 1024; /* 1024: to align */
};

template <bool PLAIN> struct hopper_sizes {
    unsigned steps;            /* of K */
    unsigned pairs_m, tiles_n; /* tiles of M, two at a time */
};

/* With split-K: the tiles of split 0, then those of split 1, ... */
template <> struct hopper_sizes<false> {
    unsigned steps, pairs_m, tiles_n;
    unsigned splits, split_steps; /* of K, and the steps of each but the last */
};

/* The TMA's descriptions of the matrices. */
struct hopper_maps {
    CUtensorMap in, weight, out;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr unsigned short BOTH_BLOCKS = 3; /* of a cluster, as a mask */
constexpr int BAND = 8; /* pairs of tiles of M that neighbouring clusters share weights for */

/* A stage of the pipeline's ring buffer, and the parity of its barriers' phase. */
struct ring {
    unsigned stage, parity;
};

template <typename T> __device__ __forceinline__ void advance(struct ring &r, unsigned by) {
    unsigned at = r.stage + by;
    r.parity ^= at / T::STAGES & 1;
    r.stage = at % T::STAGES;
}

/* A tile's range of K. */
struct steps {
    unsigned first, count;
};

__device__ __forceinline__ struct steps steps_of(const struct hopper_sizes<true> &s, unsigned) {
    return {0, s.steps};
}

__device__ __forceinline__ struct steps steps_of(const struct hopper_sizes<false> &s,
                                                 unsigned tile) {
    unsigned first = tile / (s.pairs_m * s.tiles_n) * s.split_steps;
    return {first, min(s.split_steps, s.steps - first)};
}

__device__ __forceinline__ unsigned tiles_of(const struct hopper_sizes<true> &s) {
    return s.pairs_m * s.tiles_n;
}

__device__ __forceinline__ unsigned tiles_of(const struct hopper_sizes<false> &s) {
    return s.pairs_m * s.tiles_n * s.splits;
}

/* The tile scheduler: origin (row, column) of this block's tile. Clusters go down BAND pairs, then
   to the right. */
template <typename T>
__device__ __forceinline__ int2 tile_origin(const struct hopper_sizes<T::PLAIN> &s, unsigned tile) {
    if constexpr (!T::PLAIN) {
        tile %= s.pairs_m * s.tiles_n; /* a split's tiles follow those of the split before */
    }
    unsigned band = tile / (BAND * s.tiles_n), inside = tile % (BAND * s.tiles_n);
    unsigned height = min((unsigned)BAND, s.pairs_m - band * BAND);
    unsigned pair = band * BAND + inside % height;
    return make_int2((int)((pair * 2 + cluster_rank()) * T::BM), (int)(inside / height * T::BN));
}

/* Starts the copies of one step, from element k of K on. Each block of the cluster fetches half of
   the weights for both: half of the rows, or half of the 64 elements of K where weight is
   transposed. */
template <typename T>
__device__ __forceinline__ void copy_step(const struct hopper_maps &maps, unsigned to, int2 at,
                                          int k, unsigned rank, unsigned barrier) {
    constexpr unsigned BOX = BK * BK * 2, HALF = T::BN / 2;
    if constexpr (T::IN_TRANSPOSED) {
#pragma unroll
        for (int i = 0; i < T::BM / BK; i++) {
            tma_load_2d(to + i * BOX, &maps.in, at.x + i * BK, k, barrier);
        }
    } else {
        tma_load_2d(to, &maps.in, k, at.x, barrier);
    }
    if constexpr (T::WEIGHT_TRANSPOSED) {
#pragma unroll
        for (int i = 0; i < T::BN / BK; i++) {
            tma_load_2d_multicast(to + T::IN + i * BOX + rank * (BOX / 2), &maps.weight,
                                  at.y + i * BK, k + (int)rank * (BK / 2), barrier, BOTH_BLOCKS);
        }
    } else {
        tma_load_2d_multicast(to + T::IN + rank * HALF * BK * 2, &maps.weight, k,
                              at.y + (int)(rank * HALF), barrier, BOTH_BLOCKS);
    }
}

/* The producer, one thread: starts all copies of all tiles, as stages become empty. */
template <typename T>
__device__ __forceinline__ void produce(const struct hopper_maps &maps,
                                        const struct hopper_sizes<T::PLAIN> &s, unsigned stages,
                                        unsigned full, unsigned empty) {
    unsigned tiles = tiles_of(s), clusters = gridDim.x / 2, rank = cluster_rank();
    struct ring r = {0, 0};
    for (unsigned tile = blockIdx.x / 2; tile < tiles; tile += clusters) {
        int2 at = tile_origin<T>(s, tile);
        const struct steps steps = steps_of(s, tile);
        for (unsigned step = 0; step < steps.count; step++) {
            unsigned to = stages + r.stage * T::STAGE, barrier = full + r.stage * 8;
            mbarrier_wait(empty + r.stage * 8, r.parity ^ 1);
            mbarrier_arrive_expect_tx(barrier, T::STAGE);
            copy_step<T>(maps, to, at, (int)((steps.first + step) * BK), rank, barrier);
            advance<T>(r, 1);
        }
    }
}

/* A consumer warp releases a stage to the producers of both blocks. */
__device__ __forceinline__ void release(unsigned barrier) {
    if (threadIdx.x % 32 < 2) {
        mbarrier_arrive_cluster(barrier, threadIdx.x % 32);
    }
}

/* The mainloop: sums = the warpgroup's rows of one tile; its rows of `in` lie `rows_at` bytes into
   a stage. In the ping-pong schedule the other warpgroup may start when all steps of this tile have
   arrived, not earlier: a barrier's parity tells a phase from the next one only. */
template <typename T>
__device__ __forceinline__ void
multiply_tile(float (*sums)[T::BN / 2], struct ring &r, unsigned steps, unsigned stages,
              unsigned rows_at, unsigned full, unsigned empty, unsigned next_in_order) {
    /* Sixteen elements of K in a descriptor's units of 16 bytes: 32 bytes, or sixteen rows. */
    constexpr int IN_STEP = T::IN_TRANSPOSED ? 16 * 128 >> 4 : 2;
    constexpr int WEIGHT_STEP = T::WEIGHT_TRANSPOSED ? 16 * 128 >> 4 : 2;
    unsigned last = 0;
    for (unsigned step = 0; step < steps; step++) {
        mbarrier_wait(full + r.stage * 8, r.parity);
        unsigned stage = stages + r.stage * T::STAGE;
        uint64_t in = wgmma_descriptor<T::IN_TRANSPOSED>(stage + rows_at);
        uint64_t weight = wgmma_descriptor<T::WEIGHT_TRANSPOSED>(stage + T::IN);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) {
#pragma unroll
            for (int atom = 0; atom < T::ATOMS; atom++) {
                wgmma<T::BN>::template run<T::IN_TRANSPOSED, T::WEIGHT_TRANSPOSED>(
                    sums[atom], in + atom * (64 * BK * 2 >> 4) + IN_STEP * depth,
                    weight + WEIGHT_STEP * depth, step > 0 || depth > 0, typename T::E());
            }
        }
        wgmma_commit();
        if (step > 0) {
            wgmma_wait<1>();
            release(empty + last * 8);
        }
        last = r.stage;
        advance<T>(r, 1);
    }
    if (T::PINGPONG && threadIdx.x % 32 == 0) {
        mbarrier_arrive(next_in_order);
    }
    wgmma_wait<0>();
    release(empty + last * 8);
}

/* The address that this lane passes to ldmatrix and stmatrix for columns 16 q to 16 q + 15 of a
   store tile: a row of one of four 8 x 8 matrices, in 128-byte swizzle. */
__device__ __forceinline__ unsigned matrix_at(unsigned store_tile, int q) {
    int lane = threadIdx.x % 32, row = lane / 8 % 2 * 8 + lane % 8, piece = 2 * q + lane / 16;
    return store_tile + row * 128 + (piece ^ row % 8) * 16;
}

/* x += bias of the store tile's 64 columns: each lane loads two, and shuffles pass them on. */
template <typename E>
__device__ __forceinline__ void add_bias(float *x, const struct gemm16_epilogue &f, size_t n) {
    int lane = threadIdx.x % 32;
    size_t at = n + 2 * lane, left = at < f.N ? f.N - at : 0;
    float first = left > 0 ? value_at<E>(f.bias, at, f.bias_is_float) : 0.0f;
    float second = left > 1 ? value_at<E>(f.bias, at + 1, f.bias_is_float) : 0.0f;
#pragma unroll
    for (int j = 0; j < STORE_COLUMNS / 8; j++) {
        float low = __shfl_sync(~0u, first, 4 * j + lane % 4);
        float high = __shfl_sync(~0u, second, 4 * j + lane % 4);
        x[4 * j] += low, x[4 * j + 1] += high;
        x[4 * j + 2] += low, x[4 * j + 3] += high;
    }
}

/* A lane's part of a store tile of the residual. */
struct residual_part {
    struct eight rows[4];
};

/* Rows lane / 8 and every fourth behind it, 16 bytes each; zeros for what is outside. */
template <typename E>
__device__ __forceinline__ struct residual_part load_residual(const struct gemm16_epilogue &f,
                                                              size_t m, size_t n) {
    struct residual_part part = {};
    size_t row = m + threadIdx.x % 32 / 8, column = n + threadIdx.x % 8 * 8;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (row + 4 * i < f.M && column < f.N) {
            part.rows[i] =
                *(const struct eight *)((const E *)f.residual + (row + 4 * i) * f.N + column);
        }
    }
    return part;
}

/* x += residual, which the store tile brings into the accumulators' layout. */
template <typename E>
__device__ __forceinline__ void add_residual(float *x, const struct residual_part &part,
                                             unsigned char *store_tile) {
    int lane = threadIdx.x % 32, piece = lane % 8;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = lane / 8 + 4 * i;
        *(struct eight *)(store_tile + row * 128 + (piece ^ row % 8) * 16) = part.rows[i];
    }
    __syncwarp();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const struct fragment pairs = ldmatrix_x4(matrix_at(shared_address(store_tile), q));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 both = unpack(pairs.x[i], E());
            x[8 * q + 2 * i] += both.x;
            x[8 * q + 2 * i + 1] += both.y;
        }
    }
    __syncwarp();
}

/* Rounds into the store tile, which the TMA stores; it clips what is outside the matrix. */
template <typename E>
__device__ __forceinline__ void store_by_tma(const float *x, const CUtensorMap *map, size_t m,
                                             size_t n, unsigned store_tile) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
        struct fragment pairs;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            pairs.x[i] = pack(x[8 * q + 2 * i], x[8 * q + 2 * i + 1], E());
        }
        stmatrix_x4(matrix_at(store_tile, q), pairs);
    }
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        tma_store_2d(map, (int)n, (int)m, store_tile);
    }
}

/* Row and column of a lane's i-th pair of accumulators of a store tile. */
struct pair_coordinates {
    size_t row, column;
};

__device__ __forceinline__ struct pair_coordinates coordinates_of_pair(size_t m, size_t n, int i) {
    int lane = threadIdx.x % 32;
    return {m + lane / 4 + i % 2 * 8, n + i / 2 * 8 + lane % 4 * 2};
}

/* x += residual, two at a time, all loads before the first store: out may be the residual, so the
   compiler moves no load above a store. */
template <typename E>
__device__ __forceinline__ void add_residual_pairs(float *x, const struct gemm16_epilogue &f,
                                                   size_t m, size_t n) {
    float2 more[STORE_COLUMNS / 4];
#pragma unroll
    for (int i = 0; i < STORE_COLUMNS / 4; i++) {
        struct pair_coordinates p = coordinates_of_pair(m, n, i);
        size_t at = p.row * f.N + p.column;
        bool inside = p.row < f.M && p.column < f.N;
        more[i] = !inside ? make_float2(0.0f, 0.0f)
                  : f.residual_is_float
                      ? *(const float2 *)((const float *)f.residual + at)
                      : unpack(*(const unsigned *)((const E *)f.residual + at), E());
    }
#pragma unroll
    for (int i = 0; i < STORE_COLUMNS / 4; i++) {
        x[2 * i] += more[i].x;
        x[2 * i + 1] += more[i].y;
    }
}

/* fp32, two at a time: N is a multiple of 8, and all pointers are aligned. */
template <typename E>
__device__ __forceinline__ void store_float_pairs(float *x, const struct gemm16_epilogue &f,
                                                  size_t m, size_t n) {
    if (f.residual != NULL) {
        add_residual_pairs<E>(x, f, m, n);
    }
#pragma unroll
    for (int i = 0; i < STORE_COLUMNS / 4; i++) {
        struct pair_coordinates p = coordinates_of_pair(m, n, i);
        if (p.row < f.M && p.column < f.N) {
            *(float2 *)((float *)f.out + p.row * f.N + p.column) =
                make_float2(x[2 * i], x[2 * i + 1]);
        }
    }
}

/* By single elements: rows that are not whole 16-byte pieces. */
template <typename E>
__device__ __forceinline__ void store_single(const float *x, const struct gemm16_epilogue &f,
                                             size_t m, size_t n) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < STORE_COLUMNS / 2; i++) {
        size_t row = m + lane / 4 + i / 2 % 2 * 8, column = n + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row < f.M && column < f.N) {
            size_t at = row * f.N + column;
            float y = x[i];
            if (f.residual != NULL) {
                y += value_at<E>(f.residual, at, f.residual_is_float);
            }
            if (f.out_is_float) {
                ((float *)f.out)[at] = y;
            } else {
                store_rounded((E *)f.out + at, y);
            }
        }
    }
}

/* The epilogue of 16 rows of a warp from row m on, BN columns from n on. The warp's two store tiles
   are a double buffer: `store_tile` is the offset of the next one. */
template <typename T>
__device__ __forceinline__ void epilogue_rows(float *sums, const struct gemm16_epilogue &f,
                                              const CUtensorMap *map, size_t m, size_t n,
                                              unsigned char *store_tiles, unsigned &store_tile) {
    typedef typename T::E E;
    bool by_tma = (!T::PLAIN || f.vector) && !f.out_is_float;
    bool add = by_tma && f.residual != NULL;
    struct residual_part residual = {};
    if (add) {
        residual = load_residual<E>(f, m, n);
    }
#pragma unroll
    for (int part = 0; part < T::BN / STORE_COLUMNS; part++) {
        float *x = sums + part * (STORE_COLUMNS / 2);
        size_t column = n + part * STORE_COLUMNS;
        if (m >= f.M || column >= f.N) {
            continue;
        }
        const struct residual_part now = residual;
        if (add && part + 1 < T::BN / STORE_COLUMNS) {
            residual = load_residual<E>(f, m, column + STORE_COLUMNS);
        }
        if constexpr (T::PLAIN) {
            if (f.bias != NULL) {
                add_bias<E>(x, f, column);
            }
            activate<STORE_COLUMNS / 2>(x, f.activation);
        }
        if (!by_tma) {
            if (!T::PLAIN || f.vector) {
                store_float_pairs<E>(x, f, m, column);
            } else {
                store_single<E>(x, f, m, column);
            }
            continue;
        }
        tma_store_wait_read<1>(); /* lane 0: the TMA has read this store tile */
        __syncwarp();
        if (add) {
            add_residual<E>(x, now, store_tiles + store_tile);
        }
        store_by_tma<E>(x, map, m, column, shared_address(store_tiles + store_tile));
        store_tile ^= STORE_TILE;
    }
}

/* The epilogue of a split of K: partial sums in fp32, one split's matrix after the other. */
__device__ __forceinline__ struct gemm16_epilogue
epilogue_of_split(const struct gemm16_epilogue &f, const struct hopper_sizes<false> &s,
                  unsigned tile) {
    struct gemm16_epilogue own = f;
    size_t split = tile / (s.pairs_m * s.tiles_n);
    own.out = (unsigned char *)f.out + split * f.M * f.N * sizeof(float);
    return own;
}

/* A consumer warpgroup: mainloop and epilogue of its tiles (ping-pong), or of its half of all tiles
   (cooperative). */
template <typename T>
__device__ __forceinline__ void
consume(const struct hopper_maps &maps, const struct hopper_sizes<T::PLAIN> &s,
        const struct gemm16_epilogue &f, unsigned stages, unsigned char *store_tiles, unsigned full,
        unsigned empty, unsigned order) {
    unsigned group = threadIdx.x / GROUP - 1, warp = threadIdx.x % GROUP / 32;
    unsigned tiles = tiles_of(s), clusters = gridDim.x / 2;
    unsigned own = T::PINGPONG ? group : 0, stride = T::PINGPONG ? 2 : 1;
    unsigned first_row = T::PINGPONG ? 0 : group * T::GROUP_ROWS, store_tile = 0;
    struct ring r = {0, 0};
    unsigned parity = group ^ 1; /* warpgroup 0 is first */
    store_tiles += (group * 4 + warp) * 2 * STORE_TILE;
    advance<T>(r, own * steps_of(s, blockIdx.x / 2).count);
    for (unsigned tile = blockIdx.x / 2 + own * clusters; tile < tiles; tile += stride * clusters) {
        float sums[T::ATOMS][T::BN / 2];
        if (T::PINGPONG) {
            mbarrier_wait(order + group * 8, parity);
            parity ^= 1;
        }
        multiply_tile<T>(sums, r, steps_of(s, tile).count, stages, first_row * BK * 2, full, empty,
                         order + (group ^ 1) * 8);
        advance<T>(r, (stride - 1) * steps_of(s, tile + clusters).count);
        int2 at = tile_origin<T>(s, tile);
        auto epilogue = [&](const struct gemm16_epilogue &to) {
#pragma unroll
            for (int atom = 0; atom < T::ATOMS; atom++) {
                epilogue_rows<T>(sums[atom], to, &maps.out,
                                 at.x + first_row + atom * 64 + warp * 16, at.y, store_tiles,
                                 store_tile);
            }
        };
        if constexpr (T::PLAIN) {
            epilogue(f);
        } else {
            epilogue(epilogue_of_split(f, s, tile));
        }
    }
    tma_store_wait();
}

#endif

template <typename T>
__global__ void CLUSTER_OF_TWO __launch_bounds__(THREADS, 1)
    gemm16_wgmma(const __grid_constant__ struct hopper_maps maps,
                 const struct hopper_sizes<T::PLAIN> sizes, const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    /* Registers of a thread: 3 * 168 in all, as a block of 384 threads has. */
    constexpr int CONSUMER_REGISTERS = T::ATOMS * T::BN > 256 ? 240 : 232,
                  PRODUCER_REGISTERS = 3 * 168 - 2 * CONSUMER_REGISTERS;
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES], order[2];
    unsigned char *stages = shared_bytes + (1024 - shared_address(shared_bytes) % 1024) % 1024;
    if (threadIdx.x == 0) {
        for (int i = 0; i < T::STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            /* the consumer warps that read it, of both blocks */
            mbarrier_init(shared_address(&empty[i]), 2 * 4 * (T::PINGPONG ? 1 : 2));
        }
        mbarrier_init(shared_address(&order[0]), 4);
        mbarrier_init(shared_address(&order[1]), 4);
        mbarrier_init_fence();
    }
    cluster_sync();
    if (threadIdx.x < GROUP) {
        warpgroup_reg_dealloc<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            produce<T>(maps, sizes, shared_address(stages), shared_address(full),
                       shared_address(empty));
        }
    } else {
        warpgroup_reg_alloc<CONSUMER_REGISTERS>();
        consume<T>(maps, sizes, f, shared_address(stages), stages + T::STAGES * T::STAGE,
                   shared_address(full), shared_address(empty), shared_address(order));
    }
    cluster_sync(); /* no block exits while the other one writes to its shared memory */
#endif
}

/* The driver's, found at run time. */
/* Describes a matrix (rows, columns) of 16-bit elements that is moved in boxes of 64 columns. */
enum status describe(CUtensorMap *map, enum nn_dtype dtype, const void *matrix, size_t rows,
                     size_t columns, unsigned box_rows, struct error *error) {
    const struct tensor_map_matrix m = {dtype, matrix, rows, columns, box_rows, BK, 128};
    return tensor_map_create(map, &m, error);
}

size_t ceil_div(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* Describes both factors as T reads them, and out if the TMA stores it. */
template <typename T>
enum status describe_all(struct hopper_maps *maps, const struct gemm16_problem *p,
                         const struct gemm16_epilogue &f, struct error *error) {
    enum status status = T::IN_TRANSPOSED
                             ? describe(&maps->in, p->dtype, p->in, p->K, p->M, BK, error)
                             : describe(&maps->in, p->dtype, p->in, p->M, p->K, T::BM, error);
    if (status == STATUS_OK) {
        status = T::WEIGHT_TRANSPOSED
                     ? describe(&maps->weight, p->dtype, p->weight, p->K, p->N, BK / 2, error)
                     : describe(&maps->weight, p->dtype, p->weight, p->N, p->K, T::BN / 2, error);
    }
    if (status == STATUS_OK && f.vector && !f.out_is_float) {
        status = describe(&maps->out, p->dtype, f.out, p->M, p->N, STORE_ROWS, error);
    }
    return status;
}

/* Launches T with the epilogue f. */
template <typename T>
enum status launch_sized(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                         const struct gemm16_epilogue &f,
                         const struct hopper_sizes<T::PLAIN> &sizes, size_t tiles,
                         device_stream stream, struct error *error) {
    static const cudaError_t allowed = cudaFuncSetAttribute(
        gemm16_wgmma<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)T::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "gemm16: %s", cudaGetErrorString(allowed));
    }
    struct hopper_maps maps = {};
    enum status status = describe_all<T>(&maps, p, f, error);
    if (status != STATUS_OK) {
        return status;
    }
    size_t clusters = (size_t)gpu->multiprocessors / 2;
    unsigned blocks = (unsigned)(2 * (tiles < clusters ? tiles : clusters));
    gemm16_wgmma<T><<<blocks, THREADS, T::BYTES, stream>>>(maps, sizes, f);
    return device_launched("gemm16_wgmma", error);
}

} // namespace

#endif

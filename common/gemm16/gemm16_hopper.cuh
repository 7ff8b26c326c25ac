/**
 * @file gemm16_hopper.cuh
 * @brief The kernel for Hopper: wgmma on tiles that the TMA brings to two blocks at once.
 *
 * Changes since gemm16_tile.cu, and why.
 *
 * wgmma reads both operands from shared memory: no registers, no ldmatrix between. One warp of a
 * block does nothing but start copies (a thread of it, through the TMA), eight warps multiply.
 *
 * Blocks come in clusters of two, which have the same columns: each fetches half of the weights and
 * the TMA writes them to both. That relieves the L2 cache, which could not feed 132
 * multiprocessors else: a step of 128 x 192 needs 40 KiB of it every 768 cycles, so 28.
 *
 * Blocks stay: as many as there are multiprocessors, each takes one tile after the other, and
 * copies run ahead into the next. In the "turns" form each of the two groups of four warps has
 * tiles of its own: while one stores, with bias and GELU, the other one multiplies. In the
 * "halves" form both share a tile twice as large, which is better for a long K.
 *
 * A factor that is transposed, (K, M) or (K, N), comes in boxes of 64 rows of K and 64 columns, and
 * wgmma reads it "M-major" or "N-major". Those are a backward pass's products, which have neither
 * bias nor activation, and aligned rows; but a K that is long beside few tiles, so there K may be
 * cut into parts.
 *
 * Without code for sm_90a (and so on simt) the kernel is empty: gemm16_hopper_can() tells by the
 * shared memory it then has not.
 */
#ifndef WARPBOOK_COMMON_GEMM16_GEMM16_HOPPER_CUH_
#define WARPBOOK_COMMON_GEMM16_GEMM16_HOPPER_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "common/gemm16/gemm16_finish.cuh"
#include "common/gemm16/gemm16_parts.h"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "common/gemm16/gemm16_cluster.cuh"
#include "common/gemm16/gemm16_wgmma.cuh"
#define CLUSTER_OF_TWO __cluster_dims__(2, 1, 1)
#else
#include <cuda.h>
#define CLUSTER_OF_TWO
#endif

namespace {

constexpr int BK = 64;                                  /* elements of K a step: 128 bytes */
constexpr int GROUP = 128;                              /* threads of a warpgroup */
constexpr int THREADS = 3 * GROUP;                      /* one copies, two multiply */
constexpr int SLAB_ROWS = 16, SLAB_COLUMNS = 64;        /* what a warp stores at once */
constexpr unsigned SLAB = SLAB_ROWS * SLAB_COLUMNS * 2; /* bytes; a warp has two of them */
constexpr unsigned SHARED_BYTES = 227 * 1024 - 256;     /* of a block, beside the barriers */

/* ATOMS: of 64 rows, a group's; TURNS: groups take turns at tiles instead of halves of one;
   IN_TURNED, WEIGHT_TURNED: which factors are transposed; with PLAIN ones K is never cut. */
template <typename E_, int BN_, int ATOMS_, bool TURNS_, bool IN_TURNED_ = false,
          bool WEIGHT_TURNED_ = false>
struct hopper_tile {
    typedef E_ E;
    static constexpr bool IN_TURNED = IN_TURNED_, WEIGHT_TURNED = WEIGHT_TURNED_;
    static constexpr bool PLAIN = !IN_TURNED && !WEIGHT_TURNED;
    static constexpr int BN = BN_, ATOMS = ATOMS_;
    static constexpr bool TURNS = TURNS_;
    static constexpr int GROUP_ROWS = 64 * ATOMS, BM = TURNS ? GROUP_ROWS : 2 * GROUP_ROWS;
    static constexpr unsigned IN = BM * BK * 2, WEIGHT = BN * BK * 2, STAGE = IN + WEIGHT;
    static constexpr unsigned SLABS = 2 * SLAB * (2 * GROUP / 32);
    static constexpr int STAGES = (SHARED_BYTES - 1024 - SLABS) / STAGE;
    static constexpr unsigned BYTES = STAGES * STAGE + SLABS + 1024; /* 1024: to align */
};

template <bool PLAIN> struct hopper_sizes {
    unsigned steps;            /* of K */
    unsigned pairs_m, tiles_n; /* tiles of M, two at a time */
};

/* Where K may be cut: as many tiles again for each part. */
template <> struct hopper_sizes<false> {
    unsigned steps, pairs_m, tiles_n;
    unsigned parts, part_steps; /* of K, and the steps of all but the last */
};

/* Sizes, and what TMA needs to know of the matrices. */
struct hopper_maps {
    CUtensorMap in, weight, out;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int BAND = 8; /* pairs of tiles of M that neighbouring clusters share weights for */

/* A place in the ring of stages. */
struct ring {
    unsigned stage, parity;
};

template <typename T> __device__ __forceinline__ void advance(struct ring &r, unsigned by) {
    unsigned at = r.stage + by;
    r.parity ^= at / T::STAGES & 1;
    r.stage = at % T::STAGES;
}

/* What of K a tile has. */
struct steps {
    unsigned first, count;
};

__device__ __forceinline__ struct steps steps_of(const struct hopper_sizes<true> &s, unsigned) {
    return {0, s.steps};
}

__device__ __forceinline__ struct steps steps_of(const struct hopper_sizes<false> &s,
                                                 unsigned tile) {
    unsigned first = tile / (s.pairs_m * s.tiles_n) * s.part_steps;
    return {first, min(s.part_steps, s.steps - first)};
}

__device__ __forceinline__ unsigned tiles_of(const struct hopper_sizes<true> &s) {
    return s.pairs_m * s.tiles_n;
}

__device__ __forceinline__ unsigned tiles_of(const struct hopper_sizes<false> &s) {
    return s.pairs_m * s.tiles_n * s.parts;
}

/* First row and column of the tile of this block: clusters go down BAND pairs, then to the right.
 */
template <typename T>
__device__ __forceinline__ int2 place_of(const struct hopper_sizes<T::PLAIN> &s, unsigned tile) {
    if constexpr (!T::PLAIN) {
        tile %= s.pairs_m * s.tiles_n; /* parts come one after the other */
    }
    unsigned band = tile / (BAND * s.tiles_n), inside = tile % (BAND * s.tiles_n);
    unsigned height = min((unsigned)BAND, s.pairs_m - band * BAND);
    unsigned pair = band * BAND + inside % height;
    return make_int2((int)((pair * 2 + cluster_rank()) * T::BM), (int)(inside / height * T::BN));
}

/* Starts the copies of one step, from element k of K on, of which each block of the cluster fetches
   half of the weights: half of the rows, or half of each column where that is 64 elements of K. */
template <typename T>
__device__ __forceinline__ void copy_step(const struct hopper_maps &maps, unsigned to, int2 at,
                                          int k, unsigned rank, unsigned barrier) {
    constexpr unsigned BOX = BK * BK * 2, HALF = T::BN / 2;
    if constexpr (T::IN_TURNED) {
#pragma unroll
        for (int i = 0; i < T::BM / BK; i++) {
            tma_load(to + i * BOX, &maps.in, at.x + i * BK, k, barrier);
        }
    } else {
        tma_load(to, &maps.in, k, at.x, barrier);
    }
    if constexpr (T::WEIGHT_TURNED) {
#pragma unroll
        for (int i = 0; i < T::BN / BK; i++) {
            tma_load_for_both(to + T::IN + i * BOX + rank * (BOX / 2), &maps.weight, at.y + i * BK,
                              k + (int)rank * (BK / 2), barrier);
        }
    } else {
        tma_load_for_both(to + T::IN + rank * HALF * BK * 2, &maps.weight, k,
                          at.y + (int)(rank * HALF), barrier);
    }
}

/* One thread: starts all copies of all tiles, as stages become free. */
template <typename T>
__device__ __forceinline__ void copy_tiles(const struct hopper_maps &maps,
                                           const struct hopper_sizes<T::PLAIN> &s, unsigned stages,
                                           unsigned full, unsigned empty) {
    unsigned tiles = tiles_of(s), clusters = gridDim.x / 2, rank = cluster_rank();
    struct ring r = {0, 0};
    for (unsigned tile = blockIdx.x / 2; tile < tiles; tile += clusters) {
        int2 at = place_of<T>(s, tile);
        const struct steps steps = steps_of(s, tile);
        for (unsigned step = 0; step < steps.count; step++) {
            unsigned to = stages + r.stage * T::STAGE, barrier = full + r.stage * 8;
            barrier_wait(empty + r.stage * 8, r.parity ^ 1);
            barrier_expect(barrier, T::STAGE);
            copy_step<T>(maps, to, at, (int)((steps.first + step) * BK), rank, barrier);
            advance<T>(r, 1);
        }
    }
}

/* A warp gives a stage back, to both blocks. */
__device__ __forceinline__ void release(unsigned barrier) {
    if (threadIdx.x % 32 < 2) {
        barrier_arrive_at(barrier, threadIdx.x % 32);
    }
}

/* sums = the group's rows of one tile; the group's part of `in` lies `rows_at` bytes into it. When
   all its steps have come it is the other group's turn: that one must not wait for a stage earlier,
   as a barrier tells this phase from the next one only. */
template <typename T>
__device__ __forceinline__ void multiply_tile(float (*sums)[T::BN / 2], struct ring &r,
                                              unsigned steps, unsigned stages, unsigned rows_at,
                                              unsigned full, unsigned empty, unsigned next_turn) {
    /* Sixteen elements of K further on, as descriptors count: 32 bytes, or sixteen rows. */
    constexpr int IN_STEP = T::IN_TURNED ? 16 * 128 >> 4 : 2;
    constexpr int WEIGHT_STEP = T::WEIGHT_TURNED ? 16 * 128 >> 4 : 2;
    unsigned last = 0;
    for (unsigned step = 0; step < steps; step++) {
        barrier_wait(full + r.stage * 8, r.parity);
        unsigned stage = stages + r.stage * T::STAGE;
        uint64_t in = wgmma_descriptor<T::IN_TURNED>(stage + rows_at);
        uint64_t weight = wgmma_descriptor<T::WEIGHT_TURNED>(stage + T::IN);
        wgmma_begin();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) {
#pragma unroll
            for (int atom = 0; atom < T::ATOMS; atom++) {
                wgmma<T::BN>::template run<T::IN_TURNED, T::WEIGHT_TURNED>(
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
    if (T::TURNS && threadIdx.x % 32 == 0) {
        barrier_arrive(next_turn);
    }
    wgmma_wait<0>();
    release(empty + last * 8);
}

/* Where the matrix of eight rows and columns lies that this lane gives ldmatrix and stmatrix the
   row of: q of 0 .. 3 stands for 16 columns, upper and lower eight rows. */
__device__ __forceinline__ unsigned matrix_at(unsigned slab, int q) {
    int lane = threadIdx.x % 32, row = lane / 8 % 2 * 8 + lane % 8, piece = 2 * q + lane / 16;
    return slab + row * 128 + (piece ^ row % 8) * 16;
}

__device__ __forceinline__ void load_matrices(unsigned *x, unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void store_matrices(unsigned address, const unsigned *x) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                 : "memory");
}

/* x += bias of the slab's columns: each lane loads two of the 64, and all ask those who have
   theirs. */
template <typename E>
__device__ __forceinline__ void add_bias(float *x, const struct gemm16_finish &f, size_t n) {
    int lane = threadIdx.x % 32;
    size_t at = n + 2 * lane, left = at < f.N ? f.N - at : 0;
    float first = left > 0 ? value_at<E>(f.bias, at, f.bias_is_float) : 0.0f;
    float second = left > 1 ? value_at<E>(f.bias, at + 1, f.bias_is_float) : 0.0f;
#pragma unroll
    for (int j = 0; j < SLAB_COLUMNS / 8; j++) {
        float low = __shfl_sync(~0u, first, 4 * j + lane % 4);
        float high = __shfl_sync(~0u, second, 4 * j + lane % 4);
        x[4 * j] += low, x[4 * j + 1] += high;
        x[4 * j + 2] += low, x[4 * j + 3] += high;
    }
}

/* A lane's part of a slab of the residual. */
struct residual_part {
    struct eight rows[4];
};

/* Rows lane / 8 and every fourth behind it, 16 bytes each; zeros for what is outside. */
template <typename E>
__device__ __forceinline__ struct residual_part load_residual(const struct gemm16_finish &f,
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

/* x += residual, by way of the slab to where the sums are. */
template <typename E>
__device__ __forceinline__ void add_residual(float *x, const struct residual_part &part,
                                             unsigned char *slab) {
    int lane = threadIdx.x % 32, piece = lane % 8;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = lane / 8 + 4 * i;
        *(struct eight *)(slab + row * 128 + (piece ^ row % 8) * 16) = part.rows[i];
    }
    __syncwarp();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        unsigned pairs[4];
        load_matrices(pairs, matrix_at(shared_address(slab), q));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 both = unpack(pairs[i], E());
            x[8 * q + 2 * i] += both.x;
            x[8 * q + 2 * i + 1] += both.y;
        }
    }
    __syncwarp();
}

/* Rounds the slab, and the TMA stores what of it is inside. */
template <typename E>
__device__ __forceinline__ void store_slab(const float *x, const CUtensorMap *map, size_t m,
                                           size_t n, unsigned slab) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
        unsigned pairs[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            pairs[i] = pack(x[8 * q + 2 * i], x[8 * q + 2 * i + 1], E());
        }
        store_matrices(matrix_at(slab, q), pairs);
    }
    tma_may_read();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        tma_store(map, (int)n, (int)m, slab);
    }
}

/* Where a lane's i-th pair of a slab's sums lies. */
struct pair_place {
    size_t row, column;
};

__device__ __forceinline__ struct pair_place pair_of(size_t m, size_t n, int i) {
    int lane = threadIdx.x % 32;
    return {m + lane / 4 + i % 2 * 8, n + i / 2 * 8 + lane % 4 * 2};
}

/* x += residual, two at a time: all loads go out before the first result is stored, since out may
   be the residual, and the compiler then moves no load past a store. */
template <typename E>
__device__ __forceinline__ void add_residual_pairs(float *x, const struct gemm16_finish &f,
                                                   size_t m, size_t n) {
    float2 more[SLAB_COLUMNS / 4];
#pragma unroll
    for (int i = 0; i < SLAB_COLUMNS / 4; i++) {
        struct pair_place p = pair_of(m, n, i);
        size_t at = p.row * f.N + p.column;
        bool inside = p.row < f.M && p.column < f.N;
        more[i] = !inside ? make_float2(0.0f, 0.0f)
                  : f.residual_is_float
                      ? *(const float2 *)((const float *)f.residual + at)
                      : unpack(*(const unsigned *)((const E *)f.residual + at), E());
    }
#pragma unroll
    for (int i = 0; i < SLAB_COLUMNS / 4; i++) {
        x[2 * i] += more[i].x;
        x[2 * i + 1] += more[i].y;
    }
}

/* fp32, two at a time: N is a multiple of 8, and all is aligned. */
template <typename E>
__device__ __forceinline__ void store_float_pairs(float *x, const struct gemm16_finish &f, size_t m,
                                                  size_t n) {
    if (f.residual != NULL) {
        add_residual_pairs<E>(x, f, m, n);
    }
#pragma unroll
    for (int i = 0; i < SLAB_COLUMNS / 4; i++) {
        struct pair_place p = pair_of(m, n, i);
        if (p.row < f.M && p.column < f.N) {
            *(float2 *)((float *)f.out + p.row * f.N + p.column) =
                make_float2(x[2 * i], x[2 * i + 1]);
        }
    }
}

/* By single elements: rows that are no whole 16-byte pieces. */
template <typename E>
__device__ __forceinline__ void store_single(const float *x, const struct gemm16_finish &f,
                                             size_t m, size_t n) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SLAB_COLUMNS / 2; i++) {
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

/* 16 rows of a warp from row m on, BN columns from n on. The warp's two slabs are used in turns:
   `slab` is the next one's offset. */
template <typename T>
__device__ __forceinline__ void finish_rows(float *sums, const struct gemm16_finish &f,
                                            const CUtensorMap *map, size_t m, size_t n,
                                            unsigned char *slabs, unsigned &slab) {
    typedef typename T::E E;
    bool by_tma = (!T::PLAIN || f.vector) && !f.out_is_float;
    bool add = by_tma && f.residual != NULL;
    struct residual_part residual = {};
    if (add) {
        residual = load_residual<E>(f, m, n);
    }
#pragma unroll
    for (int part = 0; part < T::BN / SLAB_COLUMNS; part++) {
        float *x = sums + part * (SLAB_COLUMNS / 2);
        size_t column = n + part * SLAB_COLUMNS;
        if (m >= f.M || column >= f.N) {
            continue;
        }
        const struct residual_part now = residual;
        if (add && part + 1 < T::BN / SLAB_COLUMNS) {
            residual = load_residual<E>(f, m, column + SLAB_COLUMNS);
        }
        if constexpr (T::PLAIN) {
            if (f.bias != NULL) {
                add_bias<E>(x, f, column);
            }
            activate<SLAB_COLUMNS / 2>(x, f.activation);
        }
        if (!by_tma) {
            if (!T::PLAIN || f.vector) {
                store_float_pairs<E>(x, f, m, column);
            } else {
                store_single<E>(x, f, m, column);
            }
            continue;
        }
        tma_wait_read<1>(); /* lane 0's stores: what this slab held is read */
        __syncwarp();
        if (add) {
            add_residual<E>(x, now, slabs + slab);
        }
        store_slab<E>(x, map, m, column, shared_address(slabs + slab));
        slab ^= SLAB;
    }
}

/* Where a part of K has its results: fp32, one part's matrix after the other. */
__device__ __forceinline__ struct gemm16_finish
part_of(const struct gemm16_finish &f, const struct hopper_sizes<false> &s, unsigned tile) {
    struct gemm16_finish own = f;
    size_t part = tile / (s.pairs_m * s.tiles_n);
    own.out = (unsigned char *)f.out + part * f.M * f.N * sizeof(float);
    return own;
}

/* A warpgroup that multiplies: its tiles, or its half of all tiles. */
template <typename T>
__device__ __forceinline__ void
multiply_tiles(const struct hopper_maps &maps, const struct hopper_sizes<T::PLAIN> &s,
               const struct gemm16_finish &f, unsigned stages, unsigned char *slabs, unsigned full,
               unsigned empty, unsigned turn) {
    unsigned group = threadIdx.x / GROUP - 1, warp = threadIdx.x % GROUP / 32;
    unsigned tiles = tiles_of(s), clusters = gridDim.x / 2;
    unsigned own = T::TURNS ? group : 0, stride = T::TURNS ? 2 : 1;
    unsigned first_row = T::TURNS ? 0 : group * T::GROUP_ROWS, slab = 0;
    struct ring r = {0, 0};
    unsigned parity = group ^ 1; /* the first turn is group 0's */
    slabs += (group * 4 + warp) * 2 * SLAB;
    advance<T>(r, own * steps_of(s, blockIdx.x / 2).count);
    for (unsigned tile = blockIdx.x / 2 + own * clusters; tile < tiles; tile += stride * clusters) {
        float sums[T::ATOMS][T::BN / 2];
        if (T::TURNS) {
            barrier_wait(turn + group * 8, parity);
            parity ^= 1;
        }
        multiply_tile<T>(sums, r, steps_of(s, tile).count, stages, first_row * BK * 2, full, empty,
                         turn + (group ^ 1) * 8);
        advance<T>(r, (stride - 1) * steps_of(s, tile + clusters).count);
        int2 at = place_of<T>(s, tile);
        auto finish = [&](const struct gemm16_finish &to) {
#pragma unroll
            for (int atom = 0; atom < T::ATOMS; atom++) {
                finish_rows<T>(sums[atom], to, &maps.out, at.x + first_row + atom * 64 + warp * 16,
                               at.y, slabs, slab);
            }
        };
        if constexpr (T::PLAIN) {
            finish(f);
        } else {
            finish(part_of(f, s, tile));
        }
    }
    tma_wait_stored();
}

#endif

template <typename T>
__global__ void CLUSTER_OF_TWO __launch_bounds__(THREADS, 1)
    gemm16_wgmma(const __grid_constant__ struct hopper_maps maps,
                 const struct hopper_sizes<T::PLAIN> sizes, const struct gemm16_finish f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    /* Registers of a thread that multiplies, and of one that copies: three times 168 in all, which
       is what a block of 384 threads is given. */
    constexpr int OWN = T::ATOMS * T::BN > 256 ? 240 : 232, COPY = 3 * 168 - 2 * OWN;
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES], turn[2];
    unsigned char *stages = shared_bytes + (1024 - shared_address(shared_bytes) % 1024) % 1024;
    if (threadIdx.x == 0) {
        for (int i = 0; i < T::STAGES; i++) {
            barrier_init(shared_address(&full[i]), 1);
            /* the warps that read it, of both blocks */
            barrier_init(shared_address(&empty[i]), 2 * 4 * (T::TURNS ? 1 : 2));
        }
        barrier_init(shared_address(&turn[0]), 4);
        barrier_init(shared_address(&turn[1]), 4);
        barrier_init_done();
    }
    cluster_sync();
    if (threadIdx.x < GROUP) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COPY));
        if (threadIdx.x == 0) {
            copy_tiles<T>(maps, sizes, shared_address(stages), shared_address(full),
                          shared_address(empty));
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(OWN));
        multiply_tiles<T>(maps, sizes, f, shared_address(stages), stages + T::STAGES * T::STAGE,
                          shared_address(full), shared_address(empty), shared_address(turn));
    }
    cluster_sync(); /* nobody leaves while the other block still writes here */
#endif
}

/* The driver's, found at run time. */
typedef CUresult encode_function(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                 void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                 const cuuint32_t *box, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

encode_function *find_encode(void) {
    void *function = NULL;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                        cudaEnableDefault, &found);
    (void)cudaGetLastError();
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? (encode_function *)function
                                                                       : NULL;
}

/* Describes a matrix (rows, columns) of 16-bit elements that is moved in boxes of 64 columns. */
enum status describe(CUtensorMap *map, enum nn_dtype dtype, const void *matrix, size_t rows,
                     size_t columns, unsigned box_rows, struct error *error) {
    static encode_function *const encode = find_encode();
    const cuuint64_t sizes[2] = {columns, rows}, strides[1] = {columns * 2};
    const cuuint32_t box[2] = {BK, box_rows}, steps[2] = {1, 1};
    CUresult code = encode(
        map, dtype == NN_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        2, (void *)matrix, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return code == CUDA_SUCCESS
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE,
                           "gemm16: the driver refuses to describe a matrix of %zu x %zu (code %d)",
                           rows, columns, (int)code);
}

size_t ceil_div(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* Describes both factors as T reads them, and out where the TMA stores it. */
template <typename T>
enum status describe_all(struct hopper_maps *maps, const struct gemm16_problem *p,
                         const struct gemm16_finish &f, struct error *error) {
    enum status status = T::IN_TURNED
                             ? describe(&maps->in, p->dtype, p->in, p->K, p->M, BK, error)
                             : describe(&maps->in, p->dtype, p->in, p->M, p->K, T::BM, error);
    if (status == STATUS_OK) {
        status = T::WEIGHT_TURNED
                     ? describe(&maps->weight, p->dtype, p->weight, p->K, p->N, BK / 2, error)
                     : describe(&maps->weight, p->dtype, p->weight, p->N, p->K, T::BN / 2, error);
    }
    if (status == STATUS_OK && f.vector && !f.out_is_float) {
        status = describe(&maps->out, p->dtype, f.out, p->M, p->N, SLAB_ROWS, error);
    }
    return status;
}

/* Launches T: `finish` says what becomes of the sums, `sizes` how many there are. */
template <typename T>
enum status launch_sized(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                         const struct gemm16_finish &f, const struct hopper_sizes<T::PLAIN> &sizes,
                         size_t tiles, device_stream stream, struct error *error) {
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

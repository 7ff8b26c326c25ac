/*
 * Twenty products of bf16 matrices, all by one template: what differs is the schedule, the number
 * of stages, the tile, the cluster, and how results are stored. A tile takes 64 elements of K a
 * step.
 */
#include <cuda_bf16.h>
#include <stdint.h>

#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/mma.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#include "common/simt/calibration/hopper/describe.cuh"
#include "common/simt/calibration/hopper/hopper.h"

namespace {

/* Who copies, and which warpgroup has which tile:
   PLAIN        two warpgroups; all threads wait for a stage, multiply, and meet at a barrier behind
                which one thread fetches the next stage
   COOPERATIVE  a producer warpgroup beside two that share a tile
   PINGPONG     a producer warpgroup beside two that have tiles in turn */
enum schedule { PLAIN, COOPERATIVE, PINGPONG };

/* How results come to memory: from registers, or through shared memory and the TMA. */
enum epilogue { DIRECT, BY_TMA };

constexpr int BK = 64, GROUP = 128, STORE_COLUMNS = 64;
constexpr unsigned STORE_BYTES = 16 * STORE_COLUMNS * 2; /* of a warp */

/* ATOMS: 64-row wgmma of a warpgroup; BLOCKS of a cluster share a tile's columns. */
template <schedule SCHEDULE_, int BN_, int ATOMS_, int STAGES_, int BLOCKS_, epilogue EPILOGUE_>
struct config {
    static constexpr schedule SCHEDULE = SCHEDULE_;
    static constexpr epilogue EPILOGUE = EPILOGUE_;
    static constexpr int BN = BN_, ATOMS = ATOMS_, STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr int ROWS = 64 * ATOMS; /* of a warpgroup */
    static constexpr int BM = SCHEDULE == PINGPONG ? ROWS : 2 * ROWS;
    static constexpr int THREADS = SCHEDULE == PLAIN ? 2 * GROUP : 3 * GROUP;
    static constexpr unsigned A = BM * BK * 2, B = BN * BK * 2, STAGE = A + B;
    static constexpr unsigned STORES = EPILOGUE == BY_TMA ? 8 * STORE_BYTES : 0;
    static constexpr unsigned BYTES = STAGES * STAGE + STORES + 1024; /* 1024: to align */
};

struct maps {
    CUtensorMap a, b, out;
};

struct sizes {
    unsigned steps, tiles_m, tiles_n; /* tiles_m: of a cluster */
    unsigned M, N;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A stage and the parity of its barriers' phase. */
struct ring {
    unsigned stage, parity;
};

template <typename T> __device__ __forceinline__ void advance(ring &r, unsigned by) {
    unsigned at = r.stage + by;
    r.parity ^= at / T::STAGES & 1;
    r.stage = at % T::STAGES;
}

/* First row and column of this block's tile. */
template <typename T> __device__ __forceinline__ int2 origin(const sizes &s, unsigned tile) {
    unsigned row = tile % s.tiles_m * T::BLOCKS + (T::BLOCKS > 1 ? cluster_rank() : 0);
    return make_int2((int)(row * T::BM), (int)(tile / s.tiles_m * T::BN));
}

/* The addresses of a block's shared memory. */
struct places {
    unsigned stages, full, empty, order, store;
};

template <typename T>
__device__ __forceinline__ void copy_step(const maps &m, const places &p, unsigned stage, int2 at,
                                          int k) {
    unsigned to = p.stages + stage * T::STAGE, barrier = p.full + stage * 8;
    mbarrier_arrive_expect_tx(barrier, T::STAGE);
    tma_load_2d(to, &m.a, k, at.x, barrier);
    if constexpr (T::BLOCKS > 1) {
        constexpr int PART = T::BN / T::BLOCKS;
        int first = (int)cluster_rank() * PART;
        tma_load_2d_multicast(to + T::A + first * BK * 2, &m.b, k, at.y + first, barrier,
                              (1 << T::BLOCKS) - 1);
    } else {
        tma_load_2d(to + T::A, &m.b, k, at.y, barrier);
    }
}

/* sums += a stage, without waiting. */
template <typename T>
__device__ __forceinline__ void multiply(float (*sums)[T::BN / 2], unsigned stage, unsigned rows_at,
                                         bool first) {
    uint64_t a = wgmma_descriptor<false>(stage + rows_at);
    uint64_t b = wgmma_descriptor<false>(stage + T::A);
    wgmma_fence();
#pragma unroll
    for (int depth = 0; depth < BK / 16; depth++) {
#pragma unroll
        for (int atom = 0; atom < T::ATOMS; atom++) {
            wgmma<T::BN>::template run<false, false>(
                sums[atom], a + atom * (64 * BK * 2 >> 4) + 2 * depth, b + 2 * depth,
                !first || depth > 0, __nv_bfloat16());
        }
    }
    wgmma_commit();
}

__device__ __forceinline__ unsigned pack(float low, float high) {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(unsigned *)&both;
}

/* 64 columns of 16 rows of a warp, which the TMA stores; columns of `x` as wgmma has them. */
__device__ __forceinline__ void store_by_tma(const float *x, const CUtensorMap *map, int row,
                                             int column, unsigned store) {
    int lane = threadIdx.x % 32, line = lane / 8 % 2 * 8 + lane % 8;
    tma_store_wait_read<0>();
    __syncwarp();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        struct fragment pairs;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            pairs.x[i] = pack(x[8 * q + 2 * i], x[8 * q + 2 * i + 1]);
        }
        stmatrix_x4(store + line * 128 + ((2 * q + lane / 16) ^ line % 8) * 16, pairs);
    }
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
        tma_store_2d(map, column, row, store);
    }
}

__device__ __forceinline__ void store_directly(const float *x, __nv_bfloat16 *out, const sizes &s,
                                               unsigned row, unsigned column) {
    int lane = threadIdx.x % 32;
    row += lane / 4;
    column += lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < STORE_COLUMNS / 8; j++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (row + 8 * half < s.M) {
                *(unsigned *)(out + (size_t)(row + 8 * half) * s.N + column + 8 * j) =
                    pack(x[4 * j + 2 * half], x[4 * j + 2 * half + 1]);
            }
        }
    }
}

template <typename T>
__device__ __forceinline__ void store_tile(float (*sums)[T::BN / 2], const maps &m, const sizes &s,
                                           __nv_bfloat16 *out, int2 at, unsigned store) {
    unsigned warp = threadIdx.x % GROUP / 32;
#pragma unroll
    for (int atom = 0; atom < T::ATOMS; atom++) {
#pragma unroll
        for (int part = 0; part < T::BN / STORE_COLUMNS; part++) {
            const float *x = sums[atom] + part * (STORE_COLUMNS / 2);
            unsigned row = at.x + 64 * atom + 16 * warp, column = at.y + part * STORE_COLUMNS;
            if constexpr (T::EPILOGUE == BY_TMA) {
                store_by_tma(x, &m.out, (int)row, (int)column, store);
            } else {
                store_directly(x, out, s, row, column);
            }
        }
    }
}

/* All threads of PLAIN. */
template <typename T>
__device__ __forceinline__ void run_plain(const maps &m, const sizes &s, __nv_bfloat16 *out,
                                          const places &p) {
    ring r = {0, 0};
    float sums[T::ATOMS][T::BN / 2];
    int2 at = origin<T>(s, blockIdx.x);
    unsigned group = threadIdx.x / GROUP;
    for (unsigned step = 0; step < T::STAGES && step < s.steps && threadIdx.x == 0; step++) {
        copy_step<T>(m, p, step, at, (int)step * BK);
    }
    for (unsigned step = 0; step < s.steps; step++) {
        mbarrier_wait(p.full + r.stage * 8, r.parity);
        multiply<T>(sums, p.stages + r.stage * T::STAGE, group * T::ROWS * BK * 2, step == 0);
        wgmma_wait<0>();
        __syncthreads();
        if (threadIdx.x == 0 && step + T::STAGES < s.steps) {
            copy_step<T>(m, p, r.stage, at, (int)(step + T::STAGES) * BK);
        }
        advance<T>(r, 1);
    }
    at.x += group * T::ROWS;
    store_tile<T>(sums, m, s, out, at, p.store + threadIdx.x / 32 * STORE_BYTES);
    tma_store_wait();
}

/* The producer, one thread. */
template <typename T>
__device__ __forceinline__ void produce(const maps &m, const sizes &s, const places &p) {
    ring r = {0, 0};
    unsigned stride = gridDim.x / T::BLOCKS;
    for (unsigned tile = blockIdx.x / T::BLOCKS; tile < s.tiles_m * s.tiles_n; tile += stride) {
        int2 at = origin<T>(s, tile);
        for (unsigned step = 0; step < s.steps; step++) {
            mbarrier_wait(p.empty + r.stage * 8, r.parity ^ 1);
            copy_step<T>(m, p, r.stage, at, (int)step * BK);
            advance<T>(r, 1);
        }
    }
}

/* A consumer warpgroup gives a stage back to the producers of all blocks of the cluster. */
template <typename T> __device__ __forceinline__ void release(unsigned barrier) {
    if constexpr (T::BLOCKS > 1) {
        if (threadIdx.x % GROUP < T::BLOCKS) {
            mbarrier_arrive_cluster(barrier, threadIdx.x % GROUP);
        }
    } else if (threadIdx.x % GROUP == 0) {
        mbarrier_arrive(barrier);
    }
}

/* Gives a stage back when all but PENDING of the warpgroup's wgmma are over. */
template <typename T, int PENDING>
__device__ __forceinline__ void finish_stage(unsigned group, unsigned empty) {
    wgmma_wait<PENDING>();
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); /* in all its warps */
    release<T>(empty);
}

/* The mainloop of a consumer warpgroup: a stage is given back when the next one's wgmma are on
   their way, but where there is only one. */
template <typename T>
__device__ __forceinline__ void consume_tile(float (*sums)[T::BN / 2], const sizes &s, ring &r,
                                             const places &p, unsigned rows_at, unsigned group) {
    unsigned last = 0;
    for (unsigned step = 0; step < s.steps; step++) {
        mbarrier_wait(p.full + r.stage * 8, r.parity);
        multiply<T>(sums, p.stages + r.stage * T::STAGE, rows_at, step == 0);
        if (T::STAGES == 1) {
            finish_stage<T, 0>(group, p.empty);
        } else if (step > 0) {
            finish_stage<T, 1>(group, p.empty + last * 8);
        }
        last = r.stage;
        advance<T>(r, 1);
    }
    if (T::SCHEDULE == PINGPONG && threadIdx.x % GROUP == 0) {
        mbarrier_arrive(p.order + (group ^ 1) * 8);
    }
    if (T::STAGES > 1) {
        finish_stage<T, 0>(group, p.empty + last * 8);
    }
}

template <typename T>
__device__ __forceinline__ void consume(const maps &m, const sizes &s, __nv_bfloat16 *out,
                                        const places &p) {
    constexpr bool TURNS = T::SCHEDULE == PINGPONG;
    unsigned group = threadIdx.x / GROUP - 1, stride = gridDim.x / T::BLOCKS;
    unsigned rows = TURNS ? 0 : group * T::ROWS, parity = group ^ 1;
    unsigned store = p.store + (threadIdx.x / 32 - 4) * STORE_BYTES;
    ring r = {0, 0};
    advance<T>(r, TURNS ? group * s.steps : 0);
    for (unsigned tile = blockIdx.x / T::BLOCKS + (TURNS ? group * stride : 0);
         tile < s.tiles_m * s.tiles_n; tile += (TURNS ? 2 : 1) * stride) {
        float sums[T::ATOMS][T::BN / 2];
        if (TURNS) {
            mbarrier_wait(p.order + group * 8, parity);
            parity ^= 1;
        }
        consume_tile<T>(sums, s, r, p, rows * BK * 2, group);
        advance<T>(r, TURNS ? s.steps : 0);
        int2 at = origin<T>(s, tile);
        at.x += rows;
        store_tile<T>(sums, m, s, out, at, store);
    }
    tma_store_wait();
}

#endif

template <typename T>
__global__ void __launch_bounds__(T::THREADS, 1)
    product(const __grid_constant__ struct maps m, const sizes s, __nv_bfloat16 *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES], order[2];
    unsigned start = (shared_address(bytes) + 1023) / 1024 * 1024;
    const places p = {start, shared_address(full), shared_address(empty), shared_address(order),
                      start + T::STAGES * T::STAGE};
    constexpr unsigned READERS = T::SCHEDULE == COOPERATIVE ? 2 : 1; /* warpgroups of a stage */
    if (threadIdx.x == 0) {
        for (int i = 0; i < T::STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), READERS * T::BLOCKS);
        }
        mbarrier_init(shared_address(&order[0]), 1);
        mbarrier_init(shared_address(&order[1]), 1);
        mbarrier_init_fence();
    }
    if constexpr (T::BLOCKS > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    if constexpr (T::SCHEDULE == PLAIN) {
        run_plain<T>(m, s, out, p);
    } else if (threadIdx.x < GROUP) {
        warpgroup_reg_dealloc<24>();
        if (threadIdx.x == 0) {
            produce<T>(m, s, p);
        }
    } else {
        warpgroup_reg_alloc<240>();
        consume<T>(m, s, out, p);
    }
    if constexpr (T::BLOCKS > 1) {
        cluster_sync(); /* no block exits while another one writes to its shared memory */
    }
#endif
}

unsigned ceil_div(size_t a, size_t b) {
    return (unsigned)((a + b - 1) / b);
}

/* BLOCKS_AT_MOST: of the grid; 0: a block for each tile. */
template <typename T, int BLOCKS_AT_MOST>
bool launch(const struct hopper_buffers *buffers, const struct hopper_product *p) {
    struct maps m;
    sizes s = {ceil_div(p->K, BK), ceil_div(p->M, T::BM * T::BLOCKS), ceil_div(p->N, T::BN),
               (unsigned)p->M, (unsigned)p->N};
    unsigned clusters = s.tiles_m * s.tiles_n, most = BLOCKS_AT_MOST / T::BLOCKS;
    clusters = most > 0 && most < clusters ? most : clusters;
    if (!describe_boxes(&m.a, buffers->a, {p->M, p->K, T::BM, BK, CU_TENSOR_MAP_SWIZZLE_128B}) ||
        !describe_boxes(&m.b, buffers->b,
                        {p->N, p->K, T::BN / T::BLOCKS, BK, CU_TENSOR_MAP_SWIZZLE_128B}) ||
        !describe_boxes(&m.out, buffers->out,
                        {p->M, p->N, 16, STORE_COLUMNS, CU_TENSOR_MAP_SWIZZLE_128B}) ||
        cudaFuncSetAttribute(product<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::BYTES) !=
            cudaSuccess) {
        return false;
    }
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {T::BLOCKS, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(clusters * T::BLOCKS);
    launch.blockDim = dim3(T::THREADS);
    launch.dynamicSmemBytes = T::BYTES;
    launch.attrs = &cluster;
    launch.numAttrs = T::BLOCKS > 1 ? 1 : 0;
    return cudaLaunchKernelEx(&launch, product<T>, m, s, (__nv_bfloat16 *)buffers->out) ==
           cudaSuccess;
}

} // namespace

/* Sixteen tiles with a long K have sixteen multiprocessors: how a block overlaps its own work
   decides, not what it shares with others. 2048 x 2048 fills the GPU. */
const struct hopper_kernel hopper_products[HOPPER_PRODUCTS] = {
    {"plain_1_stage", {512, 512, 4096}, launch<config<PLAIN, 128, 1, 1, 1, DIRECT>, 0>},
    {"plain_2_stages", {512, 512, 4096}, launch<config<PLAIN, 128, 1, 2, 1, DIRECT>, 0>},
    {"plain_4_stages", {512, 512, 4096}, launch<config<PLAIN, 128, 1, 4, 1, DIRECT>, 0>},
    {"producer_1_stage", {512, 512, 4096}, launch<config<COOPERATIVE, 128, 1, 1, 1, DIRECT>, 0>},
    {"producer_2_stages", {512, 512, 4096}, launch<config<COOPERATIVE, 128, 1, 2, 1, DIRECT>, 0>},
    {"producer_4_stages", {512, 512, 4096}, launch<config<COOPERATIVE, 128, 1, 4, 1, DIRECT>, 0>},
    {"producer_6_stages", {512, 512, 4096}, launch<config<COOPERATIVE, 128, 1, 6, 1, DIRECT>, 0>},
    {"producer_192_columns",
     {512, 768, 2048},
     launch<config<COOPERATIVE, 192, 1, 4, 1, DIRECT>, 0>},
    {"producer_256_columns",
     {512, 512, 4096},
     launch<config<COOPERATIVE, 256, 1, 4, 1, DIRECT>, 0>},
    {"producer_small_m", {64, 2048, 4096}, launch<config<COOPERATIVE, 128, 1, 4, 1, DIRECT>, 0>},
    {"multicast_128_columns",
     {512, 512, 4096},
     launch<config<COOPERATIVE, 128, 1, 4, 2, DIRECT>, 0>},
    {"multicast_256_columns",
     {512, 512, 4096},
     launch<config<COOPERATIVE, 256, 1, 4, 2, BY_TMA>, 0>},
    {"persistent_short_k",
     {1024, 2048, 128},
     launch<config<COOPERATIVE, 128, 1, 4, 1, DIRECT>, 16>},
    {"persistent_short_k_tma",
     {1024, 2048, 128},
     launch<config<COOPERATIVE, 128, 1, 4, 1, BY_TMA>, 16>},
    {"pingpong_short_k", {1024, 2048, 128}, launch<config<PINGPONG, 128, 2, 4, 1, DIRECT>, 16>},
    {"pingpong_short_k_tma", {1024, 2048, 128}, launch<config<PINGPONG, 128, 2, 4, 1, BY_TMA>, 16>},
    {"whole_gpu", {2048, 2048, 512}, launch<config<COOPERATIVE, 128, 1, 4, 1, DIRECT>, 0>},
    {"whole_gpu_persistent",
     {2048, 2048, 512},
     launch<config<COOPERATIVE, 128, 1, 4, 1, DIRECT>, 132>},
    {"whole_gpu_pingpong", {2048, 2048, 512}, launch<config<PINGPONG, 128, 2, 4, 1, BY_TMA>, 132>},
    {"whole_gpu_one_step", {2048, 2048, 64}, launch<config<COOPERATIVE, 128, 1, 2, 1, BY_TMA>, 0>},
};

/**
 * @file gemm16_few_rows.cu
 * @brief Few rows, as a decoder has: the roles of the factors are exchanged, and a cluster splits
 * K.
 *
 * wgmma multiplies 64 rows by N = 8, 16, 32, ... columns. With 8 rows of `in` a tile of 64 of them
 * would be seven eighths zeros; so 64 rows of weight are its rows, and the rows of `in` its
 * columns.
 *
 * Time is that of reading weight once. For that all multiprocessors must read, with many bytes in
 * flight: the blocks of a cluster have the same tile and different parts of K, each with a ring of
 * stages that one thread fills. At the end each block's sums lie in its shared memory, and each
 * adds its share of the tile over all blocks, through distributed shared memory, in the order of
 * the ranks: the same bits every time, and no second kernel.
 *
 * Compute capability 9.0a.
 */
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/hopper_tile.cuh"

namespace {

constexpr int WEIGHT_ROWS = 64, FEW_THREADS = GROUP + 32; /* consumers, and a producer's warp */

/* ROWS of `in` a tile. */
template <typename E_, int ROWS_> struct few_tile {
    typedef E_ E;
    static constexpr int ROWS = ROWS_;
    static constexpr unsigned WEIGHT = WEIGHT_ROWS * BK * 2, STAGE = WEIGHT + ROWS * BK * 2;
    static constexpr int STAGES = 100 * 1024 / STAGE; /* two blocks a multiprocessor */
    static constexpr int PITCH = WEIGHT_ROWS + 4;     /* floats, of a row of sums */
    static constexpr unsigned BYTES = STAGES * STAGE + 1024;
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE, "the sums lie where the stages were");
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ unsigned cluster_blocks() {
    unsigned count;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    return count;
}

/* 16 bytes of the shared memory of block `rank` of the cluster. */
__device__ __forceinline__ float4 load_from_block(unsigned address, unsigned rank) {
    float4 x;
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n}"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address), "r"(rank)
                 : "memory");
    return x;
}

/* The mainloop of the consumers. sums: of the block's part of K; zeros if it has none. */
template <typename T>
__device__ __forceinline__ void multiply_part(float *sums, unsigned steps, unsigned stages,
                                              unsigned full, unsigned empty) {
#pragma unroll
    for (int i = 0; i < T::ROWS / 2; i++) {
        sums[i] = 0.0f;
    }
    for (unsigned step = 0; step < steps; step++) {
        unsigned at = step % T::STAGES, stage = stages + at * T::STAGE;
        mbarrier_wait(full + at * 8, step / T::STAGES % 2);
        uint64_t weight = wgmma_descriptor<false>(stage);
        uint64_t in = wgmma_descriptor<false>(stage + T::WEIGHT);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) {
            wgmma<T::ROWS>::template run<0, 0>(sums, weight + 2 * depth, in + 2 * depth, 1,
                                               typename T::E());
        }
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x == 0) {
            mbarrier_arrive(empty + at * 8);
        }
    }
}

/* This block's share of the tile: adds it over the blocks, then the epilogue. */
template <typename T>
__device__ __forceinline__ void add_parts(const float *own, unsigned rank, unsigned blocks,
                                          const struct gemm16_epilogue &f, size_t m0, size_t n0) {
    constexpr unsigned ROW = WEIGHT_ROWS / 8; /* pieces of eight sums */
    unsigned share = (T::ROWS * ROW + blocks - 1) / blocks;
    unsigned end = min((rank + 1) * share, T::ROWS * ROW);
    for (unsigned i = rank * share + threadIdx.x; i < end; i += FEW_THREADS) {
        size_t m = i / ROW, n = i % ROW * 8;
        unsigned at = shared_address(own + m * T::PITCH + n);
        float x[8] = {};
#pragma unroll 4
        for (unsigned block = 0; block < blocks; block++) {
            float4 low = load_from_block(at, block), high = load_from_block(at + 16, block);
            x[0] += low.x, x[1] += low.y, x[2] += low.z, x[3] += low.w;
            x[4] += high.x, x[5] += high.y, x[6] += high.z, x[7] += high.w;
        }
        epilogue_eight<typename T::E>(f, x, m0 + m, n0 + n);
    }
}

#endif

/* grid: (tiles of weight) * blocks of a cluster, tiles of `in` */
template <typename T>
__global__ void __launch_bounds__(FEW_THREADS)
    gemm16_few(const __grid_constant__ struct hopper_maps maps, unsigned steps,
               const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES];
    unsigned stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    float *own = (float *)(shared_bytes + (stages - shared_address(shared_bytes)));
    unsigned rank = cluster_rank(), blocks = cluster_blocks();
    unsigned each = (steps + blocks - 1) / blocks, first = min(steps, rank * each);
    unsigned count = min(each, steps - first);
    int n0 = (int)(blockIdx.x / blocks * WEIGHT_ROWS), m0 = (int)(blockIdx.y * T::ROWS);
    if (threadIdx.x == 0) {
        for (int i = 0; i < T::STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), 1);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x == GROUP) {
        for (unsigned step = 0; step < count; step++) {
            unsigned at = step % T::STAGES, barrier = shared_address(&full[at]);
            if (step >= T::STAGES) {
                mbarrier_wait(shared_address(&empty[at]), (step / T::STAGES - 1) % 2);
            }
            mbarrier_arrive_expect_tx(barrier, T::STAGE);
            int k = (int)((first + step) * BK);
            tma_load_2d(stages + at * T::STAGE, &maps.weight, k, n0, barrier);
            tma_load_2d(stages + at * T::STAGE + T::WEIGHT, &maps.in, k, m0, barrier);
        }
    }
    float sums[T::ROWS / 2];
    if (threadIdx.x < GROUP) {
        multiply_part<T>(sums, count, stages, shared_address(full), shared_address(empty));
    }
    __syncthreads(); /* all stages are read */
    if (threadIdx.x < GROUP) {
        int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < T::ROWS / 2; i++) {
            own[(column + i / 4 * 8 + i % 2) * T::PITCH + row + i / 2 % 2 * 8] = sums[i];
        }
    }
    cluster_sync();
    add_parts<T>(own, rank, blocks, f, m0, n0);
    cluster_sync(); /* no block exits while others read its sums */
#endif
}

template <typename T>
enum status launch(const struct gemm16_problem *p, unsigned blocks, device_stream stream,
                   struct error *error) {
    struct hopper_maps maps = {};
    TRY(describe(&maps.in, p->dtype, p->in, p->M, p->K, T::ROWS, BK, error));
    TRY(describe(&maps.weight, p->dtype, p->weight, p->N, p->K, WEIGHT_ROWS, BK, error));
    TRY(allow_shared<gemm16_few<T>>(T::BYTES, error));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim =
        dim3((unsigned)divide_up(p->N, WEIGHT_ROWS) * blocks, (unsigned)divide_up(p->M, T::ROWS));
    config.blockDim = dim3(FEW_THREADS);
    config.dynamicSmemBytes = T::BYTES;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, gemm16_few<T>, maps, (unsigned)divide_up(p->K, BK),
                             gemm16_epilogue_of(p));
    return device_launched("gemm16_few", error);
}

} // namespace

bool gemm16_few_rows_can(const struct gemm16_problem *p) {
    static const bool code = hopper_has_code<gemm16_few<few_tile<__half, 8>>>();
    return code && has_plain_rows(p) && p->M <= GEMM16_FEW_ROWS;
}

enum status gemm16_few_rows(const struct gemm16_problem *p, unsigned rows, unsigned blocks,
                            device_stream stream, struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        switch (rows) {
        case 8:
            return launch<few_tile<E, 8>>(p, blocks, stream, error);
        case 16:
            return launch<few_tile<E, 16>>(p, blocks, stream, error);
        case 32:
            return launch<few_tile<E, 32>>(p, blocks, stream, error);
        case 64:
            return launch<few_tile<E, 64>>(p, blocks, stream, error);
        default:
            return launch<few_tile<E, 128>>(p, blocks, stream, error);
        }
    });
}

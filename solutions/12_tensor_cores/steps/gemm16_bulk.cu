/**
 * @file gemm16_bulk.cu
 * @brief Some 9 to 128 rows on Hopper: the TMA brings weights, wgmma takes them as its left factor,
 *        and the blocks of a cluster split K.
 *
 * wgmma multiplies 64 rows by 8, 16, 32, ... columns: 64 rows of weight are its rows, those of `in`
 * its columns. The blocks of a cluster have the same tile and parts of K, each with a ring of
 * stages that one thread fills. It starts the first copies right after the barriers' setup, before
 * the block meets. At the end each block adds its share of the tile over all blocks, through
 * distributed shared memory, in the order of the blocks: the same bits every time, and no second
 * kernel.
 *
 * Weights are loaded with evict_first: they leave what the kernels before have written in L2, which
 * otherwise goes to memory meanwhile. Measured on an H100 after a memset of 160 MB, 64 x 11008 x
 * 4096: 41.6 us, 46.5 us without.
 *
 * Bytes: 2 N K, and `in` from L2 once for every 64 rows of weight. Compute capability 9.0a.
 */
#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warp.cuh"
#include "common/cuda/wgmma.cuh"
#include "solutions/12_tensor_cores/steps/few_rows.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

namespace {

constexpr int BK = 64;                                   /* elements of K a step */
constexpr int WEIGHTS = 64;                              /* rows of weight a block */
constexpr int CONSUMERS = 128, THREADS = CONSUMERS + 32; /* a warpgroup, and a producer's warp */

/* ROWS of `in` a tile. */
template <typename E_, int ROWS_, int STAGES_> struct bulk_tile {
    typedef E_ E;
    static constexpr int ROWS = ROWS_, STAGES = STAGES_;
    static constexpr unsigned WEIGHT = WEIGHTS * BK * 2, STAGE = WEIGHT + ROWS * BK * 2;
    static constexpr int PITCH = WEIGHTS + 4;                /* floats, of a row of sums */
    static constexpr unsigned BYTES = STAGES * STAGE + 1024; /* stages begin at whole KiB */
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE, "the sums lie where the stages were");
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* tma_load_2d() with a policy for L2. */
__device__ __forceinline__ void load_with_policy(unsigned to, const CUtensorMap *map, int column,
                                                 int row, unsigned barrier,
                                                 unsigned long long policy) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier), "l"(policy)
                 : "memory");
}

__device__ __forceinline__ unsigned long long evict_first_policy() {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* x += eight floats of the shared memory of block `rank` of the cluster. */
__device__ __forceinline__ void add_from_block(float *x, unsigned address, unsigned rank) {
    float y[8];
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %8, %9;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n"
                 "ld.shared::cluster.v4.f32 {%4, %5, %6, %7}, [remote + 16];\n}"
                 : "=f"(y[0]), "=f"(y[1]), "=f"(y[2]), "=f"(y[3]), "=f"(y[4]), "=f"(y[5]),
                   "=f"(y[6]), "=f"(y[7])
                 : "r"(address), "r"(rank)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 8; i++) {
        x[i] += y[i];
    }
}

/* A block's part of K, and its ring. */
struct part {
    int first, count;             /* steps */
    int m0, n0, rows;             /* of `in` */
    unsigned stages, full, empty; /* addresses in shared memory: stages and barriers */
};

template <typename T>
__device__ __forceinline__ void start_step(const struct few_rows_maps &maps, const struct part &p,
                                           int step, unsigned long long policy) {
    unsigned at = step % T::STAGES, stage = p.stages + at * T::STAGE, barrier = p.full + at * 8;
    if (elect_lane()) {
        mbarrier_arrive_expect_tx(barrier, T::WEIGHT + p.rows * BK * 2);
        load_with_policy(stage, &maps.weight, (p.first + step) * BK, p.n0, barrier, policy);
        tma_load_2d(stage + T::WEIGHT, &maps.in, (p.first + step) * BK, p.m0, barrier);
    }
}

/* The consumers: zeros in the rows of `in` that no copy brings. */
template <typename T>
__device__ __forceinline__ void clear_padding(const struct part &p, uint4 *stages) {
    constexpr int LINE = BK * 2 / sizeof(uint4);
#pragma unroll 1
    for (int stage = 0; stage < T::STAGES && p.rows < T::ROWS; stage++) {
        uint4 *in = stages + (stage * T::STAGE + T::WEIGHT) / sizeof(uint4);
#pragma unroll 1
        for (int i = p.rows * LINE + (int)threadIdx.x; i < T::ROWS * LINE; i += CONSUMERS) {
            in[i] = make_uint4(0, 0, 0, 0);
        }
    }
    fence_proxy_async();
}

/* sums (ROWS / 2) of the block's part of K; zeros if it has none. */
template <typename T>
__device__ __forceinline__ void multiply_part(float *sums, const struct part &p) {
    constexpr int PENDING = T::STAGES > 4 ? 1 : 0; /* a short ring gives stages back at once */
#pragma unroll
    for (int i = 0; i < T::ROWS / 2; i++) {
        sums[i] = 0.0f;
    }
    for (int step = 0; step < p.count; step++) {
        unsigned at = step % T::STAGES, stage = p.stages + at * T::STAGE;
        mbarrier_wait(p.full + at * 8, step / T::STAGES % 2);
        uint64_t weight = wgmma_descriptor<false>(stage);
        uint64_t in = wgmma_descriptor<false>(stage + T::WEIGHT);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) {
            wgmma<T::ROWS>::template run<0, 0>(sums, weight + 2 * depth, in + 2 * depth, 1,
                                               typename T::E());
        }
        wgmma_commit();
        wgmma_wait<PENDING>(); /* then the step before is read; this one is in flight */
        if (threadIdx.x == 0 && step >= PENDING) {
            mbarrier_arrive(p.empty + (step - PENDING) % T::STAGES * 8);
        }
    }
    wgmma_wait<0>();
    wgmma_keep_order<T::ROWS / 2>(sums);
}

/* Eight results of row m from column n on: a bias or none, and 16 bits (is_bare()). */
template <typename E>
__device__ __forceinline__ void store_bare(const struct gemm16_epilogue &f, float *x, size_t m,
                                           size_t n) {
    if (m >= f.M || n >= f.N) {
        return;
    }
    if (f.bias != NULL) {
        add_eight<E>(x, f.bias, n, false);
    }
    struct eight rounded;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        rounded.x[i] = pack(x[2 * i], x[2 * i + 1], E());
    }
    *(struct eight *)((E *)f.out + m * f.N + n) = rounded;
}

/* Thread 0 asks L2 for the block's part of the bias: at the end its way from memory would be seen.
 */
template <typename E>
__device__ __forceinline__ void prefetch_bias(const struct gemm16_epilogue &f, size_t n) {
    if (threadIdx.x == 0 && f.bias != NULL) {
        const char *first = (const char *)f.bias + n * (f.bias_is_float ? 4 : sizeof(E));
        asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(first)));
    }
}

/* This block's share of the tile: adds it over the blocks, then the epilogue. */
template <typename T, bool CLUSTER, bool BARE>
__device__ __forceinline__ void add_parts(const float *own, unsigned rank, unsigned blocks,
                                          const struct gemm16_epilogue &f, const struct part &p) {
    constexpr unsigned ROW = WEIGHTS / 8; /* pieces of eight sums */
    unsigned all = p.rows * ROW, share = (all + blocks - 1) / blocks;
    unsigned end = min((rank + 1) * share, all);
    size_t m0 = (size_t)p.m0, n0 = (size_t)p.n0;
    for (unsigned i = rank * share + threadIdx.x; i < end; i += THREADS) {
        const float *from = own + i / ROW * T::PITCH + i % ROW * 8;
        float x[8] = {};
        for (unsigned block = 0; CLUSTER && block < blocks; block++) {
            add_from_block(x, shared_address(from), block);
        }
        if constexpr (!CLUSTER) {
            read_eight(x, from);
        }
        if constexpr (BARE) {
            store_bare<typename T::E>(f, x, m0 + i / ROW, n0 + i % ROW * 8);
        } else {
            epilogue_eight<typename T::E>(f, x, m0 + i / ROW, n0 + i % ROW * 8);
        }
    }
}

#endif

/* grid: (tiles of weight) * blocks of a cluster, tiles of `in`. CLUSTER: there are some; BARE: the
   epilogue is a bias at most */
template <typename T, bool CLUSTER, bool BARE>
__global__ void __launch_bounds__(THREADS)
    gemm16_bulk_weights(const __grid_constant__ struct few_rows_maps maps, int steps, int rows,
                        unsigned blocks, const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES];
    unsigned rank = blockIdx.x % blocks;
    int each = (steps + (int)blocks - 1) / (int)blocks;
    struct part p;
    p.first = min(steps, (int)rank * each);
    p.count = min(each, steps - p.first);
    p.m0 = (int)blockIdx.y * rows;
    p.rows = rows;
    p.n0 = (int)(blockIdx.x / blocks * WEIGHTS);
    unsigned stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    float *own = (float *)(shared_bytes + (stages - shared_address(shared_bytes)));
    /* The same in all lanes: by shuffles addresses and descriptors stay in uniform registers. */
    p.stages = __shfl_sync(~0u, stages, 0);
    p.full = __shfl_sync(~0u, shared_address(full), 0);
    p.empty = __shfl_sync(~0u, shared_address(empty), 0);
    bool producer = __shfl_sync(~0u, threadIdx.x / 32, 0) == CONSUMERS / 32;
    unsigned long long policy = evict_first_policy();
    if (producer) {
        if (threadIdx.x % 32 < T::STAGES) {
            mbarrier_init(p.full + threadIdx.x % 32 * 8, 1);
            mbarrier_init(p.empty + threadIdx.x % 32 * 8, 1);
        }
        mbarrier_init_fence();
        __syncwarp();
        for (int step = 0; step < T::STAGES && step < p.count; step++) {
            start_step<T>(maps, p, step, policy);
        }
    }
    prefetch_bias<typename T::E>(f, (size_t)p.n0);
    if (!producer) {
        clear_padding<T>(p, (uint4 *)own);
    }
    __syncthreads();
    for (int step = T::STAGES; producer && step < p.count; step++) {
        mbarrier_wait(p.empty + step % T::STAGES * 8, (step / T::STAGES - 1) % 2);
        start_step<T>(maps, p, step, policy);
    }
    float sums[T::ROWS / 2];
    if (threadIdx.x < CONSUMERS) {
        multiply_part<T>(sums, p);
    }
    __syncthreads(); /* all stages are read */
    if (threadIdx.x < CONSUMERS) {
        int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < T::ROWS / 2; i++) {
            own[(column + i / 4 * 8 + i % 2) * T::PITCH + row + i / 2 % 2 * 8] = sums[i];
        }
    }
    if constexpr (CLUSTER) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    add_parts<T, CLUSTER, BARE>(own, rank, blocks, f, p);
    if constexpr (CLUSTER) {
        cluster_sync(); /* no block exits while others read its sums */
    }
#endif
}

template <typename T, auto KERNEL>
enum status launch_kernel(const struct gemm16_problem *p, unsigned blocks, device_stream stream,
                          struct error *error) {
    struct few_rows_maps maps = {};
    dim3 grid;
    int rows;
    TRY(describe_tiles(&maps, p, T::ROWS, WEIGHTS, &grid, &rows, error));
    TRY(allow_shared<KERNEL>(T::BYTES, error));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid.x * blocks, grid.y);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = T::BYTES;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = blocks > 1 ? 1 : 0;
    (void)cudaLaunchKernelEx(&config, KERNEL, maps, (int)((p->K + BK - 1) / BK), rows, blocks,
                             gemm16_epilogue_of(p));
    return device_launched("gemm16_bulk_weights", error);
}

template <typename T>
enum status launch(const struct gemm16_problem *p, unsigned blocks, device_stream stream,
                   struct error *error) {
    bool bare = is_bare(gemm16_epilogue_of(p));
    if (blocks > 1) {
        return bare ? launch_kernel<T, gemm16_bulk_weights<T, true, true>>(p, blocks, stream, error)
                    : launch_kernel<T, gemm16_bulk_weights<T, true, false>>(p, blocks, stream,
                                                                            error);
    }
    return bare ? launch_kernel<T, gemm16_bulk_weights<T, false, true>>(p, 1, stream, error)
                : launch_kernel<T, gemm16_bulk_weights<T, false, false>>(p, 1, stream, error);
}

/* Whether the kernels of this file are there: code for compute_90a. */
bool has_code() {
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes,
                                 gemm16_bulk_weights<bulk_tile<__half, 16, 10>, true, false>) ==
               cudaSuccess &&
           attributes.sharedSizeBytes > 0; /* its barriers */
}

} // namespace

/* SHAPE(rows of `in`, stages): two blocks a multiprocessor; the last four have it alone */
#define SHAPES    \
    SHAPE(16, 10) \
    SHAPE(32, 8)  \
    SHAPE(64, 6)  \
    SHAPE(128, 4) \
    SHAPE(128, 8) \
    SHAPE(64, 13) \
    SHAPE(32, 17) \
    SHAPE(16, 20)

const struct gemm16_few_shape *gemm16_bulk_shapes(int *count) {
#define SHAPE(rows, stages) {rows, WEIGHTS, BK},
    static const struct gemm16_few_shape shapes[] = {SHAPES};
#undef SHAPE
    *count = (int)(sizeof shapes / sizeof *shapes);
    return shapes;
}

bool gemm16_bulk_can(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    static const bool code = has_code();
    return gpu->major == 9 && code && tensor_map_available() && gemm16_few_rows_can(p);
}

enum status gemm16_bulk(const struct gemm16_problem *p, int shape, unsigned blocks,
                        device_stream stream, struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        typedef enum status launcher(const struct gemm16_problem *, unsigned, device_stream,
                                     struct error *);
#define SHAPE(rows, stages) launch<bulk_tile<E, rows, stages>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, blocks, stream, error);
    });
}

/**
 * @file gemm16_bulk.cu
 * @brief Some 9 to 128 rows on Hopper: the TMA brings weights, wgmma takes them as its left factor,
 *        and the blocks of a cluster split K.
 *
 * wgmma multiplies 64 rows by 8, 16, 32, ... columns: 64 rows of weight are its rows, those of `in`
 * its columns. The blocks of a cluster have the same tile and parts of K, each with a ring of
 * stages that one thread fills. It starts the first copies right after the barriers' setup, before
 * the block meets. At the end each block sends the other ones their shares of its sums (st.async),
 * and adds what it receives in the order of the blocks: the same bits every time, and no second
 * kernel. Before, blocks met, read each other's sums, and met again; these barriers are fences for
 * the whole GPU: 64 x 768 x 3072 took 10.6 us instead of 8.9 (H200).
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
constexpr int FRAGMENT = CONSUMERS * 4;                  /* floats: sums of eight rows of `in` */
constexpr unsigned MOST_BYTES = 227 * 1024 - 512;        /* of a block, beside its barriers */

/* ROWS of `in` a tile. */
template <typename E_, int ROWS_, int STAGES_> struct bulk_tile {
    typedef E_ E;
    static constexpr int ROWS = ROWS_, STAGES = STAGES_;
    static constexpr unsigned WEIGHT = WEIGHTS * BK * 2, STAGE = WEIGHT + ROWS * BK * 2;
    static constexpr int PITCH = WEIGHTS + 4;                /* floats, of a row of sums */
    static constexpr unsigned BYTES = STAGES * STAGE + 1024; /* stages begin at whole KiB */
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE, "the sums lie where the stages were");
    static_assert(BYTES + (ROWS / 8 + 7) * FRAGMENT * 4 <= MOST_BYTES, "room for others' sums");
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

/* Four floats to an address, a multiple of 16, in the shared memory of block `rank`; their 16 bytes
   complete at that block's mbarrier `barrier` (st.async). Who waits there sees them. */
__device__ __forceinline__ void send_to_block(unsigned address, unsigned barrier, unsigned rank,
                                              const float *x) {
    asm volatile("{\n.reg .b32 remote, remote_barrier;\n"
                 "mapa.shared::cluster.u32 remote, %0, %2;\n"
                 "mapa.shared::cluster.u32 remote_barrier, %1, %2;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[remote], {%3, %4, %5, %6}, [remote_barrier];\n}" ::"r"(address),
                 "r"(barrier), "r"(rank), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
}

/* cluster_sync_relaxed() in two parts: between them a thread does something else. */
__device__ __forceinline__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait;" ::: "memory");
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

/* What the blocks of a cluster add: each its share of the fragments, of eight rows of `in`. In
   `received` is a place for each block's sums of them: [block][fragment][thread][4]. */
struct shares {
    unsigned rank, blocks, share; /* share: fragments of a block, but for the last ones */
    unsigned barrier;             /* where the others' sums complete */
    float *received;
};

/* Fragments that the block adds. */
template <typename T> __device__ __forceinline__ int own_fragments(const struct shares &s) {
    return min((int)s.share, max(0, T::ROWS / 8 - (int)(s.rank * s.share)));
}

/* A consumer's sums to the blocks that add them. */
template <typename T>
__device__ __forceinline__ void send_sums(const struct shares &s, const float *sums) {
    float *to = s.received + s.rank * s.share * FRAGMENT + threadIdx.x * 4;
    unsigned owner = 0, within = 0;
#pragma unroll
    for (int j = 0; j < T::ROWS / 8; j++) {
        const float *x = sums + 4 * j;
        if (owner == s.rank) {
            *(float4 *)(to + within * FRAGMENT) = make_float4(x[0], x[1], x[2], x[3]);
        } else {
            send_to_block(shared_address(to + within * FRAGMENT), s.barrier, owner, x);
        }
        if (++within == s.share) {
            within = 0;
            owner++;
        }
    }
}

/* A fragment of a consumer into the tile: rows of `in`, first + 0 to first + 7, PITCH floats each.
 */
template <typename T>
__device__ __forceinline__ void put_fragment(float *tile, int first, const float *x) {
    int weight = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, row = first + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        tile[(row + i % 2) * T::PITCH + weight + i / 2 * 8] = x[i];
    }
}

/* The consumers: the block's fragments, added over all blocks, into the tile. */
template <typename T>
__device__ __forceinline__ void add_received(const struct shares &s, float *tile) {
    const float *from = s.received + threadIdx.x * 4;
    for (int j = 0; j < own_fragments<T>(s); j++) {
        float sum[4] = {};
#pragma unroll 4
        for (unsigned block = 0; block < s.blocks; block++) {
            const float4 x = *(const float4 *)(from + (block * s.share + j) * FRAGMENT);
            sum[0] += x.x, sum[1] += x.y, sum[2] += x.z, sum[3] += x.w;
        }
        put_fragment<T>(tile, j * 8, sum);
    }
}

/* A barrier of the consumers. */
__device__ __forceinline__ void sync_consumers() {
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

/* The consumers: `count` rows of the tile, from row m0 of out on, through the epilogue. */
template <typename T, bool BARE>
__device__ __forceinline__ void store_rows(const float *tile, int count, size_t m0, size_t n0,
                                           const struct gemm16_epilogue &f) {
    constexpr int ROW = WEIGHTS / 8; /* pieces of eight sums */
    for (int i = (int)threadIdx.x; i < count * ROW; i += CONSUMERS) {
        float x[8];
        read_eight(x, tile + i / ROW * T::PITCH + i % ROW * 8);
        if constexpr (BARE) {
            store_bare<typename T::E>(f, x, m0 + i / ROW, n0 + i % ROW * 8);
        } else {
            epilogue_eight<typename T::E>(f, x, m0 + i / ROW, n0 + i % ROW * 8);
        }
    }
}

/* The producer's warp: barriers, and the first copies. */
template <typename T>
__device__ __forceinline__ void begin(const struct few_rows_maps &maps, const struct part &p,
                                      const struct shares &s, unsigned long long policy) {
    if (threadIdx.x % 32 < T::STAGES) {
        mbarrier_init(p.full + threadIdx.x % 32 * 8, 1);
        mbarrier_init(p.empty + threadIdx.x % 32 * 8, 1);
    }
    if (threadIdx.x % 32 == 0) {
        mbarrier_init(s.barrier, 1);
    }
    mbarrier_init_fence();
    __syncwarp();
    for (int step = 0; step < T::STAGES && step < p.count; step++) {
        start_step<T>(maps, p, step, policy);
    }
    if (elect_lane()) {
        mbarrier_arrive_expect_tx(s.barrier, (s.blocks - 1) * own_fragments<T>(s) * FRAGMENT * 4);
    }
}

#endif

/* grid: (tiles of weight) * blocks of a cluster, tiles of `in`. CLUSTER: there are some, each block
   adds `share` fragments; BARE: the epilogue is a bias at most */
template <typename T, bool CLUSTER, bool BARE>
__global__ void __launch_bounds__(THREADS)
    gemm16_bulk_weights(const __grid_constant__ struct few_rows_maps maps, int steps, int rows,
                        unsigned blocks, unsigned share, const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES], received;
    unsigned stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    float *tile = (float *)(shared_bytes + (stages - shared_address(shared_bytes)));
    const struct shares s = {CLUSTER ? blockIdx.x % blocks : 0, CLUSTER ? blocks : 1, share,
                             shared_address(&received), tile + T::STAGES * T::STAGE / 4};
    /* The same in all lanes: by shuffles addresses and descriptors stay in uniform registers. */
    const struct part p = {steps * (int)s.rank / (int)s.blocks,
                           steps * (int)(s.rank + 1) / (int)s.blocks -
                               steps * (int)s.rank / (int)s.blocks,
                           (int)blockIdx.y * rows,
                           (int)(blockIdx.x / s.blocks * WEIGHTS),
                           rows,
                           __shfl_sync(~0u, stages, 0),
                           __shfl_sync(~0u, shared_address(full), 0),
                           __shfl_sync(~0u, shared_address(empty), 0)};
    bool producer = __shfl_sync(~0u, threadIdx.x / 32, 0) == CONSUMERS / 32;
    unsigned long long policy = evict_first_policy();
    if (producer) {
        begin<T>(maps, p, s, policy);
    }
    prefetch_bias<typename T::E>(f, (size_t)p.n0);
    if (!producer) {
        clear_padding<T>(p, (uint4 *)tile);
    }
    __syncthreads();
    if constexpr (CLUSTER) { /* before blocks send to each other: all have their barriers */
        cluster_arrive_relaxed();
    }
    for (int step = T::STAGES; producer && step < p.count; step++) {
        mbarrier_wait(p.empty + step % T::STAGES * 8, (step / T::STAGES - 1) % 2);
        start_step<T>(maps, p, step, policy);
    }
    float sums[T::ROWS / 2];
    if (!producer) {
        multiply_part<T>(sums, p);
    }
    if constexpr (CLUSTER) {
        cluster_wait();
    }
    if (producer) {
        return;
    }
    if constexpr (CLUSTER) {
        send_sums<T>(s, sums);
    }
    sync_consumers(); /* all stages are read */
    if constexpr (CLUSTER) {
        mbarrier_wait(s.barrier, 0);
        add_received<T>(s, tile);
    } else {
#pragma unroll
        for (int j = 0; j < T::ROWS / 8; j++) {
            put_fragment<T>(tile, j * 8, sums + 4 * j);
        }
    }
    sync_consumers();
    int first = CLUSTER ? (int)(s.rank * share) * 8 : 0;
    int count = CLUSTER ? min(own_fragments<T>(s) * 8, rows - first) : rows;
    store_rows<T, BARE>(tile, count, (size_t)(p.m0 + first), (size_t)p.n0, f);
#endif
}

template <typename T, auto KERNEL>
enum status launch_kernel(const struct gemm16_problem *p, unsigned blocks, device_stream stream,
                          struct error *error) {
    struct few_rows_maps maps = {};
    dim3 grid;
    int rows;
    TRY(describe_tiles(&maps, p, T::ROWS, WEIGHTS, &grid, &rows, error));
    unsigned share = (T::ROWS / 8 + blocks - 1) / blocks;
    unsigned received = blocks > 1 ? blocks * share * FRAGMENT * 4 : 0; /* bytes */
    TRY(allow_shared<KERNEL>(MOST_BYTES, error));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid.x * blocks, grid.y);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = T::BYTES + received;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = blocks > 1 ? 1 : 0;
    (void)cudaLaunchKernelEx(&config, KERNEL, maps, (int)((p->K + BK - 1) / BK), rows, blocks,
                             share, gemm16_epilogue_of(p));
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

/* SHAPE(rows of `in`, stages): two blocks a multiprocessor; the last three have it alone */
#define SHAPES    \
    SHAPE(16, 10) \
    SHAPE(32, 8)  \
    SHAPE(64, 6)  \
    SHAPE(96, 5)  \
    SHAPE(128, 4) \
    SHAPE(64, 11) \
    SHAPE(96, 9)  \
    SHAPE(128, 7)

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

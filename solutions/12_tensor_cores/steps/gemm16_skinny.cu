/**
 * @file gemm16_skinny.cu
 * @brief Up to 128 rows on Hopper in tiles of few columns: wgmma's 64 rows are those of `in`, and
 *        the blocks of a cluster share what they read.
 *
 * gemm16_bulk.cu has 64 rows of weight a block. 2048 rows of weight are then 32 blocks, or K is
 * split among the blocks of a cluster, which costs two barriers of the cluster. Here a block has 8
 * to 48 rows of weight, so that most multiprocessors have a block, and each has all of K. Rows of
 * `in` that do not exist cost nothing: the TMA brings zeros for them without reading.
 *
 * A narrow tile reads `in` often. So the blocks of a cluster may share: those beside each other
 * each fetch some rows of `in` for all of them, those below each other some rows of weight
 * (multicast).
 *
 * Bytes: 2 N K, and `in` from L2 once for each cluster. Compute capability 9.0a.
 */
#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warp.cuh"
#include "common/cuda/wgmma.cuh"
#include "common/device/tensor_map.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

namespace {

constexpr int BK = 64;                                   /* elements of K a step */
constexpr int ROWS = 64;                                 /* of `in` a block: wgmma's */
constexpr int CONSUMERS = 128, THREADS = CONSUMERS + 32; /* a warpgroup, and a producer's warp */

/* COLUMNS of out, rows of weight, a tile. A cluster is BELOW tiles with the same rows of weight, of
   BESIDE with the same rows of `in`. DENSITY: blocks that a multiprocessor has memory for. */
template <typename E_, int COLUMNS_, int BELOW_, int BESIDE_, int DENSITY_> struct skinny_tile {
    typedef E_ E;
    static constexpr int COLUMNS = COLUMNS_, BELOW = BELOW_, BESIDE = BESIDE_;
    static constexpr int BLOCKS = BELOW * BESIDE, SHARERS = BELOW + BESIDE - 1; /* of a stage */
    static_assert(SHARERS <= BLOCKS && BLOCKS <= 8, "blocks of a cluster");
    static constexpr int IN_SHARE = ROWS / BESIDE, WEIGHT_SHARE = COLUMNS / BELOW;
    static_assert(IN_SHARE % 8 == 0 && WEIGHT_SHARE % 8 == 0, "whole swizzled rows");
    static constexpr unsigned IN = ROWS * BK * 2, STAGE = IN + COLUMNS * BK * 2;
    static constexpr int FIT = (227 * 1024 / DENSITY_ - 2048 * DENSITY_) / STAGE;
    static constexpr int STAGES = FIT < 24 ? FIT : 24;
    static constexpr int PITCH = COLUMNS + 4;                /* floats, of a row of sums */
    static constexpr unsigned BYTES = STAGES * STAGE + 1024; /* stages begin at whole KiB */
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE, "the sums lie where the stages were");
};

struct skinny_maps {
    CUtensorMap in, weight;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Starts loading a box, into all of `blocks` if SHARED, by a policy for L2. */
template <bool SHARED>
__device__ __forceinline__ void load_with_policy(unsigned to, const CUtensorMap *map, int column,
                                                 int row, unsigned barrier, unsigned short blocks,
                                                 unsigned long long policy) {
    if constexpr (SHARED) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to),
            "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks), "l"(policy)
            : "memory");
    } else {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                     "l"(map), "r"(column), "r"(row), "r"(barrier), "l"(policy)
                     : "memory");
    }
}

/* A block's tile, its place in its cluster, and its ring. */
struct skinny_block {
    int m0, n0;
    unsigned below, beside;
    unsigned stages, full, empty; /* addresses in shared memory: stages and barriers */
};

/* A stage, and the parity of its barriers' phase. */
struct skinny_ring {
    unsigned stage, parity;
};

template <typename T> __device__ __forceinline__ void advance(struct skinny_ring &r) {
    if (++r.stage == T::STAGES) {
        r.stage = 0;
        r.parity ^= 1;
    }
}

template <typename T> __device__ __forceinline__ struct skinny_block block_of_thread() {
    unsigned rank = T::BLOCKS == 1 ? 0 : cluster_rank();
    struct skinny_block b = {};
    b.below = rank % T::BELOW;
    b.beside = rank / T::BELOW;
    b.m0 = (int)((blockIdx.y * T::BELOW + b.below) * ROWS);
    b.n0 = (int)((blockIdx.x / T::BLOCKS * T::BESIDE + b.beside) * T::COLUMNS);
    return b;
}

/* The producer's warp: copies of steps `first` to `end`, as stages become empty. */
template <typename T>
__device__ __forceinline__ void produce(const struct skinny_maps &maps,
                                        const struct skinny_block &b, struct skinny_ring &r,
                                        int first, int end) {
    unsigned stages = __shfl_sync(~0u, b.stages, 0), full = __shfl_sync(~0u, b.full, 0);
    unsigned empty = __shfl_sync(~0u, b.empty, 0), below_mask = (1u << T::BELOW) - 1;
    unsigned short sharers_of_weight = (unsigned short)(below_mask << b.beside * T::BELOW);
    unsigned short sharers_of_in = 0;
    unsigned long long evict_first;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(evict_first));
    for (unsigned i = 0; i < T::BESIDE; i++) {
        sharers_of_in |= (unsigned short)(1u << (i * T::BELOW + b.below));
    }
    for (int step = first; step < end; step++) {
        unsigned in = stages + r.stage * T::STAGE + b.beside * (T::IN / T::BESIDE);
        unsigned weight =
            stages + r.stage * T::STAGE + T::IN + b.below * ((T::STAGE - T::IN) / T::BELOW);
        unsigned barrier = full + r.stage * 8;
        mbarrier_wait(empty + r.stage * 8, r.parity);
        if (elect_lane()) {
            mbarrier_arrive_expect_tx(barrier, T::STAGE);
            load_with_policy<(T::BELOW > 1)>(weight, &maps.weight, step * BK,
                                             b.n0 + (int)b.below * T::WEIGHT_SHARE, barrier,
                                             sharers_of_weight, evict_first);
            int row = b.m0 + (int)b.beside * T::IN_SHARE;
            if constexpr (T::BESIDE > 1) {
                tma_load_2d_multicast(in, &maps.in, step * BK, row, barrier, sharers_of_in);
            } else {
                tma_load_2d(in, &maps.in, step * BK, row, barrier);
            }
        }
        advance<T>(r);
    }
}

/* Waits until all stages are empty: then all arrivals of other blocks are there, and so this block
   may exit. */
template <typename T>
__device__ __forceinline__ void wait_for_readers(const struct skinny_block &b,
                                                 struct skinny_ring r) {
    for (int i = 0; i < T::STAGES; i++) {
        mbarrier_wait(b.empty + r.stage * 8, r.parity);
        advance<T>(r);
    }
}

/* A consumer releases a stage to the producers of all blocks that copy into it: its own, those
   above and below, those beside. One arrival each. */
template <typename T>
__device__ __forceinline__ void release(const struct skinny_block &b, unsigned stage) {
    unsigned barrier = b.empty + stage * 8, i = threadIdx.x;
    if constexpr (T::BLOCKS == 1) {
        if (i == 0) {
            mbarrier_arrive(barrier);
        }
    } else if (i < T::SHARERS) {
        unsigned own = b.below + b.beside * T::BELOW;
        mbarrier_arrive_cluster(barrier, i < T::BELOW
                                             ? i + b.beside * T::BELOW
                                             : (own + (i - T::BELOW + 1) * T::BELOW) % T::BLOCKS);
    }
}

/* sums += in (64, 16) * weight (COLUMNS, 16)^T, by instructions of 32, 16 and 8 columns. */
template <int COLUMNS, typename E>
__device__ __forceinline__ void multiply_columns(float *sums, uint64_t in, uint64_t weight, E e) {
    constexpr int FIRST = COLUMNS >= 32 ? 32 : COLUMNS >= 16 ? 16 : 8;
    wgmma<FIRST>::template run<0, 0>(sums, in, weight, 1, e);
    if constexpr (COLUMNS > FIRST) {
        multiply_columns<COLUMNS - FIRST>(sums + FIRST / 2, in, weight + (FIRST * BK * 2 >> 4), e);
    }
}

/* The consumers: sums (COLUMNS / 2 of a lane) of all steps. */
template <typename T>
__device__ __forceinline__ void multiply(float *sums, const struct skinny_block &b, int steps) {
    struct skinny_ring r = {0, 0};
    unsigned last = 0;
#pragma unroll
    for (int i = 0; i < T::COLUMNS / 2; i++) {
        sums[i] = 0.0f;
    }
    for (int step = 0; step < steps; step++) {
        unsigned stage = b.stages + r.stage * T::STAGE;
        mbarrier_wait(b.full + r.stage * 8, r.parity);
        uint64_t in = wgmma_descriptor<false>(stage);
        uint64_t weight = wgmma_descriptor<false>(stage + T::IN);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) {
            multiply_columns<T::COLUMNS>(sums, in + 2 * depth, weight + 2 * depth, typename T::E());
        }
        wgmma_commit();
        if (step > 0) { /* the step before is read; this one is in flight */
            wgmma_wait<1>();
            release<T>(b, last);
        }
        last = r.stage;
        advance<T>(r);
    }
    wgmma_wait<0>();
    release<T>(b, last);
    wgmma_keep_order<T::COLUMNS / 2>(sums);
}

/* Two results (m, n) and (m, n + 1): a bias or none, and 16 bits. */
template <typename E>
__device__ __forceinline__ void store_two(const struct gemm16_epilogue &f, float first,
                                          float second, float2 bias, size_t m, size_t n) {
    if (m < f.M) {
        *(unsigned *)((E *)f.out + m * f.N + n) = pack(first + bias.x, second + bias.y, E());
    }
}

/* A consumer's sums, straight from registers. */
template <typename T>
__device__ __forceinline__ void store_bare(const struct gemm16_epilogue &f, const float *sums,
                                           const struct skinny_block &b) {
    typedef typename T::E E;
    size_t m = b.m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int j = 0; j < T::COLUMNS / 8; j++) {
        size_t n = b.n0 + 8 * j + threadIdx.x % 4 * 2;
        float2 bias = make_float2(0.0f, 0.0f);
        if (n < f.N && f.bias != NULL) {
            bias = unpack(*(const unsigned *)((const E *)f.bias + n), E());
        }
        if (n < f.N) {
            store_two<E>(f, sums[4 * j], sums[4 * j + 1], bias, m, n);
            store_two<E>(f, sums[4 * j + 2], sums[4 * j + 3], bias, m + 8, n);
        }
    }
}

/* A barrier of the consumers. */
__device__ __forceinline__ void sync_consumers() {
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

/* The same with any epilogue, eight results at a time, through shared memory. */
template <typename T>
__device__ __forceinline__ void store_any(const struct gemm16_epilogue &f, const float *sums,
                                          const struct skinny_block &b, float *shared) {
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    sync_consumers(); /* all stages are read */
#pragma unroll
    for (int i = 0; i < T::COLUMNS / 2; i++) {
        shared[(row + i / 2 % 2 * 8) * T::PITCH + column + i / 4 * 8 + i % 2] = sums[i];
    }
    sync_consumers();
    constexpr int PIECES = T::COLUMNS / 8; /* of a row */
    for (int i = (int)threadIdx.x; i < ROWS * PIECES; i += CONSUMERS) {
        float x[8];
        read_eight(x, shared + i / PIECES * T::PITCH + i % PIECES * 8);
        epilogue_eight<typename T::E>(f, x, (size_t)b.m0 + i / PIECES,
                                      (size_t)b.n0 + i % PIECES * 8);
    }
}

#endif

/* grid: (columns of clusters) * blocks of one, rows of them. BARE: the epilogue is a bias at most
 */
template <typename T, bool BARE>
__global__ void __launch_bounds__(THREADS)
    gemm16_skinny_tiles(const __grid_constant__ struct skinny_maps maps, int steps,
                        const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES];
    struct skinny_block b = block_of_thread<T>();
    b.stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    b.full = shared_address(full);
    b.empty = shared_address(empty);
    /* The same in all lanes: by the shuffle the compiler knows that a warp does not diverge. */
    bool producer = __shfl_sync(~0u, threadIdx.x / 32, 0) == CONSUMERS / 32;
    struct skinny_ring r = {0, 1};
    int begun = 0; /* steps whose copies start before the block meets */
    if (producer) {
        if (threadIdx.x % 32 < T::STAGES) {
            mbarrier_init(b.full + threadIdx.x % 32 * 8, 1);
            mbarrier_init(b.empty + threadIdx.x % 32 * 8, T::SHARERS);
        }
        mbarrier_init_fence();
        __syncwarp();
        if constexpr (T::BLOCKS == 1) {
            begun = min(steps, T::STAGES);
            produce<T>(maps, b, r, 0, begun);
        }
    }
    if constexpr (T::BLOCKS == 1) {
        __syncthreads();
    } else {
        cluster_sync_relaxed();
    }
    if (producer) {
        produce<T>(maps, b, r, begun, steps);
        if constexpr (T::BLOCKS > 1) {
            wait_for_readers<T>(b, r);
        }
        return;
    }
    float sums[T::COLUMNS / 2];
    multiply<T>(sums, b, steps);
    if constexpr (BARE) {
        store_bare<T>(f, sums, b);
    } else {
        store_any<T>(f, sums, b,
                     (float *)(shared_bytes + (b.stages - shared_address(shared_bytes))));
    }
#endif
}

enum status describe_rows(CUtensorMap *map, const struct gemm16_problem *p, const void *data,
                          size_t rows, unsigned box_rows, struct error *error) {
    const struct tensor_map_matrix matrix = {p->dtype, data, rows, p->K, box_rows, BK, 128};
    return tensor_map_create(map, &matrix, error);
}

template <typename T, auto KERNEL>
enum status launch_kernel(const struct gemm16_problem *p, device_stream stream,
                          struct error *error) {
    struct skinny_maps maps = {};
    TRY(describe_rows(&maps.in, p, p->in, p->M, T::IN_SHARE, error));
    TRY(describe_rows(&maps.weight, p, p->weight, p->N, T::WEIGHT_SHARE, error));
    TRY(allow_shared<KERNEL>(T::BYTES, error));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = T::BLOCKS;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    size_t wide = T::COLUMNS * T::BESIDE, high = ROWS * T::BELOW;
    config.gridDim = dim3((unsigned)((p->N + wide - 1) / wide * T::BLOCKS),
                          (unsigned)((p->M + high - 1) / high));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = T::BYTES;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = T::BLOCKS > 1 ? 1 : 0;
    (void)cudaLaunchKernelEx(&config, KERNEL, maps, (int)((p->K + BK - 1) / BK),
                             gemm16_epilogue_of(p));
    return device_launched("gemm16_skinny_tiles", error);
}

/* Whether store_bare() does. */
bool is_bare(const struct gemm16_epilogue &f) {
    return f.vector && !f.out_is_float && !f.bias_is_float && f.activation < 0 &&
           f.residual == NULL && !f.gate;
}

template <typename T>
enum status launch(const struct gemm16_problem *p, device_stream stream, struct error *error) {
    return is_bare(gemm16_epilogue_of(p))
               ? launch_kernel<T, gemm16_skinny_tiles<T, true>>(p, stream, error)
               : launch_kernel<T, gemm16_skinny_tiles<T, false>>(p, stream, error);
}

} // namespace

/* SHAPE(columns, blocks below each other, beside each other, blocks a multiprocessor) */
#define SHAPES         \
    SHAPE(8, 1, 1, 2)  \
    SHAPE(16, 1, 1, 2) \
    SHAPE(24, 1, 1, 2) \
    SHAPE(32, 1, 1, 1)

const struct gemm16_few_shape *gemm16_skinny_shapes(int *count) {
#define SHAPE(columns, below, beside, density) {ROWS * below, columns * beside, BK},
    static const struct gemm16_few_shape shapes[] = {SHAPES};
#undef SHAPE
    *count = (int)(sizeof shapes / sizeof *shapes);
    return shapes;
}

enum status gemm16_skinny(const struct gemm16_problem *p, int shape, device_stream stream,
                          struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        typedef enum status launcher(const struct gemm16_problem *, device_stream, struct error *);
#define SHAPE(columns, below, beside, density) \
    launch<skinny_tile<E, columns, below, beside, density>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, stream, error);
    });
}

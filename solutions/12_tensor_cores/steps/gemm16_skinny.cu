/**
 * @file gemm16_skinny.cu
 * @brief Some 33 to 128 rows on Hopper in tiles of few columns: wgmma's 64 rows are those of `in`,
 * and a multiprocessor has two or three blocks.
 *
 * gemm16_bulk.cu has 64 rows of weight a block. 2048 rows of weight are then 32 blocks, or K is
 * split among the blocks of a cluster, which then have to send each other their sums. Here a block
 * has 16 to 48 rows of weight, so that all multiprocessors have blocks, and each has all of K. Of
 * two blocks one copies while the other one starts, ends, or waits. Where a multiprocessor has one
 * block, two of its warpgroups may split K: 128 x 2560 x 2048 takes 10.1 us instead of 10.6 (H200).
 *
 * A narrow tile reads `in` often. Clusters whose blocks share what they read (multicast) were
 * slower than two blocks that share nothing (README.md). A box of `in` has as many rows as there
 * are: the TMA brings rows that do not exist more slowly than numbers (16 x 2048 x 2048 15.4 us by
 * boxes of 64 rows, H200). The others of wgmma's 64 are zeros that stay.
 *
 * The consumers' warps fill the ring together, before the block meets. One warp that starts a copy
 * after the other was seen in the time of small products.
 *
 * Bytes: 2 N K, and `in` from L2 once for each block. Compute capability 9.0a.
 */
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warp.cuh"
#include "common/cuda/wgmma.cuh"
#include "solutions/12_tensor_cores/steps/few_rows.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

namespace {

constexpr int BK = 64;     /* elements of K a step */
constexpr int GROUP = 128; /* threads of a warpgroup */

/* COLUMNS of out, rows of weight, a tile. DENSITY: blocks that a multiprocessor has memory for.
   GROUPS: warpgroups that multiply, one or two, which take steps in turn. */
template <typename E_, int COLUMNS_, int DENSITY_, int GROUPS_> struct skinny_tile {
    typedef E_ E;
    static constexpr int ROWS = 64, COLUMNS = COLUMNS_;                /* ROWS: of wgmma */
    static constexpr int GROUPS = GROUPS_, CONSUMERS = GROUPS * GROUP; /* threads */
    static constexpr int THREADS = CONSUMERS + 32;                     /* and a producer's warp */
    static constexpr unsigned IN = ROWS * BK * 2, STAGE = IN + COLUMNS * BK * 2;
    static constexpr unsigned PARTIAL = GROUPS == 1 ? 0 : GROUP * COLUMNS / 2 * 4; /* sums */
    static constexpr int FIT = (227 * 1024 / DENSITY_ - 2048 * DENSITY_ - PARTIAL) / STAGE;
    static constexpr int STAGES = (FIT < 24 ? FIT : 24) / GROUPS * GROUPS;
    static constexpr int PITCH = COLUMNS + 4; /* floats, of a row of sums */
    static constexpr unsigned BYTES = STAGES * STAGE + PARTIAL + 1024; /* stages: at whole KiB */
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE, "the sums lie where the stages were");
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A block's tile, and its ring: the same in all lanes. */
struct skinny_block {
    int m0, n0, rows;             /* of `in` */
    unsigned stages, full, empty; /* addresses in shared memory: stages and barriers */
};

/* A stage, and the parity of its barriers' phase. */
struct skinny_ring {
    unsigned stage, parity;
};

template <typename T>
__device__ __forceinline__ void advance(struct skinny_ring &r, unsigned by = 1) {
    r.stage += by;
    if (r.stage >= T::STAGES) {
        r.stage -= T::STAGES;
        r.parity ^= 1;
    }
}

/* A warp starts the copies of a step. */
template <typename T>
__device__ __forceinline__ void start_step(const struct few_rows_maps &maps,
                                           const struct skinny_block &b, int step, unsigned stage) {
    unsigned to = b.stages + stage * T::STAGE, barrier = b.full + stage * 8;
    if (elect_lane()) {
        mbarrier_arrive_expect_tx(barrier, T::STAGE - (T::ROWS - b.rows) * BK * 2);
        tma_load_2d_once(to + T::IN, &maps.weight, step * BK, b.n0, barrier);
        tma_load_2d(to, &maps.in, step * BK, b.m0, barrier);
    }
}

/* Each warp of the consumers sets up every fourth or eighth stage, and fills it: one warp would
   need 100 to 200 cycles for each. */
template <typename T>
__device__ __forceinline__ void fill_ring(const struct few_rows_maps &maps,
                                          const struct skinny_block &b, int warp, int steps) {
    constexpr int WARPS = T::CONSUMERS / 32;
    int mine = (int)threadIdx.x % 32 * WARPS + warp; /* a lane's stage */
    if (mine < T::STAGES) {
        mbarrier_init(b.full + mine * 8, 1);
        mbarrier_init(b.empty + mine * 8, 1);
    }
    mbarrier_init_fence();
    __syncwarp();
#pragma unroll 1
    for (int step = warp; step < T::STAGES && step < steps; step += WARPS) {
        start_step<T>(maps, b, step, step);
    }
}

/* The producer's warp: copies of all steps behind those, as stages become empty. */
template <typename T>
__device__ __forceinline__ void produce(const struct few_rows_maps &maps,
                                        const struct skinny_block &b, int steps) {
    struct skinny_ring r = {0, 0};
    for (int step = T::STAGES; step < steps; step++) {
        mbarrier_wait(b.empty + r.stage * 8, r.parity);
        start_step<T>(maps, b, step, r.stage);
        advance<T>(r);
    }
}

/* The consumers: zeros in those of wgmma's 64 rows that no copy brings. */
template <typename T>
__device__ __forceinline__ void clear_padding(const struct skinny_block &b, uint4 *stages) {
    constexpr int LINE = BK * 2 / sizeof(uint4);
#pragma unroll 1
    for (int stage = 0; stage < T::STAGES && b.rows < T::ROWS; stage++) {
        uint4 *in = stages + stage * (T::STAGE / sizeof(uint4));
#pragma unroll 1
        for (int i = b.rows * LINE + (int)threadIdx.x; i < T::ROWS * LINE; i += T::CONSUMERS) {
            in[i] = make_uint4(0, 0, 0, 0);
        }
    }
    fence_proxy_async();
}

/* A warpgroup has read a stage. */
__device__ __forceinline__ void release(const struct skinny_block &b, unsigned stage) {
    if (threadIdx.x % GROUP == 0) {
        mbarrier_arrive(b.empty + stage * 8);
    }
}

/* wgmma<COLUMNS>, and instructions of 24, 40 and 48 columns, which only this file needs. By two of
   16 and 8 columns 128 x 2560 x 2048 takes 13.5 us instead of 12.3 (H200). */
template <int COLUMNS> struct skinny_wgmma : wgmma<COLUMNS> {};

#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SKINNY_RUN(N, TEXT, A, B, E, TYPE, ...)                                                \
    template <int, int>                                                                        \
    static __device__ __forceinline__ void run(float *d, uint64_t a, uint64_t b, int, E) {     \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" TEXT \
                     "}, " A ", " B ", 1, 1, 1, 0, 0;"                                         \
                     : __VA_ARGS__                                                             \
                     : "l"(a), "l"(b));                                                        \
    }
#define SKINNY(N, TEXT, A, B, ...)                                    \
    template <> struct skinny_wgmma<N> {                              \
        SKINNY_RUN(N, TEXT, A, B, __half, "f16", __VA_ARGS__)         \
        SKINNY_RUN(N, TEXT, A, B, __nv_bfloat16, "bf16", __VA_ARGS__) \
    };
#define TWELVE "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"

SKINNY(24, TWELVE, "%12", "%13", FOUR(0), FOUR(4), FOUR(8))
SKINNY(40, TWELVE ", %12, %13, %14, %15, %16, %17, %18, %19", "%20", "%21", FOUR(0), FOUR(4),
       FOUR(8), FOUR(12), FOUR(16))
SKINNY(48, TWELVE ", %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23", "%24", "%25",
       FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20))

#undef TWELVE
#undef SKINNY
#undef SKINNY_RUN
#undef FOUR

/* Warpgroup `group` of the consumers: sums (COLUMNS / 2 of a lane) of its steps. */
template <typename T>
__device__ __forceinline__ void multiply(float *sums, const struct skinny_block &b, int group,
                                         int steps) {
    struct skinny_ring r = {(unsigned)group, 0};
    unsigned last = 0;
    int step = group;
#pragma unroll
    for (int i = 0; i < T::COLUMNS / 2; i++) {
        sums[i] = 0.0f;
    }
    do {
        unsigned stage = b.stages + r.stage * T::STAGE;
        mbarrier_wait(b.full + r.stage * 8, r.parity);
        uint64_t in = wgmma_descriptor<false>(stage);
        uint64_t weight = wgmma_descriptor<false>(stage + T::IN);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) {
            skinny_wgmma<T::COLUMNS>::template run<0, 0>(sums, in + 2 * depth, weight + 2 * depth,
                                                         1, typename T::E());
        }
        wgmma_commit();
        if (step > group) { /* its step before is read; this one is in flight */
            wgmma_wait<1>();
            release(b, last);
        }
        last = r.stage;
        advance<T>(r, T::GROUPS);
        step += T::GROUPS;
    } while (step < steps);
    wgmma_wait<0>();
    wgmma_keep_order<T::COLUMNS / 2>(sums);
}

/* The first warpgroup's sums += the second one's, in `partial`. @return whether this is the first
 */
template <typename T>
__device__ __forceinline__ bool add_groups(float *sums, float *partial, int group) {
    float *lane = partial + threadIdx.x % GROUP;
    if constexpr (T::GROUPS == 1) {
        return true;
    } else if (group == 1) {
#pragma unroll
        for (int i = 0; i < T::COLUMNS / 2; i++) {
            lane[i * GROUP] = sums[i];
        }
        asm volatile("bar.arrive 2, 256;" ::: "memory");
        return false;
    } else {
        asm volatile("bar.sync 2, 256;" ::: "memory");
#pragma unroll
        for (int i = 0; i < T::COLUMNS / 2; i++) {
            sums[i] += lane[i * GROUP];
        }
        return true;
    }
}

/* A consumer's pairs of the bias, as they lie in memory; zeros without one. They come from memory
   while the factors do: at the end their way would be seen. */
template <typename T> struct skinny_bias { unsigned pairs[T::COLUMNS / 8]; };

template <typename T>
__device__ __forceinline__ struct skinny_bias<T> load_bias(const struct gemm16_epilogue &f,
                                                           const struct skinny_block &b) {
    struct skinny_bias<T> bias;
#pragma unroll
    for (int j = 0; j < T::COLUMNS / 8; j++) {
        size_t n = b.n0 + 8 * j + threadIdx.x % 4 * 2;
        bool is_inside = f.bias != NULL && n < f.N;
        bias.pairs[j] = is_inside ? *(const unsigned *)((const typename T::E *)f.bias + n) : 0;
    }
    return bias;
}

/* Two results (m, n) and (m, n + 1) of 16 bits. */
template <typename E>
__device__ __forceinline__ void store_two(const struct gemm16_epilogue &f, float first,
                                          float second, float2 bias, size_t m, size_t n,
                                          size_t end) {
    if (m < end) {
        *(unsigned *)((E *)f.out + m * f.N + n) = pack(first + bias.x, second + bias.y, E());
    }
}

/* A consumer's sums, straight from registers. */
template <typename T>
__device__ __forceinline__ void store_bare(const struct gemm16_epilogue &f, const float *sums,
                                           const struct skinny_bias<T> &bias,
                                           const struct skinny_block &b) {
    typedef typename T::E E;
    size_t m = b.m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    size_t end = min(f.M, (size_t)(b.m0 + b.rows)); /* of the block's rows */
#pragma unroll
    for (int j = 0; j < T::COLUMNS / 8; j++) {
        size_t n = b.n0 + 8 * j + threadIdx.x % 4 * 2;
        float2 both = unpack(bias.pairs[j], E());
        if (n < f.N) {
            store_two<E>(f, sums[4 * j], sums[4 * j + 1], both, m, n, end);
            store_two<E>(f, sums[4 * j + 2], sums[4 * j + 3], both, m + 8, n, end);
        }
    }
}

/* A barrier of the first warpgroup. */
__device__ __forceinline__ void sync_group() {
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

/* The same with any epilogue, eight results at a time, through shared memory. */
template <typename T>
__device__ __forceinline__ void store_any(const struct gemm16_epilogue &f, const float *sums,
                                          const struct skinny_block &b, float *shared) {
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    sync_group(); /* all stages are read */
#pragma unroll
    for (int i = 0; i < T::COLUMNS / 2; i++) {
        shared[(row + i / 2 % 2 * 8) * T::PITCH + column + i / 4 * 8 + i % 2] = sums[i];
    }
    sync_group();
    constexpr int PIECES = T::COLUMNS / 8; /* of a row */
    for (int i = (int)threadIdx.x; i < b.rows * PIECES; i += GROUP) {
        float x[8];
        read_eight(x, shared + i / PIECES * T::PITCH + i % PIECES * 8);
        epilogue_eight<typename T::E>(f, x, (size_t)b.m0 + i / PIECES,
                                      (size_t)b.n0 + i % PIECES * 8);
    }
}

#endif

/* grid: tiles of columns, of rows. BARE: the epilogue is a bias at most */
template <typename T, bool BARE>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_skinny_tiles(const __grid_constant__ struct few_rows_maps maps, int steps, int rows,
                        const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES];
    unsigned stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    /* By shuffles addresses and descriptors are computed in uniform registers, and the compiler
       knows that a warp does not diverge. */
    const struct skinny_block b = {(int)blockIdx.y * rows,
                                   (int)blockIdx.x * T::COLUMNS,
                                   rows,
                                   __shfl_sync(~0u, stages, 0),
                                   __shfl_sync(~0u, shared_address(full), 0),
                                   __shfl_sync(~0u, shared_address(empty), 0)};
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
    int group = warp / (GROUP / 32);
    steps = max(steps, T::GROUPS); /* beyond K the TMA brings zeros */
    bool producer = group == T::GROUPS;
    unsigned char *first = shared_bytes + (stages - shared_address(shared_bytes));
    if (!producer) {
        fill_ring<T>(maps, b, warp, steps);
        clear_padding<T>(b, (uint4 *)first);
    }
    __syncthreads();
    if (producer) {
        produce<T>(maps, b, steps);
        return;
    }
    float sums[T::COLUMNS / 2];
    float *partial = (float *)(first + T::STAGES * T::STAGE);
    if constexpr (BARE) {
        const struct skinny_bias<T> bias = load_bias<T>(f, b);
        multiply<T>(sums, b, group, steps);
        if (add_groups<T>(sums, partial, group)) {
            store_bare<T>(f, sums, bias, b);
        }
    } else {
        multiply<T>(sums, b, group, steps);
        if (add_groups<T>(sums, partial, group)) {
            store_any<T>(f, sums, b, (float *)first);
        }
    }
#endif
}

template <typename T>
enum status launch(const struct gemm16_problem *p, device_stream stream, struct error *error) {
    static const char NAME[] = "gemm16_skinny_tiles";
    return is_bare(gemm16_epilogue_of(p))
               ? launch_tiles<T, gemm16_skinny_tiles<T, true>>(p, NAME, stream, error)
               : launch_tiles<T, gemm16_skinny_tiles<T, false>>(p, NAME, stream, error);
}

} // namespace

/* SHAPE(columns, blocks a multiprocessor, warpgroups) */
#ifndef SHAPES
#define SHAPES      \
    SHAPE(16, 2, 1) \
    SHAPE(24, 2, 1) \
    SHAPE(32, 1, 1) \
    SHAPE(32, 2, 1) \
    SHAPE(32, 3, 1) \
    SHAPE(48, 2, 1) \
    SHAPE(24, 1, 2) \
    SHAPE(40, 1, 2)
#endif

const struct gemm16_few_shape *gemm16_skinny_shapes(int *count) {
#define SHAPE(columns, density, groups) {64, columns, BK},
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
#define SHAPE(columns, density, groups) launch<skinny_tile<E, columns, density, groups>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, stream, error);
    });
}

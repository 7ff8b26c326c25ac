/**
 * @file gemm16_skinny.cu
 * @brief Up to 128 rows on Hopper in tiles of few columns: wgmma's 64 rows are those of `in`, and a
 *        multiprocessor has two or three blocks.
 *
 * gemm16_bulk.cu has 64 rows of weight a block. 2048 rows of weight are then 32 blocks, or K is
 * split among the blocks of a cluster, which costs two barriers of the cluster. Here a block has 8
 * to 48 rows of weight, so that all multiprocessors have blocks, and each has all of K. Of two
 * blocks one copies while the other one starts, ends, or waits.
 *
 * A narrow tile reads `in` often. Clusters whose blocks share what they read (multicast) were
 * slower than two blocks that share nothing (README.md). Rows of `in` that do not exist are zeros,
 * which the TMA brings more slowly than numbers: 16 rows of 2048 x 2048 take 15.4 us where 64 rows
 * take 11.1 (H200, tiles of 16 columns).
 *
 * Bytes: 2 N K, and `in` from L2 once for each block. Compute capability 9.0a.
 */
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

/* COLUMNS of out, rows of weight, a tile. DENSITY: blocks that a multiprocessor has memory for. */
template <typename E_, int COLUMNS_, int DENSITY_> struct skinny_tile {
    typedef E_ E;
    static constexpr int COLUMNS = COLUMNS_;
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

/* A block's tile, and its ring. */
struct skinny_block {
    int m0, n0;
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

/* The producer's warp: copies of steps `first` to `end`, as stages become empty. */
template <typename T>
__device__ __forceinline__ void produce(const struct skinny_maps &maps,
                                        const struct skinny_block &b, struct skinny_ring &r,
                                        int first, int end) {
    unsigned stages = __shfl_sync(~0u, b.stages, 0), full = __shfl_sync(~0u, b.full, 0);
    unsigned empty = __shfl_sync(~0u, b.empty, 0);
    for (int step = first; step < end; step++) {
        unsigned to = stages + r.stage * T::STAGE, barrier = full + r.stage * 8;
        mbarrier_wait(empty + r.stage * 8, r.parity);
        if (elect_lane()) {
            mbarrier_arrive_expect_tx(barrier, T::STAGE);
            tma_load_2d_once(to + T::IN, &maps.weight, step * BK, b.n0, barrier);
            tma_load_2d(to, &maps.in, step * BK, b.m0, barrier);
        }
        advance<T>(r);
    }
}

/* A consumer has read a stage. */
__device__ __forceinline__ void release(const struct skinny_block &b, unsigned stage) {
    if (threadIdx.x == 0) {
        mbarrier_arrive(b.empty + stage * 8);
    }
}

/* wgmma<COLUMNS>, and instructions of 24 and 48 columns, which only this file needs. By two of 16
   and 8 columns 128 x 2560 x 2048 takes 13.5 us instead of 12.3 (H200). */
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
SKINNY(48, TWELVE ", %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23", "%24", "%25",
       FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20))

#undef TWELVE
#undef SKINNY
#undef SKINNY_RUN
#undef FOUR

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
            skinny_wgmma<T::COLUMNS>::template run<0, 0>(sums, in + 2 * depth, weight + 2 * depth,
                                                         1, typename T::E());
        }
        wgmma_commit();
        if (step > 0) { /* the step before is read; this one is in flight */
            wgmma_wait<1>();
            release(b, last);
        }
        last = r.stage;
        advance<T>(r);
    }
    wgmma_wait<0>();
    release(b, last);
    wgmma_keep_order<T::COLUMNS / 2>(sums);
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
                                          float second, float2 bias, size_t m, size_t n) {
    if (m < f.M) {
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
#pragma unroll
    for (int j = 0; j < T::COLUMNS / 8; j++) {
        size_t n = b.n0 + 8 * j + threadIdx.x % 4 * 2;
        float2 both = unpack(bias.pairs[j], E());
        if (n < f.N) {
            store_two<E>(f, sums[4 * j], sums[4 * j + 1], both, m, n);
            store_two<E>(f, sums[4 * j + 2], sums[4 * j + 3], both, m + 8, n);
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

/* grid: tiles of columns, of rows. BARE: the epilogue is a bias at most */
template <typename T, bool BARE>
__global__ void __launch_bounds__(THREADS)
    gemm16_skinny_tiles(const __grid_constant__ struct skinny_maps maps, int steps,
                        const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES];
    unsigned stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    const struct skinny_block b = {(int)blockIdx.y * ROWS, (int)blockIdx.x * T::COLUMNS, stages,
                                   shared_address(full), shared_address(empty)};
    /* The same in all lanes: by the shuffle the compiler knows that a warp does not diverge. */
    bool producer = __shfl_sync(~0u, threadIdx.x / 32, 0) == CONSUMERS / 32;
    struct skinny_ring r = {0, 1};
    int begun = min(steps, T::STAGES); /* steps whose copies start before the block meets */
    if (producer) {
        if (threadIdx.x % 32 < T::STAGES) {
            mbarrier_init(b.full + threadIdx.x % 32 * 8, 1);
            mbarrier_init(b.empty + threadIdx.x % 32 * 8, 1);
        }
        mbarrier_init_fence();
        __syncwarp();
        produce<T>(maps, b, r, 0, begun);
    }
    __syncthreads();
    if (producer) {
        produce<T>(maps, b, r, begun, steps);
        return;
    }
    float sums[T::COLUMNS / 2];
    if constexpr (BARE) {
        const struct skinny_bias<T> bias = load_bias<T>(f, b);
        multiply<T>(sums, b, steps);
        store_bare<T>(f, sums, bias, b);
    } else {
        multiply<T>(sums, b, steps);
        store_any<T>(f, sums, b, (float *)(shared_bytes + (stages - shared_address(shared_bytes))));
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
    TRY(describe_rows(&maps.in, p, p->in, p->M, ROWS, error));
    TRY(describe_rows(&maps.weight, p, p->weight, p->N, T::COLUMNS, error));
    TRY(allow_shared<KERNEL>(T::BYTES, error));
    dim3 grid((unsigned)((p->N + T::COLUMNS - 1) / T::COLUMNS),
              (unsigned)((p->M + ROWS - 1) / ROWS));
    KERNEL<<<grid, THREADS, T::BYTES, stream>>>(maps, (int)((p->K + BK - 1) / BK),
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

/* SHAPE(columns, blocks a multiprocessor) */
#define SHAPES   \
    SHAPE(8, 2)  \
    SHAPE(16, 2) \
    SHAPE(24, 2) \
    SHAPE(16, 3) \
    SHAPE(32, 1) \
    SHAPE(48, 2)

const struct gemm16_few_shape *gemm16_skinny_shapes(int *count) {
#define SHAPE(columns, density) {ROWS, columns, BK},
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
#define SHAPE(columns, density) launch<skinny_tile<E, columns, density>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, stream, error);
    });
}

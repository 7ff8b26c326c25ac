/**
 * @file gemm16_sliced.cu
 * @brief Up to 64 rows on Hopper in tiles of few columns by mma.sync: the warps of a block share a
 *        tile and split K (sliced-K), each with a ring of its own.
 *
 * gemm16_skinny.cu has 64 rows in each wgmma, however few there are, and one warp that starts all
 * copies of a block. Here each warp starts its own: step s of K belongs to warp s % WARPS, which
 * copies a box of weights and one of `in`, multiplies, and copies the next into the same stage. No
 * warp waits for another one before the end, where their sums meet in shared memory and are added
 * in the order of the warps: the same bits every time.
 *
 * Roles are exchanged, as in gemm16_stream.cu: 16 rows of weight are the left factor of m16n8k16, 8
 * rows of `in` the right one. A box has as many rows as `in` (the TMA brings rows that do not exist
 * more slowly than numbers); what a stage has beyond them is zeros.
 *
 * Bytes: 2 N K, and `in` from L2 once for each block. Compute capability 9.0.
 */
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/mma.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warp.cuh"
#include "solutions/12_tensor_cores/steps/few_rows.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

namespace {

constexpr int BK = 64;           /* elements of K a step */
constexpr unsigned ROW = BK * 2; /* bytes of a row of a step */
constexpr int WARPS = 4;

/* ROWS of `in` and COLUMNS of out, rows of weight, a tile. DENSITY: blocks that a multiprocessor
   has memory for. */
template <typename E_, int ROWS_, int COLUMNS_, int DENSITY_> struct sliced_tile {
    typedef E_ E;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, THREADS = 32 * WARPS;
    static constexpr int TILES = ROWS / 8, HEIGHTS = COLUMNS / 16; /* of an mma */
    static constexpr unsigned IN = ROWS * ROW, STAGE = IN + COLUMNS * ROW;
    static constexpr int FIT = (227 * 1024 / DENSITY_ - 2048) / STAGE / WARPS;
    static constexpr int STAGES = FIT < 8 ? FIT : 8;       /* of a warp */
    static constexpr unsigned RING = STAGES * STAGE;       /* bytes of a warp */
    static constexpr unsigned BYTES = WARPS * RING + 1024; /* stages begin at whole KiB */
    static constexpr int PITCH = COLUMNS + 4;              /* floats, of a row of sums */
    static_assert(ROWS == 8 * TILES && COLUMNS == 16 * HEIGHTS, "whole products");
    static_assert(STAGES > 0 && ROWS * PITCH * 4 <= RING, "the sums lie where the stages were");
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A warp's part: its steps are first, first + WARPS, ... */
struct slice {
    int m0, n0, rows; /* of `in` */
    int first, steps;
    unsigned stages, full; /* addresses in shared memory: its ring, and a barrier for each stage */
};

/* Starts the copies of the warp's step `i` into stage `at`. */
template <typename T>
__device__ __forceinline__ void start_step(const struct few_rows_maps &maps, const struct slice &s,
                                           int i, unsigned at) {
    unsigned to = s.stages + at * T::STAGE, barrier = s.full + at * 8;
    int k = (s.first + i * WARPS) * BK;
    if (elect_lane()) {
        mbarrier_arrive_expect_tx(barrier, T::COLUMNS * ROW + s.rows * ROW);
        tma_load_2d_once(to + T::IN, &maps.weight, k, s.n0, barrier);
        tma_load_2d(to, &maps.in, k, s.m0, barrier);
    }
}

/* Zeros in the rows of `in` that no copy brings. */
template <typename T>
__device__ __forceinline__ void clear_padding(const struct slice &s, unsigned char *ring) {
    constexpr int LINE = ROW / sizeof(uint4);
#pragma unroll 1
    for (int stage = 0; stage < T::STAGES && s.rows < T::ROWS; stage++) {
        uint4 *in = (uint4 *)(ring + stage * T::STAGE);
#pragma unroll 1
        for (int i = s.rows * LINE + threadIdx.x % 32; i < T::ROWS * LINE; i += 32) {
            in[i] = make_uint4(0, 0, 0, 0);
        }
    }
}

/* Address of a lane's 16 bytes for ldmatrix: piece `piece` of row `row`, as the TMA swizzles. */
__device__ __forceinline__ unsigned swizzled(unsigned from, unsigned row, unsigned piece) {
    return from + row * ROW + ((piece ^ row % 8) << 4);
}

/* sums += the products of a step. */
template <typename T>
__device__ __forceinline__ void multiply_stage(float (*sums)[T::TILES][4], unsigned stage) {
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int pair = 0; pair < BK / 32; pair++) {
        struct fragment in[T::TILES], weight[2][T::HEIGHTS];
#pragma unroll
        for (int i = 0; i < T::TILES; i++) {
            in[i] = ldmatrix_x4(swizzled(stage, i * 8 + lane % 8, pair * 4 + lane / 8));
        }
#pragma unroll
        for (int j = 0; j < 2 * T::HEIGHTS; j++) {
            weight[j % 2][j / 2] = ldmatrix_x4(
                swizzled(stage + T::IN, j / 2 * 16 + lane % 16, pair * 4 + j % 2 * 2 + lane / 16));
        }
#pragma unroll
        for (int j = 0; j < 2 * T::HEIGHTS; j++) {
#pragma unroll
            for (int i = 0; i < T::TILES; i++) {
                mma_m16n8k16(sums[j / 2][i], weight[j % 2][j / 2], in[i].x[j % 2 * 2],
                             in[i].x[j % 2 * 2 + 1], typename T::E());
            }
        }
    }
}

/* A warp's sums over its steps. */
template <typename T>
__device__ __forceinline__ void multiply(float (*sums)[T::TILES][4],
                                         const struct few_rows_maps &maps, const struct slice &s) {
    unsigned at = 0, parity = 0;
#pragma unroll 1
    for (int i = 0; i < s.steps; i++) {
        mbarrier_wait(s.full + at * 8, parity);
        multiply_stage<T>(sums, s.stages + at * T::STAGE);
        __syncwarp(); /* all lanes have read */
        if (i + T::STAGES < s.steps) {
            start_step<T>(maps, s, i + T::STAGES, at);
        }
        if (++at == T::STAGES) {
            at = 0;
            parity ^= 1;
        }
    }
}

/* A warp's sums into its ring, a row for each row of `in`. */
template <typename T>
__device__ __forceinline__ void put_sums(const float (*sums)[T::TILES][4], float *ring) {
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < T::HEIGHTS; j++) {
#pragma unroll
        for (int i = 0; i < T::TILES; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                unsigned row = i * 8 + lane % 4 * 2 + e % 2, column = j * 16 + e / 2 * 8 + lane / 4;
                ring[row * T::PITCH + column] = sums[j][i][e];
            }
        }
    }
}

/* Eight results that a thread stores: of all warps' sums. */
template <typename T> __device__ __forceinline__ void add_slices(float *x, const float *sums) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        x[i] = 0.0f;
    }
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) {
        float y[8];
        read_eight(y, sums + warp * (T::RING / 4));
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x[i] += y[i];
        }
    }
}

/* Eight results of 16 bits, to which `bias`, eight elements, is added. */
template <typename E>
__device__ __forceinline__ void store_bare(const struct gemm16_epilogue &f, float *x,
                                           const struct eight &bias, size_t m, size_t n) {
    struct eight rounded;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 both = unpack(bias.x[i], E());
        rounded.x[i] = pack(x[2 * i] + both.x, x[2 * i + 1] + both.y, E());
    }
    *(struct eight *)((E *)f.out + m * f.N + n) = rounded;
}

#endif

/* grid: tiles of columns, of rows. BARE: the epilogue is a bias at most */
template <typename T, bool BARE>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_sliced_tiles(const __grid_constant__ struct few_rows_maps maps, int steps, int rows,
                        const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[WARPS * T::STAGES];
    unsigned char *rings = shared_bytes + (1024 - shared_address(shared_bytes) % 1024) % 1024;
    /* The same in all lanes: by shuffles addresses stay in uniform registers. */
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
    const struct slice s = {(int)blockIdx.y * rows,
                            (int)blockIdx.x * T::COLUMNS,
                            rows,
                            warp,
                            (steps - warp + WARPS - 1) / WARPS,
                            __shfl_sync(~0u, shared_address(rings) + warp * T::RING, 0),
                            __shfl_sync(~0u, shared_address(full) + warp * T::STAGES * 8, 0)};
    if (threadIdx.x % 32 < T::STAGES) {
        mbarrier_init(s.full + threadIdx.x % 32 * 8, 1);
    }
    mbarrier_init_fence();
    __syncwarp();
    for (int i = 0; i < T::STAGES && i < s.steps; i++) {
        start_step<T>(maps, s, i, i);
    }
    clear_padding<T>(s, rings + warp * T::RING);
    __syncwarp();
    constexpr int PIECES = T::COLUMNS / 8; /* of a row */
    struct eight bias = {};
    size_t column = (size_t)s.n0 + threadIdx.x % PIECES * 8; /* of its first piece */
    if (BARE && T::THREADS % PIECES == 0 && f.bias != NULL && column < f.N) {
        bias = *(const struct eight *)((const typename T::E *)f.bias + column);
    }
    float sums[T::HEIGHTS][T::TILES][4] = {};
    multiply<T>(sums, maps, s);
    put_sums<T>(sums, (float *)(rings + warp * T::RING));
    __syncthreads();
    for (int i = (int)threadIdx.x; i < rows * PIECES; i += T::THREADS) {
        float x[8];
        size_t m = (size_t)s.m0 + i / PIECES, n = (size_t)s.n0 + i % PIECES * 8;
        add_slices<T>(x, (const float *)rings + i / PIECES * T::PITCH + i % PIECES * 8);
        if constexpr (BARE && T::THREADS % PIECES == 0) {
            if (m < f.M && n < f.N) {
                store_bare<typename T::E>(f, x, bias, m, n);
            }
        } else {
            epilogue_eight<typename T::E>(f, x, m, n);
        }
    }
#endif
}

template <typename T>
enum status launch(const struct gemm16_problem *p, device_stream stream, struct error *error) {
    static const char NAME[] = "gemm16_sliced_tiles";
    return is_bare(gemm16_epilogue_of(p))
               ? launch_tiles<T, gemm16_sliced_tiles<T, true>>(p, NAME, stream, error)
               : launch_tiles<T, gemm16_sliced_tiles<T, false>>(p, NAME, stream, error);
}

} // namespace

/* SHAPE(rows, columns, blocks a multiprocessor) */
#ifndef SHAPES
#define SHAPES       \
    SHAPE(8, 16, 3)  \
    SHAPE(8, 32, 3)  \
    SHAPE(16, 16, 3) \
    SHAPE(16, 32, 3) \
    SHAPE(32, 16, 2) \
    SHAPE(32, 32, 2)
#endif

const struct gemm16_few_shape *gemm16_sliced_shapes(int *count) {
#define SHAPE(rows, columns, density) {rows, columns, BK},
    static const struct gemm16_few_shape shapes[] = {SHAPES};
#undef SHAPE
    *count = (int)(sizeof shapes / sizeof *shapes);
    return shapes;
}

enum status gemm16_sliced(const struct gemm16_problem *p, int shape, device_stream stream,
                          struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        typedef enum status launcher(const struct gemm16_problem *, device_stream, struct error *);
#define SHAPE(rows, columns, density) launch<sliced_tile<E, rows, columns, density>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, stream, error);
    });
}

/**
 * @file gpu_matmul_v4_tile_a_warp.cu
 * @brief Step 4: a warp computes a tile of outputs, several rows of input by several of weights.
 *
 * Changes since v3: a warp computes out[m .. m + ROWS - 1, n .. n + COLUMNS - 1]
 * with a sum for each. A loaded input serves COLUMNS rows of weights, a loaded
 * weight serves ROWS rows of input.
 *
 * Why: with M = 1, half of v3's loads are inputs, even if they come from cache.
 * With four rows of weights a warp they are a fifth, and each lane has four loads
 * in flight instead of one. With the several rows of a prompt, weights are read
 * only once for four of them.
 *
 * With few outputs, tiles would leave most of the GPU without a warp. Then a warp
 * has one output as before, and issues all its loads of 1024 weights before it
 * adds up the first. Blocks have four warps, so that more SMs get one. A model
 * calls this 85 times a token, so the launch counts as well: see
 * dependent_launch.cuh.
 *
 * Grid: ceil(tiles / 4) blocks of 4 warps, n fastest. FLOPs 2*M*N*K. Weights
 * are read ceil(M / ROWS) times.
 */
#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/warp.cuh"
#include "solutions/02_gpu_matmul/steps/grid.cuh"
#include "solutions/02_gpu_matmul/steps/ladder.h"

enum { WARPS = 4, MANY_COLUMNS = 16384 };

static __device__ __forceinline__ void add_product(float *sum, float4 a, float4 b) {
    *sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

static __device__ __forceinline__ void add_product(float *sum, float a, float b) {
    *sum += a * b;
}

/* Addresses of COUNT rows, `length` elements each. If fewer are left, the last row stands for the
   missing ones; their sums are not stored. */
template <int COUNT, typename VECTOR>
static __device__ __forceinline__ void find_rows(const VECTOR *(&rows)[COUNT], const VECTOR *first,
                                                 size_t left, size_t length) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        rows[i] = first + ((size_t)i < left ? (size_t)i : left - 1) * length;
    }
}

/*
 * This lane's parts of the tile's dot products, from k on. VECTOR is float or float4; length
 * counts them. While AHEAD rounds are left, the loads of AHEAD rounds are issued before the first
 * product; the remaining rounds use half as many, down to one.
 */
template <int AHEAD, int ROWS, int COLUMNS, typename VECTOR>
static __device__ __forceinline__ void
dots(float (&sums)[ROWS][COLUMNS], const VECTOR *const (&x)[ROWS],
     const VECTOR *const (&w)[COLUMNS], size_t k, size_t length) {
#pragma unroll 1 /* the loops inside unroll it by AHEAD */
    for (; k + (AHEAD - 1) * WARP < length; k += AHEAD * WARP) {
        VECTOR a[AHEAD][ROWS], b[AHEAD][COLUMNS];
#pragma unroll
        for (int i = 0; i < AHEAD * COLUMNS; i++) {
            b[i / COLUMNS][i % COLUMNS] = w[i % COLUMNS][k + i / COLUMNS * WARP];
        }
#pragma unroll
        for (int i = 0; i < AHEAD * ROWS; i++) {
            a[i / ROWS][i % ROWS] = x[i % ROWS][k + i / ROWS * WARP];
        }
#pragma unroll
        for (int i = 0; i < AHEAD * ROWS * COLUMNS; i++) {
            int ahead = i / COLUMNS / ROWS;
            int r = i / COLUMNS % ROWS;
            int c = i % COLUMNS;
            add_product(&sums[r][c], a[ahead][r], b[ahead][c]);
        }
    }
    if constexpr (AHEAD > 1) {
        dots<AHEAD / 2>(sums, x, w, k, length);
    }
}

/* Adds up the lanes; lane 0 stores the outputs of the tile that lie inside out. */
template <int ROWS, int COLUMNS>
static __device__ __forceinline__ void store_tile(float *out, const float (&sums)[ROWS][COLUMNS],
                                                  size_t M, size_t N, size_t m, size_t n,
                                                  unsigned lane) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            float sum = warp_sum_to_lane_0(sums[r][c]);
            if (lane == 0 && m + r < M && n + c < N) {
                out[(m + r) * N + n + c] = sum;
            }
        }
    }
}

template <int ROWS, int COLUMNS, typename VECTOR>
static __global__ void tile_a_warp(float *out, const float *in, const float *weight, size_t M,
                                   size_t N, size_t K) {
    /* More rounds ahead where a warp has few loads a round. */
    const int AHEAD = ROWS * COLUMNS == 1 ? 8 : 2;
    dependent_launch_begin();
    unsigned lane = threadIdx.x % WARP;
    size_t length = K / (sizeof(VECTOR) / sizeof(float));
    size_t across = (N + COLUMNS - 1) / COLUMNS;
    size_t tiles = (M + ROWS - 1) / ROWS * across;
    size_t first = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    for (size_t i = first; i < tiles; i += (size_t)gridDim.x * WARPS) {
        size_t m = i / across * ROWS;
        size_t n = i % across * COLUMNS;
        const VECTOR *x[ROWS], *w[COLUMNS];
        float sums[ROWS][COLUMNS] = {};
        find_rows(x, (const VECTOR *)(in + m * K), M - m, length);
        find_rows(w, (const VECTOR *)(weight + n * K), N - n, length);
        dots<AHEAD>(sums, x, w, lane, length);
        store_tile(out, sums, M, N, m, n, lane);
    }
}

template <int ROWS, int COLUMNS>
static void launch(float *out, const float *in, const float *weight, size_t M, size_t N, size_t K,
                   device_stream stream) {
    unsigned blocks = grid_for(ceil_div(M, ROWS) * ceil_div(N, COLUMNS), WARPS);
    const unsigned threads = WARPS * WARP;
    if (rows_aligned(in, K) && rows_aligned(weight, K)) {
        launch_dependent<tile_a_warp<ROWS, COLUMNS, float4>>(blocks, threads, 0, stream, out, in,
                                                             weight, M, N, K);
    } else {
        launch_dependent<tile_a_warp<ROWS, COLUMNS, float>>(blocks, threads, 0, stream, out, in,
                                                            weight, M, N, K);
    }
}

enum status gpu_matmul_v4_tile_a_warp(float *out, const float *in, const float *weight, size_t M,
                                      size_t N, size_t K, device_stream stream,
                                      struct error *error) {
    if (M == 0 || N == 0) {
        return STATUS_OK;
    }
    if (M > 1) {
        launch<4, 4>(out, in, weight, M, N, K, stream);
    } else if (N >= MANY_COLUMNS) {
        launch<1, 4>(out, in, weight, M, N, K, stream);
    } else {
        launch<1, 1>(out, in, weight, M, N, K, stream);
    }
    return device_launched("tile_a_warp", error);
}

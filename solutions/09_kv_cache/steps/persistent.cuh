/**
 * @file persistent.cuh
 * @brief The product of step v7 for matrices of few, long rows: a persistent kernel.
 *
 * A block computes one tile of rows after the other, double buffered in registers: while one set of
 * weights is multiplied, the next tile's are in flight into the other. x, times the norm, stays in
 * registers, too. Blocks take half of a multiprocessor's registers, so that the next kernel's
 * blocks are resident from the start and have their first weights when they may start.
 */
#ifndef WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_PERSISTENT_CUH_
#define WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_PERSISTENT_CUH_

#include "solutions/09_kv_cache/steps/gemv.cuh"

enum { PERSISTENT_PASSES = 4, PERSISTENT_ROWS = 2 };

/* The thread's pieces of x, times the norm; 0 beyond the end. @return its sum of squares */
template <typename E>
static __device__ __forceinline__ float load_x(float y[PERSISTENT_PASSES][VECTOR_ELEMENTS<E>],
                                               const struct product &p, int pieces) {
    const struct kv_linear &l = p.l;
    constexpr int WIDE = VECTOR_ELEMENTS<E>;
    float squares = 0.0f, norm[WIDE];
#pragma unroll
    for (int i = 0; i < PERSISTENT_PASSES; i++) {
        int piece = (int)(threadIdx.x + i * blockDim.x);
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            y[i][j] = 0.0f;
        }
        if (piece < pieces) {
            load_input<WIDE>(y[i], l.in + (size_t)piece * WIDE, p);
        }
        if (piece < pieces && l.norm != NULL) {
            load_floats<WIDE>(norm, l.norm + (size_t)piece * WIDE);
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                squares += y[i][j] * y[i][j];
                y[i][j] *= norm[j];
            }
        }
    }
    return squares;
}

/* Loads a tile's rows; zeros beyond the last tile. */
template <typename E>
static __device__ __forceinline__ void load_tile(uint4 w[PERSISTENT_ROWS][PERSISTENT_PASSES],
                                                 const struct kv_linear &l, size_t pieces,
                                                 size_t tile) {
    size_t row = tile * PERSISTENT_ROWS, left = row < l.N ? l.N - row : 0;
    const uint4 *rows = (const uint4 *)l.weight + (left > 0 ? row * pieces : 0);
    load_pieces<PERSISTENT_PASSES, PERSISTENT_ROWS>(
        w, rows, pieces, 0, left < PERSISTENT_ROWS ? (int)left : (int)PERSISTENT_ROWS);
}

/* Sums of the block's warps: of each row, then of squares. Tiles alternate between two of them, so
 * that one barrier a tile is enough. */
typedef float warp_sums[PERSISTENT_ROWS + 1][PRODUCT_THREADS / 32];

/* A tile's products and its epilogue. */
template <typename E>
static __device__ __forceinline__ void
tile_epilogue(const uint4 w[PERSISTENT_ROWS][PERSISTENT_PASSES],
              const float y[PERSISTENT_PASSES][VECTOR_ELEMENTS<E>], float squares,
              const struct product &p, size_t tile, warp_sums sums) {
    const struct kv_linear &l = p.l;
    constexpr int WIDE = VECTOR_ELEMENTS<E>;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    size_t n = tile * PERSISTENT_ROWS + threadIdx.x;
    bool stores = threadIdx.x < PERSISTENT_ROWS && n < l.N;
    float residual = stores && l.residual != NULL ? l.residual[n] : 0.0f; /* loaded early */
#pragma unroll
    for (int r = 0; r < PERSISTENT_ROWS; r++) {
        float sum = 0.0f, values[WIDE];
#pragma unroll
        for (int i = 0; i < PERSISTENT_PASSES; i++) {
            unpack(w[r][i], values, E());
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                sum += values[j] * y[i][j];
            }
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            sums[r][warp] = sum;
        }
    }
    if (lane == 0) {
        sums[PERSISTENT_ROWS][warp] = squares;
    }
    __syncthreads();
    if (stores) {
        float sum = 0.0f, all = 0.0f;
        for (int i = 0; i < warps; i++) {
            sum += sums[threadIdx.x][i];
            all += sums[PERSISTENT_ROWS][i];
        }
        l.out[n] =
            finished(residual + (l.norm != NULL ? norm_rstd(all, l.K, l.eps) : 1.0f) * sum, p);
    }
}

/*
 * Grid: the resident blocks; a block has every gridDim.x-th tile of PERSISTENT_ROWS rows.
 * Precondition: persistent_fits(). Bytes: N * K * sizeof(E).
 */
template <typename E>
static __global__ void __launch_bounds__(PRODUCT_THREADS) persistent_kernel(struct product p) {
    __shared__ warp_sums sums[2];
    const struct kv_linear &l = p.l;
    size_t pieces = l.K / VECTOR_ELEMENTS<E>, tile = blockIdx.x;
    uint4 now[PERSISTENT_ROWS][PERSISTENT_PASSES], next[PERSISTENT_ROWS][PERSISTENT_PASSES];
    float y[PERSISTENT_PASSES][VECTOR_ELEMENTS<E>];
    load_tile<E>(now, l, pieces, tile);
    begin_product(p);
    float squares = warp_sum(load_x<E>(y, p, (int)pieces));
    while (tile * PERSISTENT_ROWS < l.N) {
        load_tile<E>(next, l, pieces, tile + gridDim.x);
        tile_epilogue<E>(now, y, squares, p, tile, sums[0]);
        tile += gridDim.x;
        if (tile * PERSISTENT_ROWS >= l.N) {
            break;
        }
        load_tile<E>(now, l, pieces, tile + gridDim.x);
        tile_epilogue<E>(next, y, squares, p, tile, sums[1]);
        tile += gridDim.x;
    }
    for (unsigned i = threadIdx.x; blockIdx.x == 0 && i < p.count; i += blockDim.x) {
        p.counters[i] = 0;
    }
    end_product(p);
}

/* Few, long rows, as measured on an H200. For other shapes v6's many blocks are faster. */
static inline bool persistent_fits(const struct kv_linear *l) {
    size_t pieces = l->K * nn_dtype_bytes(l->dtype) / 16;
    return linear_aligned(l) && l->N >= 2048 && l->N <= 4096 && pieces >= 512 &&
           pieces <= (size_t)PERSISTENT_PASSES * PRODUCT_THREADS;
}

/* About 512 threads a multiprocessor: half of its registers. */
template <typename E>
static inline void launch_persistent(const struct product &p, unsigned multiprocessors,
                                     bool dependent, device_stream stream) {
    size_t pieces = p.l.K / VECTOR_ELEMENTS<E>, tiles = ceil_div(p.l.N, PERSISTENT_ROWS);
    size_t threads = ceil_div(ceil_div(pieces, PERSISTENT_PASSES), 32) * 32;
    size_t blocks = multiprocessors * (512 / threads);
    launch<persistent_kernel<E>>(dependent, (unsigned)(blocks < tiles ? blocks : tiles),
                                 (unsigned)threads, stream, p);
}

#endif

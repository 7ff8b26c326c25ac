/**
 * @file gemm16_stream.cu
 * @brief Up to 16 rows: weights go from memory straight into mma.sync's registers.
 *
 * The time is that of reading the weights once, and of whatever stands before the first load and
 * after the last. So the roles of the factors are exchanged, and shared memory is left out:
 *
 * - 16 rows of weight are the left factor of m16n8k16, 8 rows of `in` the right one. With one row
 *   of `in` seven eighths of each mma are zeros, which costs nothing here.
 * - mma adds over K in any order, as long as both factors agree. A thread's words 0 and 1 of 16
 *   bytes (8 neighbours of K) are its pieces of one mma, words 2 and 3 those of the next:
 *
 *       lane % 4        0            1            2            3
 *       k               0 ... 7      8 ... 15     16 ... 23    24 ... 31     of row lane / 4
 *       first mma       0 1 2 3      8 9 10 11    16 ...       24 ...        words 0 and 1
 *       second mma      4 5 6 7      12 ...       20 ...       28 ...        words 2 and 3
 *
 *   Each load is 16 bytes, and four lanes read 64 bytes of a row. No ldmatrix, no swizzle.
 * - The warps of a block have the same weights' rows and different parts of K, and so have the
 *   blocks of a cluster. Sums are added in the order of the warps, then, through distributed shared
 *   memory, in that of the blocks: the same bits every time, no workspace and no second kernel.
 *
 * Bytes: 2 N K, and in from L2. Compute capability 8.0; clusters from 9.0 on.
 */
#include "common/cuda/memory.cuh"
#include "common/cuda/mma.cuh"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"
#include "solutions/12_tensor_cores/steps/split_cluster.cuh"

namespace {

/* ROWS of `in` and WEIGHTS (8 or 16) rows of weight a block, WARPS that share K, and DEPTH pieces
   of 32 elements of K that a warp loads before it multiplies those it loaded before. */
template <typename E_, int ROWS_, int WEIGHTS_, int WARPS_, int DEPTH_> struct stream_shape {
    typedef E_ E;
    static constexpr int ROWS = ROWS_, WEIGHTS = WEIGHTS_, WARPS = WARPS_, DEPTH = DEPTH_;
    static constexpr int THREADS = 32 * WARPS, TILES = ROWS / 8, HALVES = WEIGHTS / 8;
    static constexpr int PITCH = WEIGHTS + 4; /* floats, of a row of sums */
    static constexpr int PIECE = 32;          /* elements of K that four lanes load */
};

/* Sixteen bytes of each row that the thread reads. */
template <typename T> struct weights_ahead { uint4 x[T::DEPTH][T::HALVES]; };

/* Where a thread reads: its row of each group of eight, from its first element of K on. */
template <typename T> struct stream_rows {
    const typename T::E *weight[T::HALVES], *in[T::TILES];
    bool has_weight[T::HALVES], has_in[T::TILES];
    size_t left; /* elements of K from its first one on */
};

template <typename T>
__device__ __forceinline__ struct stream_rows<T> rows_of_thread(const struct gemm16_problem &p,
                                                                size_t m0, size_t n0) {
    typedef typename T::E E;
    struct stream_rows<T> r;
    size_t row = threadIdx.x % 32 / 4, k = threadIdx.x % 4 * 8;
#pragma unroll
    for (int i = 0; i < T::HALVES; i++) {
        size_t n = n0 + i * 8 + row;
        r.has_weight[i] = n < p.N;
        r.weight[i] = (const E *)p.weight + (n < p.N ? n : 0) * p.K + k;
    }
#pragma unroll
    for (int i = 0; i < T::TILES; i++) {
        size_t m = m0 + i * 8 + row;
        r.has_in[i] = m < p.M;
        r.in[i] = (const E *)p.in + (m < p.M ? m : 0) * p.K + k;
    }
    r.left = p.K > k ? p.K - k : 0;
    return r;
}

/* Starts loading the pieces from element `at` of K on; zeros outside. */
template <typename T>
__device__ __forceinline__ void load_weights(struct weights_ahead<T> &w,
                                             const struct stream_rows<T> &r, size_t at) {
#pragma unroll
    for (int d = 0; d < T::DEPTH; d++) {
#pragma unroll
        for (int i = 0; i < T::HALVES; i++) {
            size_t k = at + d * T::PIECE;
            w.x[d][i] = r.has_weight[i] && k < r.left ? load_no_allocate(r.weight[i] + k)
                                                      : make_uint4(0, 0, 0, 0);
        }
    }
}

/* sums += what was loaded, times the same pieces of `in`. */
template <typename T>
__device__ __forceinline__ void multiply_weights(float (*sums)[4], const struct weights_ahead<T> &w,
                                                 const struct stream_rows<T> &r, size_t at) {
#pragma unroll
    for (int d = 0; d < T::DEPTH; d++) {
        uint4 low = w.x[d][0], high = make_uint4(0, 0, 0, 0);
        if (T::HALVES == 2) {
            high = w.x[d][T::HALVES - 1];
        }
        const struct fragment first = {{low.x, high.x, low.y, high.y}};
        const struct fragment second = {{low.z, high.z, low.w, high.w}};
#pragma unroll
        for (int i = 0; i < T::TILES; i++) {
            size_t k = at + d * T::PIECE;
            uint4 x = make_uint4(0, 0, 0, 0);
            if (r.has_in[i] && k < r.left) {
                x = __ldg((const uint4 *)(r.in[i] + k));
            }
            mma_m16n8k16(sums[i], first, x.x, x.y, typename T::E());
            mma_m16n8k16(sums[i], second, x.z, x.w, typename T::E());
        }
    }
}

/* A result: the epilogue for one element, whatever its alignment. */
template <typename E>
__device__ __forceinline__ void store_result(const struct gemm16_epilogue &f, float x, size_t m,
                                             size_t n) {
    size_t at = m * f.N + n;
    if (f.bias != NULL) {
        x += value_at<E>(f.bias, n, f.bias_is_float);
    }
    activate<1>(&x, f.activation);
    if (f.residual != NULL) {
        x += value_at<E>(f.residual, at, f.residual_is_float);
    }
    if (f.out_is_float) {
        ((float *)f.out)[at] = x;
    } else {
        store_rounded((E *)f.out + at, x);
    }
}

/* grid: (tiles of weight) * blocks of a cluster, tiles of `in` */
template <typename T>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_stream_weights(const struct gemm16_problem p, unsigned blocks,
                          const struct gemm16_epilogue f) {
    __shared__ float all_sums[T::WARPS][T::ROWS * T::PITCH];
    unsigned rank = blockIdx.x % blocks, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t n0 = (size_t)(blockIdx.x / blocks) * T::WEIGHTS, m0 = (size_t)blockIdx.y * T::ROWS;
    constexpr size_t STEP = T::DEPTH * T::PIECE;
    size_t at = (rank * T::WARPS + warp) * STEP, advance = blocks * T::WARPS * STEP;
    const struct stream_rows<T> rows = rows_of_thread<T>(p, m0, n0);
    struct weights_ahead<T> w[2];
    float sums[T::TILES][4] = {};
    load_weights<T>(w[0], rows, at);
    for (; at < p.K; at += 2 * advance) {
        load_weights<T>(w[1], rows, at + advance);
        multiply_weights<T>(sums, w[0], rows, at);
        load_weights<T>(w[0], rows, at + 2 * advance);
        multiply_weights<T>(sums, w[1], rows, at + advance);
    }
#pragma unroll
    for (int i = 0; i < T::TILES; i++) {
#pragma unroll
        for (int j = 0; j < 2 * T::HALVES; j++) {
            unsigned row = i * 8 + lane % 4 * 2 + j % 2, column = j / 2 * 8 + lane / 4;
            all_sums[warp][row * T::PITCH + column] = sums[i][j];
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < T::ROWS * T::WEIGHTS; i += T::THREADS) {
        unsigned in_sums = i / T::WEIGHTS * T::PITCH + i % T::WEIGHTS;
        size_t m = m0 + i / T::WEIGHTS, n = n0 + i % T::WEIGHTS;
        float x = 0.0f;
#pragma unroll
        for (int part = 0; part < T::WARPS; part++) {
            x += all_sums[part][in_sums];
        }
        if (blocks > 1) {
            all_sums[0][in_sums] = x;
        } else if (m < p.M && n < p.N) {
            store_result<typename T::E>(f, x, m, n);
        }
    }
    if (blocks == 1) {
        return;
    }
    meet_blocks();
    unsigned share = (T::ROWS * T::WEIGHTS + blocks - 1) / blocks;
    unsigned end = min((rank + 1) * share, (unsigned)(T::ROWS * T::WEIGHTS));
    for (unsigned i = rank * share + threadIdx.x; i < end; i += T::THREADS) {
        size_t m = m0 + i / T::WEIGHTS, n = n0 + i % T::WEIGHTS;
        const float *own = &all_sums[0][i / T::WEIGHTS * T::PITCH + i % T::WEIGHTS];
        float x = 0.0f;
        for (unsigned block = 0; block < blocks; block++) {
            x += load_from_block(own, block);
        }
        if (m < p.M && n < p.N) {
            store_result<typename T::E>(f, x, m, n);
        }
    }
    meet_blocks(); /* no block exits while others read its sums */
}

template <typename T>
enum status launch(const struct gemm16_problem *p, unsigned blocks, device_stream stream,
                   struct error *error) {
    dim3 grid((unsigned)((p->N + T::WEIGHTS - 1) / T::WEIGHTS) * blocks,
              (unsigned)((p->M + T::ROWS - 1) / T::ROWS));
    return launch_clusters<gemm16_stream_weights<T>>(p, grid, T::THREADS, 0, blocks, stream, error);
}

} // namespace

/* SHAPE(rows of `in`, rows of weight, warps, depth) */
#define SHAPES           \
    SHAPE(8, 8, 24, 1)   \
    SHAPE(8, 16, 16, 1)  \
    SHAPE(16, 16, 24, 1) \
    SHAPE(16, 16, 8, 2)

const struct gemm16_few_shape *gemm16_stream_shapes(int *count) {
#define SHAPE(rows, weights, warps, depth) {rows, weights, (warps) * (depth)*32},
    static const struct gemm16_few_shape shapes[] = {SHAPES};
#undef SHAPE
    *count = (int)(sizeof shapes / sizeof *shapes);
    return shapes;
}

enum status gemm16_stream(const struct gemm16_problem *p, int shape, unsigned blocks,
                          device_stream stream, struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        typedef enum status launcher(const struct gemm16_problem *, unsigned, device_stream,
                                     struct error *);
#define SHAPE(rows, weights, warps, depth) launch<stream_shape<E, rows, weights, warps, depth>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, blocks, stream, error);
    });
}

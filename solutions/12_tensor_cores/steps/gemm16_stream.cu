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
 * - The warps of a block have the same weights' rows and different parts of K. Their sums meet in
 *   shared memory and are added in the order of the warps: the same bits every time.
 *
 * Blocks of a cluster that share K, too, were slower at all of 42 shapes of 1 to 16 rows (H100);
 * so were more bytes in flight in fewer warps.
 *
 * Bytes: 2 N K, and `in` from L2. Compute capability 8.0.
 */
#include "common/cuda/memory.cuh"
#include "common/cuda/mma.cuh"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

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

/* Sixteen bytes of each row that the thread reads: of weight, and of `in`. */
template <typename T> struct loaded { uint4 weight[T::DEPTH][T::HALVES], in[T::DEPTH][T::TILES]; };

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
__device__ __forceinline__ void load_pieces(struct loaded<T> &w, const struct stream_rows<T> &r,
                                            size_t at) {
    const uint4 zeros = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int d = 0; d < T::DEPTH; d++) {
        size_t k = at + d * T::PIECE;
#pragma unroll
        for (int i = 0; i < T::HALVES; i++) {
            bool inside = r.has_weight[i] && k < r.left;
            w.weight[d][i] = inside ? load_no_allocate(r.weight[i] + k) : zeros;
        }
#pragma unroll
        for (int i = 0; i < T::TILES; i++) {
            bool inside = r.has_in[i] && k < r.left;
            w.in[d][i] = inside ? __ldg((const uint4 *)(r.in[i] + k)) : zeros;
        }
    }
}

/* sums += the products of what was loaded. */
template <typename T>
__device__ __forceinline__ void multiply_pieces(float (*sums)[4], const struct loaded<T> &w) {
#pragma unroll
    for (int d = 0; d < T::DEPTH; d++) {
        uint4 low = w.weight[d][0], high = make_uint4(0, 0, 0, 0);
        if (T::HALVES == 2) {
            high = w.weight[d][T::HALVES - 1];
        }
        const struct fragment first = {{low.x, high.x, low.y, high.y}};
        const struct fragment second = {{low.z, high.z, low.w, high.w}};
#pragma unroll
        for (int i = 0; i < T::TILES; i++) {
            uint4 x = w.in[d][i];
            mma_m16n8k16(sums[i], first, x.x, x.y, typename T::E());
            mma_m16n8k16(sums[i], second, x.z, x.w, typename T::E());
        }
    }
}

template <typename E>
__device__ __forceinline__ void store_one(const struct gemm16_epilogue &f, float x, size_t at) {
    if (f.out_is_float) {
        ((float *)f.out)[at] = x;
    } else {
        store_rounded((E *)f.out + at, x);
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
    store_one<E>(f, x, at);
}

/* The same of a gate: columns n, which is even, and n + 1. */
template <typename E>
__device__ __forceinline__ void store_gated(const struct gemm16_epilogue &f, float gate,
                                            float value, size_t m, size_t n) {
    float x[2] = {gate, value};
    for (int i = 0; f.bias != NULL && i < 2; i++) {
        x[i] += value_at<E>(f.bias, n + i, f.bias_is_float);
    }
    gate_pairs<1>(x);
    store_one<E>(f, x[0], (m * f.N + n) / 2);
}

/* Adds what the warps have of result i. */
template <typename T>
__device__ __forceinline__ float sum_of(const float (*sums)[T::ROWS * T::PITCH], unsigned i) {
    float x = 0.0f;
#pragma unroll
    for (int part = 0; part < T::WARPS; part++) {
        x += sums[part][i / T::WEIGHTS * T::PITCH + i % T::WEIGHTS];
    }
    return x;
}

/* grid: tiles of weight, tiles of `in` */
template <typename T>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_stream_weights(const struct gemm16_problem p, const struct gemm16_epilogue f) {
    __shared__ float all_sums[T::WARPS][T::ROWS * T::PITCH];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t n0 = (size_t)blockIdx.x * T::WEIGHTS, m0 = (size_t)blockIdx.y * T::ROWS;
    constexpr size_t STEP = T::DEPTH * T::PIECE, ADVANCE = T::WARPS * STEP;
    const struct stream_rows<T> rows = rows_of_thread<T>(p, m0, n0);
    struct loaded<T> w[2];
    float sums[T::TILES][4] = {};
    load_pieces<T>(w[0], rows, warp * STEP);
    for (size_t at = warp * STEP; at < p.K; at += 2 * ADVANCE) {
        load_pieces<T>(w[1], rows, at + ADVANCE);
        multiply_pieces<T>(sums, w[0]);
        load_pieces<T>(w[0], rows, at + 2 * ADVANCE);
        multiply_pieces<T>(sums, w[1]);
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
        size_t m = m0 + i / T::WEIGHTS, n = n0 + i % T::WEIGHTS;
        if (m >= p.M || n >= p.N) {
            continue;
        }
        if (!f.gate) {
            store_result<typename T::E>(f, sum_of<T>(all_sums, i), m, n);
        } else if (n % 2 == 0) {
            store_gated<typename T::E>(f, sum_of<T>(all_sums, i), sum_of<T>(all_sums, i + 1), m, n);
        }
    }
}

template <typename T>
enum status launch(const struct gemm16_problem *p, device_stream stream, struct error *error) {
    dim3 grid((unsigned)((p->N + T::WEIGHTS - 1) / T::WEIGHTS),
              (unsigned)((p->M + T::ROWS - 1) / T::ROWS));
    gemm16_stream_weights<T><<<grid, T::THREADS, 0, stream>>>(*p, gemm16_epilogue_of(p));
    return device_launched("gemm16_stream_weights", error);
}

} // namespace

/* SHAPE(rows of `in`, rows of weight, warps, depth) */
#define SHAPES           \
    SHAPE(8, 8, 24, 1)   \
    SHAPE(8, 16, 16, 1)  \
    SHAPE(16, 8, 24, 1)  \
    SHAPE(16, 16, 16, 1) \
    SHAPE(32, 16, 16, 1)

const struct gemm16_few_shape *gemm16_stream_shapes(int *count) {
#define SHAPE(rows, weights, warps, depth) {rows, weights, (warps) * (depth)*32},
    static const struct gemm16_few_shape shapes[] = {SHAPES};
#undef SHAPE
    *count = (int)(sizeof shapes / sizeof *shapes);
    return shapes;
}

enum status gemm16_stream(const struct gemm16_problem *p, int shape, device_stream stream,
                          struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        typedef enum status launcher(const struct gemm16_problem *, device_stream, struct error *);
#define SHAPE(rows, weights, warps, depth) launch<stream_shape<E, rows, weights, warps, depth>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, stream, error);
    });
}

/**
 * @file v6_registers.cuh
 * @brief v6, aligned rows that fit into registers: eight lanes, a warp or a block a row.
 *
 * All loads of a row are issued before the first is used; both passes run over
 * registers. Four vectors a thread at most: with 32 to 40 registers in all, 1536
 * to 2048 threads of a multiprocessor have loads in flight.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_REGISTERS_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_REGISTERS_CUH_

#include "solutions/05_layernorm_softmax/steps/v6_plan.h"
#include "solutions/05_layernorm_softmax/steps/vectors.cuh"

enum { WARP = 32, MOST_WARPS = 32, VECTORS = 4 };

/* Threads and blocks that a multiprocessor of the GPU compiled for holds at once. */
#if !defined(__CUDA_ARCH__)
enum { THREADS_HELD = 2048, BLOCKS_HELD = 32 };
#elif __CUDA_ARCH__ < 800
enum { THREADS_HELD = 1024, BLOCKS_HELD = 16 };
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870
enum { THREADS_HELD = 1536, BLOCKS_HELD = 16 };
#elif __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
enum { THREADS_HELD = 1536, BLOCKS_HELD = 24 };
#else
enum { THREADS_HELD = 2048, BLOCKS_HELD = 32 };
#endif

/* Blocks side by side that launch bounds may ask for: ptxas refuses more than fit. */
static constexpr int blocks_held(int blocks, int threads) {
    int fit = THREADS_HELD / threads < BLOCKS_HELD ? THREADS_HELD / threads : BLOCKS_HELD;
    return blocks < fit ? blocks : fit;
}

/* Loads the vectors begin, begin + step, ... below count; none in idle threads (count 0). */
template <int OP, typename T, bool ALIGNED, int V>
static __device__ __forceinline__ void load_row(const row_view<T> &view, int begin, int step,
                                                int count, uint4 (&bits)[V]) {
#pragma unroll
    for (int j = 0; j < V; j++) {
        int i = begin + j * step;
        if (i < count) {
            bits[j] = load_vector<OP, T, ALIGNED>(view, i);
        }
    }
    if (OP == ROWS_SOFTMAX && view.mask != NULL) {
#pragma unroll
        for (int j = 0; j < V; j++) {
            int i = begin + j * step;
            if (i < count) {
                bits[j] =
                    apply_mask<T, ALIGNED>(view, i * VECTOR_ELEMENTS<T> - view.shift, bits[j]);
            }
        }
    }
}

template <int OP, typename T, int V>
static __device__ __forceinline__ float row_sum_or_max(int begin, int step, int count,
                                                       const uint4 (&bits)[V]) {
    float sum_or_max = add_or_max_identity<OP>();
#pragma unroll
    for (int j = 0; j < V; j++) {
        if (begin + j * step < count) {
            sum_or_max = vector_add_or_max<OP, T>(bits[j], sum_or_max);
        }
    }
    return sum_or_max;
}

template <int OP, typename T, int V>
static __device__ __forceinline__ float
row_squares_or_exps(const row_view<T> &view, int begin, int step, int count, const uint4 (&bits)[V],
                    float mean_or_max) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < V; j++) {
        int i = begin + j * step;
        if (i < count) {
            sum += vector_squares_or_exps<OP, T, true>(view, i, bits[j], mean_or_max);
        }
    }
    return sum;
}

template <int OP, typename T, bool ALIGNED, int V>
static __device__ __forceinline__ void
normalise_row(const struct rows_problem &p, const row_view<T> &view, int begin, int step, int count,
              const uint4 (&bits)[V], float mean_or_max, float rstd_or_rcp) {
#pragma unroll
    for (int j = 0; j < V; j++) {
        int i = begin + j * step;
        if (i < count) {
            normalise_vector<OP, T, ALIGNED>(p, view, i, bits[j], mean_or_max, rstd_or_rcp);
        }
    }
}

/*
 * The first threads of the grid prefetch the weights, 32 bytes each, so that they are in L2 when
 * the first rows need them. One request a lane: only few threads may do it.
 */
template <int OP>
static __device__ __forceinline__ void prefetch_weights(const struct rows_problem &p,
                                                        size_t bytes) {
    size_t at = 32 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
    if (OP != ROWS_SOFTMAX && at < bytes) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)p.weight + at));
        if (OP == ROWS_LAYERNORM) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)p.bias + at));
        }
    }
}

/* Weights and biases of a row's vectors in registers, packed: loaded with the row. */
template <int OP, int V> struct held_weights {
    uint4 weight[OP != ROWS_SOFTMAX ? V : 1], bias[OP == ROWS_LAYERNORM ? V : 1];
};

template <int OP, int V>
static __device__ __forceinline__ void hold_weights(const struct rows_problem &p, int begin,
                                                    int step, int count,
                                                    held_weights<OP, V> &held) {
#pragma unroll
    for (int j = 0; j < V; j++) {
        int i = begin + j * step;
        if (OP != ROWS_SOFTMAX && i < count) {
            held.weight[j] = __ldg((const uint4 *)p.weight + i);
        }
        if (OP == ROWS_LAYERNORM && i < count) {
            held.bias[j] = __ldg((const uint4 *)p.bias + i);
        }
    }
}

template <int OP, typename T, int V>
static __device__ __forceinline__ void
normalise_held(const row_view<T> &view, int begin, int step, int count, const uint4 (&bits)[V],
               const held_weights<OP, V> &held, float mean_or_max, float rstd_or_rcp) {
#pragma unroll
    for (int j = 0; j < V; j++) {
        int i = begin + j * step;
        float weight[VECTOR_ELEMENTS<T>] = {}, bias[VECTOR_ELEMENTS<T>] = {};
        if (i < count) {
            if constexpr (OP != ROWS_SOFTMAX) {
                unpack(held.weight[j], weight, T());
            }
            if constexpr (OP == ROWS_LAYERNORM) {
                unpack(held.bias[j], bias, T());
            }
            store_vector<T, true>(
                view, i * VECTOR_ELEMENTS<T>,
                normalise_elements<OP, T>(bits[j], mean_or_max, rstd_or_rcp, weight, bias));
        }
    }
}

template <int OP, int V>
static constexpr int LANES_BLOCKS = blocks_held(OP == ROWS_SOFTMAX ? 24
                                                : V < VECTORS      ? 16
                                                                   : 14,
                                                ROWS_LANES_BLOCK);

/*
 * GROUP lanes a row, so that a warp has 32 / GROUP rows; no barrier, no shared memory. Weights are
 * loaded with the row: a warp has few rows one after another, and the latency would show.
 * Launch: blocks of ROWS_LANES_BLOCK threads, in a grid-stride loop. @param count vectors a row
 */
template <int OP, typename T, int GROUP, int V>
static __global__ void __launch_bounds__(ROWS_LANES_BLOCK, LANES_BLOCKS<OP, V>)
    rows_of_lanes(struct rows_problem p, int count) {
    constexpr int ROWS = ROWS_LANES_BLOCK / GROUP;
    const float share = 1.0f / (float)(int)p.C;
    int lane = (int)threadIdx.x % GROUP;
    for (size_t base = (size_t)blockIdx.x * ROWS; base < p.rows; base += (size_t)gridDim.x * ROWS) {
        size_t row = base + threadIdx.x / GROUP;
        int own = row < p.rows ? count : 0; /* lanes without a row take part in the shuffles */
        row_view<T> view = view_row<OP, T, true>(p, row < p.rows ? row : base);
        uint4 bits[V];
        held_weights<OP, V> held;
        load_row<OP, T, true, V>(view, lane, GROUP, own, bits);
        hold_weights<OP, V>(p, lane, GROUP, own, held);
        float sum_or_max = 0.0f;
        if (HAS_MEAN_OR_MAX<OP>) {
            sum_or_max =
                warp_add_or_max<OP, GROUP>(row_sum_or_max<OP, T, V>(lane, GROUP, own, bits));
        }
        float mean_or_max = row_mean_or_max<OP>(sum_or_max, share);
        float sum = row_squares_or_exps<OP, T, V>(view, lane, GROUP, own, bits, mean_or_max);
        float rstd_or_rcp = row_rstd_or_rcp<OP>(warp_sum<GROUP>(sum), share, p.eps);
        normalise_held<OP, T, V>(view, lane, GROUP, own, bits, held, mean_or_max, rstd_or_rcp);
    }
}

/* Over the block, in every thread, with one barrier: each use has its own `exchange`. */
template <int OP, bool SUM>
static __device__ __forceinline__ float block_all(float x, float *exchange) {
    int lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    x = SUM ? warp_sum<WARP>(x) : warp_add_or_max<OP, WARP>(x);
    if (lane == 0) {
        exchange[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    x = lane < warps ? exchange[lane] : SUM ? 0.0f : add_or_max_identity<OP>();
    return SUM ? warp_sum<WARP>(x) : warp_add_or_max<OP, WARP>(x);
}

/*
 * A block a row. Launch: as many blocks as rows, as many threads as the row needs with four vectors
 * each or fewer, rounded up to warps. The bounds hold a thread to 32 registers, with 16-bit types,
 * whose vectors have eight elements, to 40.
 */
template <int OP, typename T>
static __global__ void __launch_bounds__(ROWS_MOST_THREADS<T>,
                                         blocks_held(ROWS_THREADS_EACH<T> / ROWS_MOST_THREADS<T>,
                                                     ROWS_MOST_THREADS<T>))
    rows_of_blocks(struct rows_problem p, int count) {
    __shared__ float exchange[2][MOST_WARPS];
    const float share = 1.0f / (float)(int)p.C;
    int begin = (int)threadIdx.x, step = (int)blockDim.x;
    row_view<T> view = view_row<OP, T, true>(p, blockIdx.x);
    uint4 bits[VECTORS];
    load_row<OP, T, true, VECTORS>(view, begin, step, count, bits);
    prefetch_weights<OP>(p, p.C * sizeof(T));
    float sum_or_max = 0.0f;
    if (HAS_MEAN_OR_MAX<OP>) {
        sum_or_max = block_all<OP, false>(row_sum_or_max<OP, T, VECTORS>(begin, step, count, bits),
                                          exchange[0]);
    }
    float mean_or_max = row_mean_or_max<OP>(sum_or_max, share);
    float sum = row_squares_or_exps<OP, T, VECTORS>(view, begin, step, count, bits, mean_or_max);
    float rstd_or_rcp = row_rstd_or_rcp<OP>(block_all<OP, true>(sum, exchange[1]), share, p.eps);
    normalise_row<OP, T, true, VECTORS>(p, view, begin, step, count, bits, mean_or_max,
                                        rstd_or_rcp);
}

#endif

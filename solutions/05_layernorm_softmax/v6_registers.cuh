/**
 * @file v6_registers.cuh
 * @brief v6, rows that fit into registers: eight lanes, a warp or a block a row.
 *
 * All vectors of a row are asked for before the first is used; both passes run
 * over registers.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_V6_REGISTERS_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_V6_REGISTERS_CUH_

#include "solutions/05_layernorm_softmax/vectors.cuh"

enum { WARP = 32, MOST_WARPS = 32, LANES_BLOCK = 256 };

/* Asks for the vectors begin, begin + step, ... below count; none in idle threads (count 0). */
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
                bits[j] = hide<T, ALIGNED>(view, i * LANES<T> - view.shift, bits[j]);
            }
        }
    }
}

template <int OP, typename T, int V>
static __device__ __forceinline__ float row_first(int begin, int step, int count,
                                                  const uint4 (&bits)[V]) {
    float first = first_of_none<OP>();
#pragma unroll
    for (int j = 0; j < V; j++) {
        if (begin + j * step < count) {
            first = vector_first<OP, T>(bits[j], first);
        }
    }
    return first;
}

template <int OP, typename T, bool ALIGNED, int V>
static __device__ __forceinline__ float row_spread(const row_view<T> &view, int begin, int step,
                                                   int count, const uint4 (&bits)[V],
                                                   float centre) {
    float spread = 0.0f;
#pragma unroll
    for (int j = 0; j < V; j++) {
        int i = begin + j * step;
        if (i < count) {
            spread += vector_spread<OP, T, ALIGNED>(view, i, bits[j], centre);
        }
    }
    return spread;
}

template <int OP, typename T, bool ALIGNED, int V>
static __device__ __forceinline__ void
finish_row(const struct rows_problem &p, const row_view<T> &view, int begin, int step, int count,
           const uint4 (&bits)[V], float centre, float scale) {
#pragma unroll
    for (int j = 0; j < V; j++) {
        int i = begin + j * step;
        if (i < count) {
            finish_vector<OP, T, ALIGNED>(p, view, i, bits[j], centre, scale);
        }
    }
}

/*
 * GROUP lanes a row, so that a warp has 32 / GROUP rows; no barrier, no shared memory.
 * Launch: blocks of LANES_BLOCK threads, on in steps of the grid. @param count vectors a row
 */
template <int OP, typename T, bool ALIGNED, int GROUP, int V>
static __global__ void __launch_bounds__(LANES_BLOCK, 4)
    rows_of_lanes(struct rows_problem p, int count) {
    constexpr int ROWS = LANES_BLOCK / GROUP;
    int lane = (int)threadIdx.x % GROUP;
    for (size_t base = (size_t)blockIdx.x * ROWS; base < p.rows; base += (size_t)gridDim.x * ROWS) {
        size_t row = base + threadIdx.x / GROUP;
        int own = row < p.rows ? count : 0; /* lanes without a row go along, for the shuffles */
        row_view<T> view = view_row<OP, T, ALIGNED>(p, row < p.rows ? row : base);
        uint4 bits[V];
        load_row<OP, T, ALIGNED, V>(view, lane, GROUP, own, bits);
        float first = 0.0f;
        if (HAS_CENTRE<OP>) {
            first = lanes_first<OP, GROUP>(row_first<OP, T, V>(lane, GROUP, own, bits));
        }
        float centre = centre_of<OP>(first, p.C);
        float spread = row_spread<OP, T, ALIGNED, V>(view, lane, GROUP, own, bits, centre);
        float scale = scale_of<OP>(lanes_sum<GROUP>(spread), p);
        finish_row<OP, T, ALIGNED, V>(p, view, lane, GROUP, own, bits, centre, scale);
    }
}

/* Over the block, in every thread, with one barrier: each use has a `meet` of its own. */
template <int OP, bool SUM>
static __device__ __forceinline__ float block_all(float x, float *meet) {
    int lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    x = SUM ? lanes_sum<WARP>(x) : lanes_first<OP, WARP>(x);
    if (lane == 0) {
        meet[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    x = lane < warps ? meet[lane] : SUM ? 0.0f : first_of_none<OP>();
    return SUM ? lanes_sum<WARP>(x) : lanes_first<OP, WARP>(x);
}

/*
 * A block a row. Launch: as many blocks as rows, as many threads as the row needs with V vectors
 * each, rounded up to warps.
 */
template <int OP, typename T, bool ALIGNED, int V>
static __global__ void __launch_bounds__(V == 4 ? 512 : 1024)
    rows_of_blocks(struct rows_problem p, int count) {
    __shared__ float meet[2][MOST_WARPS];
    int begin = (int)threadIdx.x, step = (int)blockDim.x;
    row_view<T> view = view_row<OP, T, ALIGNED>(p, blockIdx.x);
    uint4 bits[V];
    load_row<OP, T, ALIGNED, V>(view, begin, step, count, bits);
    float first = 0.0f;
    if (HAS_CENTRE<OP>) {
        first = block_all<OP, false>(row_first<OP, T, V>(begin, step, count, bits), meet[0]);
    }
    float centre = centre_of<OP>(first, p.C);
    float spread = row_spread<OP, T, ALIGNED, V>(view, begin, step, count, bits, centre);
    float scale = scale_of<OP>(block_all<OP, true>(spread, meet[1]), p);
    finish_row<OP, T, ALIGNED, V>(p, view, begin, step, count, bits, centre, scale);
}

#endif

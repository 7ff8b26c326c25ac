/**
 * @file mma_rows.cuh
 * @brief The product on tensor cores: weights are the 16 x 16 factor, rows of `in` the 16 x 8 one.
 *
 * A block has R tiles of 16 rows of W; its warps take units of columns in turn, each with DEPTH
 * units in flight, and add up their sums in shared memory at the end.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_MMA_ROWS_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_MMA_ROWS_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/memory.cuh"
#include "solutions/13_low_bit/steps/multiply_unit.cuh"

/* What a kernel needs of a call. */
struct mma_call {
    const uint4 *values;
    const uint32_t *scales;
    const __nv_bfloat16 *in;
    void *out;
    unsigned units, groups, M, N, K;
    bool in_is_aligned, out_is_float;
};

template <typename F>
static __device__ __forceinline__ void load_unit(struct unit_registers<F> &u,
                                                 const struct mma_call &c, unsigned unit) {
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < F::R; r++) {
        size_t tile = (size_t)blockIdx.x * F::R + r;
        const uint4 *from = c.values + (tile * c.units + unit) * 64 + lane;
        u.values[r][0] = load_no_allocate(from);
        u.values[r][1] = load_no_allocate(from + 32);
#pragma unroll
        for (int i = 0; i < F::GROUPS; i++) {
            const uint32_t *entry =
                c.scales + (tile * c.groups + unit * F::GROUPS + i) * TILE_ROWS + lane / 4;
            u.scales[r][i][0] = __ldg(entry);
            u.scales[r][i][1] = __ldg(entry + 8);
        }
    }
}

/* Eight columns of a row of `in`; zeros behind its rows and columns. */
static __device__ __forceinline__ uint4 load_in(const struct mma_call &c, unsigned row,
                                                unsigned column) {
    uint4 x = {};
    if (row >= c.M || column >= c.K) {
        return x;
    }
    const __nv_bfloat16 *from = c.in + (size_t)row * c.K + column;
    if (c.in_is_aligned) { /* then K is a multiple of 8, too */
        return __ldg((const uint4 *)from);
    }
    unsigned pairs[4] = {};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        unsigned bits = column + i < c.K ? __bfloat16_as_ushort(from[i]) : 0;
        pairs[i / 2] |= bits << (i % 2 * 16);
    }
    return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

/* Rows of `in` in global memory. */
struct global_input {
    const struct mma_call &c;
    __device__ __forceinline__ uint4 operator()(int n, unsigned column) const {
        unsigned lane = threadIdx.x % 32;
        return load_in(c, n * 8 + lane / 4, column + lane % 4 * 8);
    }
};

/* Adds up the warps' sums, and stores. */
template <typename F>
static __device__ __forceinline__ void store_sums(const float (*sums)[F::NT][4],
                                                  const struct mma_call &c) {
    __shared__ float shared[F::WARPS][F::SUMS * 32];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < F::SUMS; i++) {
        shared[warp][i * 32 + lane] = sums[i / (4 * F::NT)][i / 4 % F::NT][i % 4];
    }
    __syncthreads();
    for (unsigned at = threadIdx.x; at < F::SUMS * 32; at += F::WARPS * 32) {
        float sum = 0.0f;
#pragma unroll
        for (int w = 0; w < F::WARPS; w++) {
            sum += shared[w][at];
        }
        unsigned i = at / 32, l = at % 32, r = i / (4 * F::NT);
        unsigned m = i / 4 % F::NT * 8 + l % 4 * 2 + i % 2;
        unsigned n = (blockIdx.x * F::R + r) * TILE_ROWS + l / 4 + i % 4 / 2 * 8;
        if (m >= c.M || n >= c.N) {
            continue;
        }
        sum = F::GROUP == 0 ? sum * __uint_as_float(__ldg(c.scales + n)) : sum;
        size_t to = (size_t)m * c.N + n;
        if (c.out_is_float) {
            ((float *)c.out)[to] = sum;
        } else {
            ((__nv_bfloat16 *)c.out)[to] = __float2bfloat16_rn(sum);
        }
    }
}

template <typename F>
static __global__ void __launch_bounds__(F::WARPS * 32) mma_rows_kernel(const struct mma_call c) {
    unsigned warp = threadIdx.x / 32;
    float sums[F::R][F::NT][4] = {};
    if constexpr (F::CHAINED) {
        launch_dependent_grids();
    }
    struct unit_registers<F> flight[F::DEPTH];
#pragma unroll
    for (int d = 0; d < F::DEPTH; d++) {
        if (warp + d * F::WARPS < c.units) {
            load_unit<F>(flight[d], c, warp + d * F::WARPS);
        }
    }
    if constexpr (F::CHAINED) { /* weights may be read before the kernel in front is done */
        wait_on_dependent_grids();
    }
    for (unsigned first = warp; first < c.units; first += F::WARPS * F::DEPTH) {
#pragma unroll
        for (int d = 0; d < F::DEPTH; d++) {
            unsigned unit = first + d * F::WARPS, next = unit + F::WARPS * F::DEPTH;
            if (unit < c.units) {
                multiply_unit<F>(sums, flight[d], global_input{c}, unit);
            }
            if (next < c.units) {
                load_unit<F>(flight[d], c, next);
            }
        }
    }
    store_sums<F>(sums, c);
}

#endif

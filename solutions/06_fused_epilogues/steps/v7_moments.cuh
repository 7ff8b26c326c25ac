/**
 * @file v7_moments.cuh
 * @brief v7's LayerNorm: sums in registers, moments of groups of 64 columns, normalised rows.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_V7_MOMENTS_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_V7_MOMENTS_CUH_

#include "solutions/06_fused_epilogues/steps/v7_band_barrier.cuh"

/* The elements that a thread normalises: rows of its slice, two times four columns of each. */
template <class T> struct own_rows {
    enum { COUNT = T::ROWS / T::SLICES };
    float x[COUNT][8];
    size_t first_row, first_column; /* the thread's origin in the matrix */
    int slice;

    __device__ __forceinline__ size_t row(int i) const {
        return first_row + row_of<T>(slice * COUNT + i);
    }
    __device__ __forceinline__ size_t column(int half) const {
        return first_column + 32 * half;
    }
};

/* x = sum + bias + residual; 0 beyond the last column. */
template <class T>
static __device__ __forceinline__ void add_bias_and_residual(own_rows<T> &own, const band_gemm &p,
                                                             const float (&sum)[T::ROWS][8]) {
#pragma unroll
    for (int i = 0; i < T::ROWS * 8; i++) {
        if (i / 8 / own.COUNT == own.slice) {
            own.x[i / 8 % own.COUNT][i % 8] = sum[i / 8][i % 8];
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        size_t column = own.column(half);
        float bias[4], old[4];
        read_four(bias, p.bias + column, true, column < p.N ? p.N - column : 0);
#pragma unroll
        for (int i = 0; i < own.COUNT; i++) {
            size_t row = own.row(i);
            read_four(old, p.residual + row * p.N + column, true,
                      row < p.M && column < p.N ? 4 : 0);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float &x = own.x[i][4 * half + j];
                x = column < p.N ? x + bias[j] + old[j] : 0.0f;
            }
        }
    }
}

/* Sum over the eight lanes of a warp that share a row (find_thread_tile()). */
static __device__ __forceinline__ float sum_of_lanes(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    x += __shfl_xor_sync(0xffffffffu, x, 4);
    return x + __shfl_xor_sync(0xffffffffu, x, 16);
}

/* Columns of a group; the last one may have fewer. */
static __device__ __forceinline__ float columns_of(size_t group, size_t N) {
    return (float)min((size_t)GROUP, N - group * GROUP);
}

/* Stores the moments of this warp's 64 columns. */
template <class T>
static __device__ __forceinline__ void store_moments(const own_rows<T> &own, const band_gemm &p) {
    size_t group = own.first_column / GROUP, groups = (p.N + GROUP - 1) / GROUP;
    if (group >= groups) {
        return; /* the whole warp */
    }
    float count = columns_of(group, p.N);
#pragma unroll
    for (int i = 0; i < own.COUNT; i++) {
        float total = 0.0f, squares = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            total += own.x[i][j];
        }
        total = sum_of_lanes(total);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float x = own.x[i][j] - total / count;
            squares += own.column(j / 4) < p.N ? x * x : 0.0f;
        }
        squares = sum_of_lanes(squares);
        if ((threadIdx.x & 21) == 0 && own.row(i) < p.M) {
            p.moments[own.row(i) * groups + group] = {total, squares};
        }
    }
}

/* Mean and rstd of a row, from the moments of its groups. */
static __device__ __forceinline__ float2 combine_moments(const band_gemm &p, size_t row) {
    size_t groups = (p.N + GROUP - 1) / GROUP;
    float2 of[MOST_GROUPS];
    float total = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < MOST_GROUPS; i++) {
        of[i] = i < groups ? __ldcg(p.moments + row * groups + i) : float2{0, 0};
    }
#pragma unroll
    for (int i = 0; i < MOST_GROUPS; i++) {
        total += of[i].x;
    }
    float mean = total / (float)p.N;
#pragma unroll
    for (int i = 0; i < MOST_GROUPS; i++) {
        if (i < groups) {
            float count = columns_of(i, p.N), apart = of[i].x / count - mean;
            squares += of[i].y + count * apart * apart;
        }
    }
    return {mean, 1.0f / sqrtf(squares / (float)p.N + p.norm.eps)};
}

/* rows: mean and rstd of every row of the tile. */
template <class T>
static __device__ __forceinline__ void store_normalised(const own_rows<T> &own, const band_gemm &p,
                                                        size_t m, const float2 *rows) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        size_t column = own.column(half), left = column < p.N ? p.N - column : 0;
        float w[4], b[4], y[4];
        read_four(w, p.norm.weight + column, true, left);
        read_four(b, p.norm.bias + column, true, left);
#pragma unroll
        for (int i = 0; i < own.COUNT; i++) {
            float2 of = rows[own.row(i) - m];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                y[j] = (own.x[i][4 * half + j] - of.x) * of.y * w[j] + b[j];
            }
            write_four(p.C + own.row(i) * p.N + column, y, true, own.row(i) < p.M ? left : 0);
        }
    }
}

#endif

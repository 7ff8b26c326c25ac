/**
 * @file v10_few_rows.cuh
 * @brief Kernels for a C of few rows: B is read once, coalesced, and hardly
 * reused.
 *
 * Rows beyond the last repeat it instead of being skipped: a branch around each
 * load kept the compiler from starting several at a time (1.5x slower).
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_FEW_ROWS_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_FEW_ROWS_CUH_

#include "common/cuda/warp.cuh"
#include "solutions/04_sgemm/steps/v10_epilogue.cuh"

/* Rows of C of a block; with B transposed its columns and threads; with B plain
   its columns, and its warps: fewer where C has at least FEW_WIDE columns. */
enum {
    FEW_ROWS = 4,
    FEW_COLUMNS_T = 8,
    FEW_THREADS_T = 256,
    FEW_COLUMNS = 32,
    FEW_WARPS = 32,
    FEW_WARPS_WIDE = 8,
    FEW_WIDE = 8192
};

/* One float, or four at once. */
template <bool VECTOR>
static __device__ __forceinline__ void read_few(float (&to)[4], const float *from) {
    if (VECTOR) {
        *(float4 *)to = *(const float4 *)from;
    } else {
        to[0] = *from;
    }
}

/* B transposed: a warp a column, lanes along K. */
template <bool VECTOR, class EPILOGUE>
static __global__ void __launch_bounds__(FEW_THREADS_T)
    few_rows_transposed(typename EPILOGUE::problem p) {
    EPILOGUE::prologue(p);
    const int WIDTH = VECTOR ? 4 : 1;
    size_t columns = (p.N + FEW_COLUMNS_T - 1) / FEW_COLUMNS_T;
    size_t m = blockIdx.x / columns * FEW_ROWS, lane = threadIdx.x % 32;
    size_t n = blockIdx.x % columns * FEW_COLUMNS_T + threadIdx.x / 32;
    if (n >= p.N) {
        return;
    }
    float sum[FEW_ROWS] = {};
#pragma unroll 4
    for (size_t k = lane * WIDTH; k < p.K; k += 32 * WIDTH) {
        float b[4], a[4];
        read_few<VECTOR>(b, p.B + n * p.K + k);
#pragma unroll
        for (int r = 0; r < FEW_ROWS; r++) {
            read_few<VECTOR>(a, p.A + min(m + r, p.M - 1) * p.K + k);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                sum[r] += EPILOGUE::transform_a(p, a[i]) * b[i];
            }
        }
    }
#pragma unroll
    for (int r = 0; r < FEW_ROWS; r++) {
        sum[r] = warp_sum_to_lane_0(sum[r]);
        if (lane == 0) {
            EPILOGUE::store(p, m + r, n, sum[r]);
        }
    }
}

/* B plain: a lane a column; the block's warps take the values of K in turn. */
static __global__ void __launch_bounds__(32 * FEW_WARPS) few_rows_plain(struct sgemm_problem p) {
    __shared__ float sums[FEW_WARPS][FEW_ROWS][FEW_COLUMNS];
    size_t columns = (p.N + FEW_COLUMNS - 1) / FEW_COLUMNS, warps = blockDim.x / 32;
    size_t m = blockIdx.x / columns * FEW_ROWS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t n = blockIdx.x % columns * FEW_COLUMNS + lane, last = min(n, p.N - 1);
    float sum[FEW_ROWS] = {};
#pragma unroll 8
    for (size_t k = warp; k < p.K; k += warps) {
        float b = p.B[k * p.N + last];
#pragma unroll
        for (int r = 0; r < FEW_ROWS; r++) {
            sum[r] += p.A[min(m + r, p.M - 1) * p.K + k] * b;
        }
    }
#pragma unroll
    for (int r = 0; r < FEW_ROWS; r++) {
        sums[warp][r][lane] = sum[r];
    }
    __syncthreads();
    if (warp < FEW_ROWS) {
        float total = 0;
        for (size_t i = 0; i < warps; i++) {
            total += sums[i][warp][lane];
        }
        store(p, m + warp, n, total);
    }
}

#endif

/**
 * @file direct_epilogue.cuh
 * @brief The epilogue of v6 to v9: each thread stores its accumulators of wgmma itself, two at a
 * time.
 *
 * A warp's store reaches eight rows, 16 or 32 bytes of each: sectors of 32 bytes are half used in
 * 16-bit results. v10 stores whole lines.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_DIRECT_EPILOGUE_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_DIRECT_EPILOGUE_CUH_

#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"

/* Results (m, n) and (m, n + 1), the latter if N has that column. */
template <typename E>
static __device__ __forceinline__ void store_pair(const struct gemm16_epilogue &f, float first,
                                                  float second, size_t m, size_t n) {
    size_t at = m * f.N + n;
    float x[2] = {first, second};
    bool both = n + 1 < f.N;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (f.bias != NULL && (i == 0 || both)) {
            x[i] += value_at<E>(f.bias, n + i, f.bias_is_float);
        }
    }
    activate<2>(x, f.activation);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (f.residual != NULL && (i == 0 || both)) {
            x[i] += value_at<E>(f.residual, at + i, f.residual_is_float);
        }
    }
    if (f.vector && f.out_is_float) {
        *(float2 *)((float *)f.out + at) = make_float2(x[0], x[1]);
    } else if (f.vector) {
        *(unsigned *)((E *)f.out + at) = pack(x[0], x[1], E());
    } else {
        for (int i = 0; i < (both ? 2 : 1); i++) {
            if (f.out_is_float) {
                ((float *)f.out)[at + i] = x[i];
            } else {
                store_rounded((E *)f.out + at + i, x[i]);
            }
        }
    }
}

/* 64 rows from m on of a warpgroup's sums, BN columns from n on. */
template <typename E, int BN>
static __device__ __forceinline__ void store_sums(const struct gemm16_epilogue &f,
                                                  const float *sums, size_t m, size_t n) {
    size_t row = m + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int j = 0; j < BN / 4; j++) {
        size_t at = row + j % 2 * 8, column = n + j / 2 * 8 + threadIdx.x % 4 * 2;
        if (at < f.M && column < f.N) {
            store_pair<E>(f, sums[2 * j], sums[2 * j + 1], at, column);
        }
    }
}

#endif

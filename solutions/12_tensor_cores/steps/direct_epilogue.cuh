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
    if (f.gate) {
        gate_pairs<1>(x);
        if (f.out_is_float) {
            ((float *)f.out)[at / 2] = x[0];
        } else {
            store_rounded((E *)f.out + at / 2, x[0]);
        }
        return;
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

/* 64 rows from m on of a warpgroup's sums, BN columns from n on. PLAIN: 16-bit results, nothing to
   add, whole pieces (is_plain()). Else the loop stays, 16 columns at a time, and moves the sums
   down: as straight code, with all activations, the epilogue was 100 KiB of instructions, and a
   block that reads them once was slower than v6's mainloop. */
template <typename E, int BN, bool PLAIN>
static __device__ __forceinline__ void store_sums(const struct gemm16_epilogue &f, float *sums,
                                                  size_t m, size_t n) {
    size_t row = m + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    size_t column = n + threadIdx.x % 4 * 2;
    if constexpr (PLAIN) {
#pragma unroll
        for (int j = 0; j < BN / 4; j++) {
            size_t at = row + j % 2 * 8, to = column + j / 2 * 8;
            if (at < f.M && to < f.N) {
                *(unsigned *)((E *)f.out + at * f.N + to) = pack(sums[2 * j], sums[2 * j + 1], E());
            }
        }
    } else {
#pragma unroll 1
        for (int j = 0; j < BN / 16; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                size_t at = row + i % 2 * 8, to = column + j * 16 + i / 2 * 8;
                if (at < f.M && to < f.N) {
                    store_pair<E>(f, sums[2 * i], sums[2 * i + 1], at, to);
                }
            }
#pragma unroll
            for (int i = 0; i < BN / 2 - 8; i++) {
                sums[i] = sums[i + 8];
            }
        }
    }
}

/* Whether the results are the sums, rounded. */
static inline bool is_plain(const struct gemm16_epilogue &f) {
    return f.vector && !f.out_is_float && f.bias == NULL && f.residual == NULL &&
           f.activation < 0 && !f.gate;
}

#endif

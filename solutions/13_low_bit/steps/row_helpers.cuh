/**
 * @file row_helpers.cuh
 * @brief What the steps share in which a warp computes one row of W.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_ROW_HELPERS_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_ROW_HELPERS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/cuda/warp.cuh"
#include "labs/13_low_bit/low_bit.h"

enum { ROW_WARPS = 4 };

/* A call on a matrix in the plain order, by value. */
struct row_call {
    struct low_bit_matrix matrix;
    size_t groups, row_bytes, M;
    const __nv_bfloat16 *in;
    void *out;
    bool out_is_float;
};

static __device__ __forceinline__ float group_scale(const struct row_call &c, size_t row,
                                                    size_t group) {
    size_t at = row * c.groups + group;
    const void *scales = c.matrix.scales;
    switch (c.matrix.layout.scale_dtype) {
    case NN_F32:
        return ((const float *)scales)[at];
    case NN_F16:
        return __half2float(((const __half *)scales)[at]);
    default:
        return __bfloat162float(((const __nv_bfloat16 *)scales)[at]);
    }
}

static __device__ __forceinline__ int group_zero(const struct row_call &c, size_t row,
                                                 size_t group) {
    return c.matrix.layout.has_zeros ? c.matrix.zeros[row * c.groups + group] : 8;
}

/* Adds up the lanes' sums, and stores the rows of `in` from m on. */
template <int ROWS>
static __device__ __forceinline__ void store_row(const struct row_call &c, const float *sums,
                                                 size_t n, size_t m) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        float sum = warp_sum(sums[i]);
        if (threadIdx.x % 32 != 0 || m + i >= c.M) {
            continue;
        }
        size_t to = (m + i) * c.matrix.layout.rows + n;
        if (c.out_is_float) {
            ((float *)c.out)[to] = sum;
        } else {
            ((__nv_bfloat16 *)c.out)[to] = __float2bfloat16_rn(sum);
        }
    }
}

#endif

/**
 * @file gemm16_split_k.cu
 * @brief Split-K's second kernel: adds the partial sums in a fixed order, then runs the epilogue.
 *
 * The partial sums lie in the workspace, fp32, (splits, split_rows, N). A thread has eight columns
 * of a row and adds the splits from the first to the last, so that results are reproducible to the
 * bit. Bytes: 4 for each split and result, and the result's own.
 */
#include <cuda_runtime.h>

#include "common/cuda/dependent_launch.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

namespace {

constexpr int THREADS = 256;

/* x += the partial sums of one split; 0 for columns beyond N. */
__device__ __forceinline__ void add_partial(float *x, const float *from, size_t columns,
                                            bool vector) {
    if (vector) {
        float4 low = ((const float4 *)from)[0], high = ((const float4 *)from)[1];
        x[0] += low.x, x[1] += low.y, x[2] += low.z, x[3] += low.w;
        x[4] += high.x, x[5] += high.y, x[6] += high.z, x[7] += high.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        x[i] += (size_t)i < columns ? from[i] : 0.0f;
    }
}

template <typename E>
__global__ void __launch_bounds__(THREADS)
    gemm16_reduce_splits(const float *partial, unsigned splits, size_t split_rows,
                         const struct gemm16_epilogue f) {
    dependent_launch_begin();
    size_t pieces = (f.N + 7) / 8, i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    size_t m = i / pieces, n = i % pieces * 8;
    if (m >= f.M) {
        return;
    }
    float x[8] = {};
    for (unsigned split = 0; split < splits; split++) {
        add_partial(x, partial + (split * split_rows + m) * f.N + n, f.N - n, f.N % 8 == 0);
    }
    epilogue_eight<E>(f, x, m, n);
}

} // namespace

enum status gemm16_split_k_reduce(const struct gemm16_problem *p, const float *partial,
                                  size_t splits, size_t split_rows, device_stream stream,
                                  struct error *error) {
    const struct gemm16_epilogue f = gemm16_epilogue_of(p);
    size_t pieces = f.M * ((f.N + 7) / 8);
    unsigned blocks = (unsigned)((pieces + THREADS - 1) / THREADS), count = (unsigned)splits;
    if (p->dtype == NN_F16) {
        launch_dependent<gemm16_reduce_splits<__half>>(blocks, THREADS, 0, stream, partial, count,
                                                       split_rows, f);
    } else {
        launch_dependent<gemm16_reduce_splits<__nv_bfloat16>>(blocks, THREADS, 0, stream, partial,
                                                              count, split_rows, f);
    }
    return device_launched("gemm16_reduce_splits", error);
}

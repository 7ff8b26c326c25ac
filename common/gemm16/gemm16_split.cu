/**
 * @file gemm16_split.cu
 * @brief The end of a product whose K was cut into parts: their sums, added in one order.
 *
 * Each part's sums lie in the workspace, fp32, (parts, M, N). A thread has eight columns of a row
 * and goes through the parts from the first to the last, so that the result has the same bits each
 * time; then comes what follows every sum. Bytes: 4 a part and result, and the result's own.
 */
#include <cuda_runtime.h>

#include "common/gemm16/gemm16_finish.cuh"
#include "common/gemm16/gemm16_parts.h"

namespace {

constexpr int THREADS = 256;

/* x += the sums of one part; columns behind the last one add nothing. */
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
    gemm16_add_parts(const float *partial, unsigned parts, const struct gemm16_finish f) {
    size_t pieces = (f.N + 7) / 8, i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    size_t m = i / pieces, n = i % pieces * 8;
    if (m >= f.M) {
        return;
    }
    float x[8] = {};
    for (unsigned part = 0; part < parts; part++) {
        add_partial(x, partial + (part * f.M + m) * f.N + n, f.N - n, f.N % 8 == 0);
    }
    finish_eight<E>(f, x, m, n);
}

} // namespace

enum status gemm16_split_finish(const struct gemm16_problem *p, const float *partial, size_t parts,
                                device_stream stream, struct error *error) {
    const struct gemm16_finish f = gemm16_finish_of(p);
    size_t pieces = f.M * ((f.N + 7) / 8);
    unsigned blocks = (unsigned)((pieces + THREADS - 1) / THREADS), count = (unsigned)parts;
    if (p->dtype == NN_F16) {
        gemm16_add_parts<__half><<<blocks, THREADS, 0, stream>>>(partial, count, f);
    } else {
        gemm16_add_parts<__nv_bfloat16><<<blocks, THREADS, 0, stream>>>(partial, count, f);
    }
    return device_launched("gemm16_add_parts", error);
}

/**
 * @file gpu_matmul_v3_warp_an_output.cu
 * @brief Step 3: one warp computes one output, in registers, four floats a load.
 *
 * Changes since v2: a warp instead of a block works on an output, eight of them
 * side by side in a block. Lanes exchange sums by shuffles: no shared memory,
 * no barrier. Where every row begins at a multiple of 16 bytes, a lane loads
 * float4.
 *
 * Why: adding up 32 lanes is 5 shuffles instead of 8 barriers, and no warp
 * waits for another. A load of float4 moves four times the bytes of one
 * instruction, so fewer instructions keep as many bytes in flight.
 *
 * Grid: ceil(M*N / 8) blocks of 8 warps. Bytes and FLOPs as v1.
 *
 * Where it loses: with M rows of input, every weight is loaded M times.
 */
#include "solutions/02_gpu_matmul/steps/grid.cuh"
#include "solutions/02_gpu_matmul/steps/ladder.h"

enum { WARPS = 8 };

/* This lane's part of the dot product, one float a load. */
static __device__ __forceinline__ float dot(const float *x, const float *w, size_t K,
                                            unsigned lane) {
    float sum = 0.0f;
    for (size_t k = lane; k < K; k += WARP) {
        sum += x[k] * w[k];
    }
    return sum;
}

/* The same with four floats a load; rows must be 16-byte aligned, K a multiple of 4. */
static __device__ __forceinline__ float dot4(const float *x, const float *w, size_t K,
                                             unsigned lane) {
    const float4 *x4 = (const float4 *)x;
    const float4 *w4 = (const float4 *)w;
    float sum = 0.0f;
#pragma unroll 4
    for (size_t k = lane; k < K / 4; k += WARP) {
        float4 a = x4[k];
        float4 b = w4[k];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    return sum;
}

/* Sum of one value of each lane, in lane 0; all 32 lanes call it. From here on it comes from the
   toolbox: warp_sum_to_lane_0() of common/cuda/warp.cuh. */
static __device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, step);
    }
    return value;
}

template <bool ALIGNED>
static __global__ void warp_an_output(float *out, const float *in, const float *weight, size_t M,
                                      size_t N, size_t K) {
    unsigned lane = threadIdx.x % WARP;
    size_t first = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    for (size_t i = first; i < M * N; i += (size_t)gridDim.x * WARPS) {
        const float *x = in + i / N * K;
        const float *w = weight + i % N * K;
        float sum = warp_sum(ALIGNED ? dot4(x, w, K, lane) : dot(x, w, K, lane));
        if (lane == 0) {
            out[i] = sum;
        }
    }
}

enum status gpu_matmul_v3_warp_an_output(float *out, const float *in, const float *weight, size_t M,
                                         size_t N, size_t K, device_stream stream,
                                         struct error *error) {
    if (M == 0 || N == 0) {
        return STATUS_OK;
    }
    unsigned blocks = grid_for(M * N, WARPS);
    if (rows_aligned(in, K) && rows_aligned(weight, K)) {
        warp_an_output<true><<<blocks, WARPS * WARP, 0, stream>>>(out, in, weight, M, N, K);
    } else {
        warp_an_output<false><<<blocks, WARPS * WARP, 0, stream>>>(out, in, weight, M, N, K);
    }
    return device_launched("warp_an_output", error);
}

/**
 * @file block.cuh
 * @brief Reductions over a block: within each warp by shuffles, then over the warps' results, which
 *        go through shared memory.
 *
 * Every compute capability. All threads of the block execute each of these together (bar.sync);
 * every thread gets the result. Blocks are one-dimensional, whole warps, 1024 threads at most.
 */
#ifndef WARPBOOK_COMMON_CUDA_BLOCK_CUH_
#define WARPBOOK_COMMON_CUDA_BLOCK_CUH_

#include "common/cuda/warp.cuh"

/* Over a block of THREADS threads. */
template <typename OPERATOR, int THREADS>
static __device__ __forceinline__ float block_reduce(float x) {
    __shared__ float of_warp[THREADS / 32];
    unsigned lane = threadIdx.x % 32;
    x = warp_reduce<OPERATOR>(x);
    __syncthreads(); /* every thread has read the results of the call before */
    if (lane == 0) {
        of_warp[threadIdx.x / 32] = x;
    }
    __syncthreads();
    return warp_reduce<OPERATOR>(lane < THREADS / 32 ? of_warp[lane] : OPERATOR::identity());
}

template <int THREADS> static __device__ __forceinline__ float block_sum(float x) {
    return block_reduce<plus, THREADS>(x);
}

template <int THREADS> static __device__ __forceinline__ float block_max(float x) {
    return block_reduce<maximum, THREADS>(x);
}

/* The same sum for any number of threads. @param of_warp shared memory, a float for each warp */
static __device__ __forceinline__ float block_sum(float x, float *of_warp) {
    x = warp_sum(x);
    __syncthreads(); /* every thread has read the results of the call before */
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = x;
    }
    __syncthreads();
    return warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : 0.0f);
}

#endif

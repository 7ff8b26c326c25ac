/**
 * @file block.cuh
 * @brief Sums and maxima over the threads of a block; given.
 */
#ifndef WARPBOOK_LABS_03_RESIDENT_WEIGHTS_GIVEN_BLOCK_CUH_
#define WARPBOOK_LABS_03_RESIDENT_WEIGHTS_GIVEN_BLOCK_CUH_

enum { BLOCK_THREADS = 256, BLOCK_WARPS = BLOCK_THREADS / 32 };

struct add {
    static __device__ __forceinline__ float neutral() {
        return 0.0f;
    }
    static __device__ __forceinline__ float apply(float a, float b) {
        return a + b;
    }
};

struct larger {
    static __device__ __forceinline__ float neutral() {
        return -INFINITY;
    }
    static __device__ __forceinline__ float apply(float a, float b) {
        return fmaxf(a, b);
    }
};

/* Combines one value of each of LANES neighbouring lanes; each of them gets the result. */
template <typename OPERATION, int LANES = 32>
static __device__ __forceinline__ float warp_reduce(float value) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) {
        value = OPERATION::apply(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    return value;
}

/* The same for a block of BLOCK_THREADS threads, all of which must call it. */
template <typename OPERATION> static __device__ __forceinline__ float block_reduce(float value) {
    __shared__ float parts[BLOCK_WARPS];
    unsigned lane = threadIdx.x % 32;
    value = warp_reduce<OPERATION>(value);
    __syncthreads(); /* the parts of the call before have been read */
    if (lane == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    return warp_reduce<OPERATION>(lane < BLOCK_WARPS ? parts[lane] : OPERATION::neutral());
}

#endif

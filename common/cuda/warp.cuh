/**
 * @file warp.cuh
 * @brief Reductions within a warp, by shuffles (shfl.sync).
 *
 * Every compute capability. All 32 lanes of a warp execute each of these together, also where
 * groups of fewer lanes are reduced. The order of additions is fixed, so results are reproducible.
 */
#ifndef WARPBOOK_COMMON_CUDA_WARP_CUH_
#define WARPBOOK_COMMON_CUDA_WARP_CUH_

#include <math.h>

/* Operators of a reduction, as functors: apply(), and the identity that changes nothing. */
struct plus {
    static __device__ __forceinline__ float identity() {
        return 0.0f;
    }
    static __device__ __forceinline__ float apply(float a, float b) {
        return a + b;
    }
};

struct maximum {
    static __device__ __forceinline__ float identity() {
        return -INFINITY;
    }
    static __device__ __forceinline__ float apply(float a, float b) {
        return fmaxf(a, b);
    }
    static __device__ __forceinline__ unsigned long long apply(unsigned long long a,
                                                               unsigned long long b) {
        return a > b ? a : b;
    }
};

/* Butterfly (shfl.xor) over groups of LANES neighbouring lanes, a power of 2: every lane gets its
   group's result. */
template <typename OPERATOR, int LANES = 32, typename T>
static __device__ __forceinline__ T warp_reduce(T x) {
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        x = OPERATOR::apply(x, __shfl_xor_sync(0xffffffffu, x, offset));
    }
    return x;
}

template <int LANES = 32> static __device__ __forceinline__ float warp_sum(float x) {
    return warp_reduce<plus, LANES>(x);
}

template <int LANES = 32, typename T> static __device__ __forceinline__ T warp_max(T x) {
    return warp_reduce<maximum, LANES>(x);
}

/* The sum over 32 lanes, in lane 0 alone (shfl.down). */
static __device__ __forceinline__ float warp_sum_to_lane_0(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_down_sync(0xffffffffu, x, offset);
    }
    return x;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* True in one lane of the warp (elect.sync): unlike `lane == 0` it tells the compiler that what
   follows has one thread, and operands of the TMA stay in uniform registers. */
static __device__ __forceinline__ bool elect_lane() {
    unsigned elected;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(elected));
    return elected != 0;
}
#endif

/* Over a quad: the four neighbouring lanes that share a row of an mma or wgmma accumulator. */
static __device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

static __device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

#endif

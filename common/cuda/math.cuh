/**
 * @file math.cuh
 * @brief Functions of the special function unit that CUDA has no intrinsic for.
 *
 * Every compute capability; each thread for itself.
 */
#ifndef WARPBOOK_COMMON_CUDA_MATH_CUH_
#define WARPBOOK_COMMON_CUDA_MATH_CUH_

/* 2^x (ex2.approx.ftz), to 2 units in the last place; 0 below 2^-126 and for -infinity. */
static __device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif

/**
 * @file parts.cuh
 * @brief Device functions that several steps share: the epilogue, and asynchronous copies.
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_PARTS_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_PARTS_CUH_

#include <stddef.h>
#include <stdint.h>

#include "labs/04_sgemm/sgemm.h"

/* What comes first in a kernel, in every thread: nothing. */
static __device__ __forceinline__ void begin(const struct sgemm_problem &p) {
    (void)p;
}

/* What becomes of an element of A on its way in: nothing. An element that is not there is 0, and
   must stay so. */
static __device__ __forceinline__ float enter(const struct sgemm_problem &p, float a) {
    (void)p;
    return a;
}

/* What comes last in a block, in every thread, when its tile from row m on is stored: nothing. */
template <class T>
static __device__ __forceinline__ void finish(const struct sgemm_problem &p, size_t m) {
    (void)p;
    (void)m;
}

/* C[m, n] = alpha * sum + beta * C[m, n], where C has such an element. */
static __device__ __forceinline__ void store(const struct sgemm_problem &p, size_t m, size_t n,
                                             float sum) {
    if (m < p.M && n < p.N) {
        float *c = p.C + m * p.N + n;
        *c = p.beta == 0 ? p.alpha * sum : p.alpha * sum + p.beta * *c;
    }
}

/* The same for C[m, n .. n + 3], which must exist and be 16-byte aligned. */
static __device__ __forceinline__ void store4(const struct sgemm_problem &p, size_t m, size_t n,
                                              const float *sum) {
    float4 *c = (float4 *)(p.C + m * p.N + n);
    float4 old = {0, 0, 0, 0};
    if (p.beta != 0) {
        old = *c;
        old = {p.beta * old.x, p.beta * old.y, p.beta * old.z, p.beta * old.w};
    }
    *c = {p.alpha * sum[0] + old.x, p.alpha * sum[1] + old.y, p.alpha * sum[2] + old.z,
          p.alpha * sum[3] + old.w};
}

/* Whether rows of so many elements, the first one here, all begin 16-byte aligned. */
static __host__ __device__ __forceinline__ bool aligned16(const float *first, size_t columns) {
    return ((uintptr_t)first % 16 | columns % 4) == 0;
}

/* Starts a copy of 4 bytes from global to shared memory, or of zeros. Before compute capability
   8.0: copies. */
static __device__ __forceinline__ void copy4(float *to, const float *from, bool inside) {
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
#else
    *to = inside ? *from : 0;
#endif
}

/* Starts a copy of 16 bytes, both sides 16-byte aligned. */
static __device__ __forceinline__ void copy16(float *to, const float *from, bool inside) {
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
#else
    float4 zero = {0, 0, 0, 0};
    *(float4 *)to = inside ? *(const float4 *)from : zero;
#endif
}

/* Closes a group of this thread's copies. */
static __device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's groups but for the PENDING youngest. */
template <int PENDING> static __device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

#endif

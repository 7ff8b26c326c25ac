/**
 * @file store.cuh
 * @brief The epilogue that the steps share: C = alpha * AB + beta * C.
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_STORE_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_STORE_CUH_

#include <stddef.h>
#include <stdint.h>

#include "labs/04_sgemm/sgemm.h"

/* C[m, n] = alpha * sum + beta * C[m, n], if C has that element. */
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

/* Whether all rows of a matrix start 16-byte aligned. @param first its first
 * element */
static __host__ __device__ __forceinline__ bool aligned16(const float *first, size_t columns) {
    return ((uintptr_t)first % 16 | columns % 4) == 0;
}

#endif

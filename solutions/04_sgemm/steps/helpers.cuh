/**
 * @file helpers.cuh
 * @brief What the steps share: reading an element, the epilogue C = alpha * AB + beta * C, and the
 * launch of a block a tile.
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_HELPERS_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_HELPERS_CUH_

#include <stddef.h>
#include <stdint.h>

#include "solutions/04_sgemm/steps/ladder.h"

/* An element of a row-major matrix, 0 outside. */
static __device__ __forceinline__ float element(const float *matrix, size_t rows, size_t columns,
                                                size_t row, size_t column) {
    return row < rows && column < columns ? matrix[row * columns + column] : 0;
}

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

/* Launches a block of `threads` for each tile of C, rows x columns. */
template <auto KERNEL>
static inline enum status launch_tiles(const char *name, const struct sgemm_problem *problem,
                                       size_t rows, size_t columns, dim3 threads,
                                       device_stream stream, struct error *error) {
    unsigned blocks;
    TRY(sgemm_count_blocks(problem, rows, columns, &blocks, error));
    if (blocks == 0) {
        return STATUS_OK;
    }
    KERNEL<<<blocks, threads, 0, stream>>>(*problem);
    return sgemm_launched(name, error);
}

#endif

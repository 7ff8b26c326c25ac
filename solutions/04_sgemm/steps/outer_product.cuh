/**
 * @file outer_product.cuh
 * @brief Shared by v06 to v08: 256 threads with 8 x 8 results each, two times four rows and two
 * times four columns, HALF apart.
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_OUTER_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_OUTER_PRODUCT_CUH_

#include "solutions/04_sgemm/steps/helpers.cuh"

enum { BM = 128, BN = 128, BK = 8, SIDE = 8, HALF = 64, THREADS = 256 };

static __device__ __forceinline__ void read8(float *to, const float *row) {
    *(float4 *)to = *(const float4 *)row;
    *(float4 *)(to + 4) = *(const float4 *)(row + HALF);
}

/* sum += the outer products of a tile, (BK, BM) and (BK, BN), rows PITCH floats apart. */
template <int PITCH>
static __device__ __forceinline__ void multiply(float (*sum)[SIDE], const float (*a)[PITCH],
                                                const float (*b)[PITCH], unsigned row,
                                                unsigned column) {
    float x[SIDE], y[SIDE];
#pragma unroll
    for (int i = 0; i < BK; i++) {
        read8(x, &a[i][row]);
        read8(y, &b[i][column]);
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
#pragma unroll
            for (int c = 0; c < SIDE; c++) {
                sum[r][c] += x[r] * y[c];
            }
        }
    }
}

static __device__ __forceinline__ void store_tile(const struct sgemm_problem &p, size_t m, size_t n,
                                                  const float (*sum)[SIDE]) {
    bool vector = aligned16(p.C, p.N);
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
#pragma unroll
        for (int c = 0; c < SIDE; c += 4) {
            size_t row = m + r / 4 * HALF + r % 4, column = n + c / 4 * HALF;
            if (vector && row < p.M && column < p.N) {
                store4(p, row, column, &sum[r][c]);
            } else if (!vector) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    store(p, row, column + i, sum[r][c + i]);
                }
            }
        }
    }
}

#endif

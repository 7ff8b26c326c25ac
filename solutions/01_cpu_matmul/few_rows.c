/**
 * @file few_rows.c
 * @brief The other half of v4: a few rows of input, above all the one row of decoding.
 *
 * With M = 1 each weight is used once, so packing it would cost more than it
 * saves, and no tile can help: the product is as fast as the weights arrive.
 * What is left to do is to not be slower than that. Four rows of weights are
 * taken at a time, each with vector sums of its own, so that enough additions
 * are under way, and each vector of inputs is loaded once for all four. With
 * more rows of input the same weights serve four of them.
 *
 * Bytes 4*(N*K + M*K + M*N), FLOPs 2*M*N*K: at M = 1 half a FLOP a byte.
 */
#include <stdint.h>

#include "common/base/cpu.h"
#include "solutions/01_cpu_matmul/ladder.h"

enum {
    LANES = 16,
    SIDE = 4,    /* rows of input and of weight that are multiplied together */
    AHEAD = 2048 /* floats: the distance at which prefetching helped most, by measurement */
};

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), may_alias));
typedef float loose_vector
    __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* Sum of the lanes: halves, then halves of halves, so that no chain is long. */
CPU_INLINE float sum_lanes(const vector *v) {
    float half[LANES / 2];
    for (size_t i = 0; i < LANES / 2; i++) {
        half[i] = (*v)[i] + (*v)[i + LANES / 2];
    }
    return ((half[0] + half[4]) + (half[1] + half[5])) +
           ((half[2] + half[6]) + (half[3] + half[7]));
}

/* out (rows, columns) = in (rows, K) * weight (columns, K)^T; rows and columns are constants. */
CPU_INLINE void dots(float *out, size_t stride, const float *in, const float *weight, size_t K,
                     size_t rows, size_t columns) {
    vector sum[SIDE][SIDE] = {0};
    size_t k = 0;
    for (; K - k >= LANES; k += LANES) {
#pragma GCC unroll 4
        for (size_t c = 0; c < columns; c++) {
            /* A prefetch of an address that does not exist does nothing. */
            __builtin_prefetch(
                (const void *)((uintptr_t)(weight + c * K + k) + AHEAD * sizeof(float)));
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
            for (size_t c = 0; c < columns; c++) {
                sum[r][c] += *(const loose_vector *)(in + r * K + k) *
                             *(const loose_vector *)(weight + c * K + k);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (size_t c = 0; c < columns; c++) {
            float rest = 0.0f;
            for (size_t i = k; i < K; i++) {
                rest += in[r * K + i] * weight[c * K + i];
            }
            out[r * stride + c] = sum_lanes(&sum[r][c]) + rest;
        }
    }
}

CPU_CLONES
void matmul_few_rows_part(float *out, size_t stride, const float *in, const float *weight, size_t M,
                          size_t N, size_t K) {
    size_t n = 0;
    for (; N - n >= SIDE; n += SIDE) {
        size_t m = 0;
        for (; M - m >= SIDE; m += SIDE) {
            dots(out + m * stride + n, stride, in + m * K, weight + n * K, K, SIDE, SIDE);
        }
        for (; m < M; m++) {
            dots(out + m * stride + n, stride, in + m * K, weight + n * K, K, 1, SIDE);
        }
    }
    for (; n < N; n++) {
        for (size_t m = 0; m < M; m++) {
            dots(out + m * stride + n, stride, in + m * K, weight + n * K, K, 1, 1);
        }
    }
}

/**
 * @file few_rows.c
 * @brief v4's code path for a few rows of input, above all for the one row of decoding.
 *
 * With M = 1 each weight is used once, so packing it would cost more than it
 * saves, and a tile saves no loads: memory bandwidth limits the product, and the
 * code must only keep up with it. It multiplies four rows of weights at a time,
 * each with vector sums of its own, so that enough additions are in flight, and
 * loads each vector of inputs once for all four. With more rows of input, a
 * loaded weight serves four of them.
 *
 * Bytes 4*(N*K + M*K + M*N), FLOPs 2*M*N*K: at M = 1 half a FLOP a byte.
 *
 * Measured on AMD EPYC (family 26), one core: 1x768x768, from L2, 0.020 to 0.028 ms, 85 to 120
 * GB/s; 1x32000x288, mostly from memory, 0.90 ms, 41 GB/s, where a plain read reaches 40 to 45.
 * OpenBLAS 0.3.21, sgemv: 0.025 and 1.09 ms.
 */
#include <stdint.h>

#include "common/base/cpu.h"
#include "solutions/01_cpu_matmul/steps/ladder.h"

enum {
    SIDE = 4,    /* rows of weight that are multiplied together, and rows of input when wide */
    AHEAD = 2048 /* floats: the distance at which prefetching helped most, by measurement */
};

/* Prefetches the weights AHEAD of this one; an invalid address is ignored. */
CPU_INLINE void prefetch(const float *weight) {
    __builtin_prefetch((const void *)((uintptr_t)weight + AHEAD * sizeof(float)));
}

/* A tree: adds the upper half to the lower one until one lane is left, so chains stay short. */
CPU_INLINE float sum_lanes(float *lanes, size_t count) {
#pragma GCC unroll 4
    for (size_t half = count / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
        for (size_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

#define DOTS wide_4x4
#define DOTS_LANES 16
#define DOTS_ROWS 4
#define DOTS_COLUMNS 4
#include "solutions/01_cpu_matmul/steps/dots.h"

#define DOTS wide_1x4
#define DOTS_LANES 16
#define DOTS_ROWS 1
#define DOTS_COLUMNS 4
#include "solutions/01_cpu_matmul/steps/dots.h"

#define DOTS narrow_2x4
#define DOTS_LANES 8
#define DOTS_ROWS 2
#define DOTS_COLUMNS 4
#include "solutions/01_cpu_matmul/steps/dots.h"

#define DOTS narrow_1x4
#define DOTS_LANES 8
#define DOTS_ROWS 1
#define DOTS_COLUMNS 4
#include "solutions/01_cpu_matmul/steps/dots.h"

#define DOTS short_1x4
#define DOTS_LANES 4
#define DOTS_ROWS 1
#define DOTS_COLUMNS 4
#include "solutions/01_cpu_matmul/steps/dots.h"

#define DOTS dot
#define DOTS_LANES 4
#define DOTS_ROWS 1
#define DOTS_COLUMNS 1
#include "solutions/01_cpu_matmul/steps/dots.h"

/* out (M, SIDE) = in (M, K) * weight (SIDE, K)^T. Four rows of sums fill 16 of the 32 registers of
   16 floats; two rows fill 8 of the 16 registers of 8 floats. */
CPU_INLINE void four_columns(float *out, size_t stride, const float *in, const float *weight,
                             size_t M, size_t K, size_t lanes) {
    size_t m = 0;
    for (; lanes == 16 && M - m >= 4; m += 4) {
        wide_4x4(out + m * stride, stride, in + m * K, weight, K);
    }
    for (; lanes == 8 && M - m >= 2; m += 2) {
        narrow_2x4(out + m * stride, stride, in + m * K, weight, K);
    }
    for (; m < M; m++) {
        if (lanes == 16) {
            wide_1x4(out + m * stride, stride, in + m * K, weight, K);
        } else if (lanes == 8) {
            narrow_1x4(out + m * stride, stride, in + m * K, weight, K);
        } else {
            short_1x4(out + m * stride, stride, in + m * K, weight, K);
        }
    }
}

CPU_CLONES
void matmul_few_rows_part(float *out, size_t stride, const float *in, const float *weight, size_t M,
                          size_t N, size_t K) {
    size_t lanes = cpu_vector_floats();
    size_t n = 0;
    for (; N - n >= SIDE; n += SIDE) {
        four_columns(out + n, stride, in, weight + n * K, M, K, lanes);
    }
    for (; n < N; n++) {
        for (size_t m = 0; m < M; m++) {
            dot(out + m * stride + n, stride, in + m * K, weight + n * K, K);
        }
    }
}

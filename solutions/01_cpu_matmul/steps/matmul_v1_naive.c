/**
 * @file matmul_v1_naive.c
 * @brief out[m, n] = sum over k of in[m, k] * weight[n, k], as the formula reads.
 *
 * FLOPs 2*M*N*K. Every addition waits for the one before it: without
 * permission to reorder sums, the compiler may neither vectorise nor overlap
 * them, and the loop runs at one product per latency of an addition.
 *
 * Measured on AMD EPYC (family 26), one core: 512x512x512 56.7 ms, 4.7 GFLOP/s, 1.8% of the
 * core's peak. 1x32000x288 3.55 ms, 10.4 GB/s.
 */
#include "solutions/01_cpu_matmul/steps/ladder.h"

enum status matmul_v1_naive(float *out, const float *in, const float *weight, size_t M, size_t N,
                            size_t K, int threads) {
    (void)threads;
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (size_t k = 0; k < K; k++) {
                sum += in[m * K + k] * weight[n * K + k];
            }
            out[m * N + n] = sum;
        }
    }
    return STATUS_OK;
}

#include "grader/01_cpu_matmul/baseline.h"

enum status cpu_matmul_baseline(float *out, const float *in, const float *weight, size_t M,
                                size_t N, size_t K, int threads) {
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

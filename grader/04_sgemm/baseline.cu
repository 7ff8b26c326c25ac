/**
 * @file baseline.cu
 * @brief What lab 04's starter does: the baseline of its speedups.
 *
 * Kept here, so that the baseline stays what it is when the lab's file changes.
 */
#include "grader/04_sgemm/baseline.h"

enum { BLOCK = 16, MOST_BLOCKS_N = 65535 };

static __global__ void sgemm_baseline_kernel(struct sgemm_problem p) {
    size_t m = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    if (m >= p.M) {
        return;
    }
    for (size_t n = (size_t)blockIdx.y * BLOCK + threadIdx.y; n < p.N;
         n += (size_t)gridDim.y * BLOCK) {
        float sum = 0.0f;
        for (size_t k = 0; k < p.K; k++) {
            float b = p.form == SGEMM_B_PLAIN ? p.B[k * p.N + n] : p.B[n * p.K + k];
            sum += p.A[m * p.K + k] * b;
        }
        float *c = p.C + m * p.N + n;
        *c = p.beta == 0.0f ? p.alpha * sum : p.alpha * sum + p.beta * *c;
    }
}

enum status sgemm_baseline(const struct sgemm_problem *problem, void *workspace,
                           device_stream stream, struct error *error) {
    (void)workspace;
    if (problem->M == 0 || problem->N == 0) {
        return STATUS_OK;
    }
    size_t blocks_n = (problem->N + BLOCK - 1) / BLOCK;
    dim3 grid((unsigned)((problem->M + BLOCK - 1) / BLOCK),
              (unsigned)(blocks_n < MOST_BLOCKS_N ? blocks_n : MOST_BLOCKS_N));
    sgemm_baseline_kernel<<<grid, dim3(BLOCK, BLOCK), 0, stream>>>(*problem);
    return device_launched("the baseline's kernel", error);
}

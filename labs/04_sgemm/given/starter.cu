/**
 * @file sgemm.cu
 * @brief Lab 04: YOUR FILE. Make sgemm() fast and keep it right.
 *
 * What it must do is in sgemm.h, how to go about it in README.md. Everything in
 * this file may change; the two functions of sgemm.h must stay. Check and
 * measure with
 *
 *     bazel test //grader:04_sgemm_parity //grader:04_sgemm_speedup
 *     bazel run //labs/04_sgemm:bench
 */
#include "labs/04_sgemm/sgemm.h"

/* Threads of a block along M and along N; blocks of a grid along N at most. */
enum { BLOCK_M = 16, BLOCK_N = 16, MOST_BLOCKS_N = 65535 };

/*
 * Step 1: a thread computes one element of C. Right, and slow.
 *
 * Mapping: x goes down the rows, y along the columns. A grid has at most 65535
 * blocks in y, so a thread whose column is not the last of its kind goes on to
 * the next one.
 * Bytes: each product reads one element of A and one of B.
 */
static __global__ void sgemm_v1_naive_kernel(struct sgemm_problem p) {
    size_t m = (size_t)blockIdx.x * BLOCK_M + threadIdx.x;
    if (m >= p.M) {
        return;
    }
    for (size_t n = (size_t)blockIdx.y * BLOCK_N + threadIdx.y; n < p.N;
         n += (size_t)gridDim.y * BLOCK_N) {
        float sum = 0.0f;
        for (size_t k = 0; k < p.K; k++) {
            float b = p.form == SGEMM_B_PLAIN ? p.B[k * p.N + n] : p.B[n * p.K + k];
            sum += p.A[m * p.K + k] * b;
        }
        float *c = p.C + m * p.N + n;
        /* With beta = 0, C may hold anything, and NaN * 0 is NaN: do not read it. */
        *c = p.beta == 0.0f ? p.alpha * sum : p.alpha * sum + p.beta * *c;
    }
}

static enum status sgemm_v1_naive(const struct sgemm_problem *problem, void *workspace,
                                  device_stream stream, struct error *error) {
    (void)workspace;
    size_t blocks_m = (problem->M + BLOCK_M - 1) / BLOCK_M;
    size_t blocks_n = (problem->N + BLOCK_N - 1) / BLOCK_N;
    dim3 grid((unsigned)blocks_m, (unsigned)(blocks_n < MOST_BLOCKS_N ? blocks_n : MOST_BLOCKS_N));
    sgemm_v1_naive_kernel<<<grid, dim3(BLOCK_M, BLOCK_N), 0, stream>>>(*problem);
    return device_launched("sgemm_v1_naive", error);
}

/*
 * The steps the bench compares, in the order you wrote them; the last is your best.
 * Keep a step when you write the next one, and the bench shows what each one gained.
 */
const struct sgemm_step *sgemm_ladder(size_t *count) {
    static const struct sgemm_step steps[] = {
        {"v1_naive", sgemm_v1_naive},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

/* What the models and the grader call: checks, then the last step of the table. */
enum status sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                  struct error *error) {
    size_t M = problem->M, N = problem->N, K = problem->K;
    if (M > SGEMM_MAX_SIZE || N > SGEMM_MAX_SIZE || K > SGEMM_MAX_SIZE) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "sgemm: M = %zu, N = %zu, K = %zu: a size is at most %zu", M, N, K,
                         SGEMM_MAX_SIZE);
    }
    if (M == 0 || N == 0) {
        return STATUS_OK; /* a grid without blocks cannot be launched */
    }
    size_t count;
    const struct sgemm_step *steps = sgemm_ladder(&count);
    return steps[count - 1].run(problem, workspace, stream, error);
}

/**
 * @file sgemm_v01_naive.cu
 * @brief The formula: one thread an element of C, everything from global
 * memory.
 *
 * Neighbouring threads of a warp have neighbouring rows of C, as a C programmer
 * may well number them: row first. A warp's 32 loads of A, and its stores of C,
 * are then a whole row apart, 32 sectors for 128 useful bytes.
 *
 * Launch: blocks of 32 x 32 threads, each a 32 x 32 tile of C, tiles counted in
 * blockIdx.x, row after row of tiles (a y of at most 65535 would be too few).
 * Bytes: 8 K per element of C asked of the caches. FLOPs: 2 M N K.
 *
 * Measured on an H200 at 1.98 GHz, 4096 x 4096 x 4096: B plain 275 ms, 0.5
 * TFLOP/s; B transposed 276 ms, 0.5 TFLOP/s. cuBLAS 2.69 and 2.74 ms.
 */
#include "solutions/04_sgemm/steps/helpers.cuh"

enum { TILE = 32 };

static __global__ void __launch_bounds__(TILE *TILE) naive(struct sgemm_problem p) {
    unsigned columns = (unsigned)((p.N + TILE - 1) / TILE);
    size_t m = (size_t)(blockIdx.x / columns) * TILE + threadIdx.x;
    size_t n = (size_t)(blockIdx.x % columns) * TILE + threadIdx.y;
    if (m >= p.M || n >= p.N) {
        return;
    }
    bool plain = p.form == SGEMM_B_PLAIN;
    size_t step_k = plain ? p.N : 1, step_n = plain ? 1 : p.K;
    float sum = 0;
    for (size_t k = 0; k < p.K; k++) {
        sum += p.A[m * p.K + k] * p.B[k * step_k + n * step_n];
    }
    store(p, m, n, sum);
}

enum status sgemm_v01_naive(const struct sgemm_problem *problem, void *workspace,
                            device_stream stream, struct error *error) {
    (void)workspace;
    return launch_tiles<naive>("sgemm_v01_naive", problem, TILE, TILE, dim3(TILE, TILE), stream,
                               error);
}

/**
 * @file sgemm_v02_coalesced.cu
 * @brief Neighbouring threads have neighbouring columns of C.
 *
 * Changes since v01: threadIdx.x counts columns instead of rows.
 *
 * Why: relieves the path to memory. With B plain, a warp's loads of B and its
 * stores of C are 128 contiguous bytes, and its load of A is one address for
 * all. With B transposed it does not help: columns of C are then rows of B, a
 * whole row apart. That takes shared memory (v03).
 *
 * Launch: as v01. Bytes: 8 K per element of C asked of the caches, in 5 sectors
 * a warp and k instead of 33. FLOPs: 2 M N K.
 *
 * Measured on an H200 at 1.98 GHz, 4096 x 4096 x 4096: B plain 49.5 ms, 2.78
 * TFLOP/s; B transposed 276 ms, 0.5 TFLOP/s. 5.6x v01 with B plain, nothing
 * with B transposed.
 */
#include "solutions/04_sgemm/steps/helpers.cuh"

enum { TILE = 32 };

static __global__ void __launch_bounds__(TILE *TILE) coalesced(struct sgemm_problem p) {
    unsigned columns = (unsigned)((p.N + TILE - 1) / TILE);
    size_t m = (size_t)(blockIdx.x / columns) * TILE + threadIdx.y;
    size_t n = (size_t)(blockIdx.x % columns) * TILE + threadIdx.x;
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

enum status sgemm_v02_coalesced(const struct sgemm_problem *problem, void *workspace,
                                device_stream stream, struct error *error) {
    (void)workspace;
    return launch_tiles<coalesced>("sgemm_v02_coalesced", problem, TILE, TILE, dim3(TILE, TILE),
                                   stream, error);
}

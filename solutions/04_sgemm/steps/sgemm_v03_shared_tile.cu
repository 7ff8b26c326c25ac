/**
 * @file sgemm_v03_shared_tile.cu
 * @brief A block loads tiles of A and B to shared memory once, and all its
 * threads use them.
 *
 * Changes since v02: K is cut into tiles of 32; for each, the block loads 32 x
 * 32 of A and of B, waits, multiplies from shared memory, waits.
 *
 * Why: relieves the caches: each float is asked of them once a block instead of
 * 32 times. It also repairs the transposed form: the tile is loaded along B's
 * rows and transposed when it is stored to shared memory. There a row is 33
 * floats long, or the 32 threads that write a column would all be in one bank.
 *
 * Launch: 32 x 32 threads a block, one element each. Bytes: 2 x 4 KiB a block
 * and 32 k, that is K / 4 per element of C. FLOPs: 2 M N K; two loads from
 * shared memory for one multiply-add are what limits it now.
 *
 * Measured on an H200 at 1.98 GHz, 4096 x 4096 x 4096: B plain 18.4 ms, 7.48
 * TFLOP/s; B transposed 18.3 ms, 7.53 TFLOP/s. 2.7x v02 with B plain, 15x with
 * B transposed.
 */
#include "solutions/04_sgemm/steps/helpers.cuh"

enum { TILE = 32 };

static __global__ void __launch_bounds__(TILE *TILE) shared_tile(struct sgemm_problem p) {
    __shared__ float a[TILE][TILE], b[TILE][TILE + 1]; /* (m, k) and (k, n) */
    unsigned columns = (unsigned)((p.N + TILE - 1) / TILE), x = threadIdx.x, y = threadIdx.y;
    size_t m = (size_t)(blockIdx.x / columns) * TILE, n = (size_t)(blockIdx.x % columns) * TILE;
    float sum = 0;
    for (size_t k = 0; k < p.K; k += TILE) {
        a[y][x] = element(p.A, p.M, p.K, m + y, k + x);
        if (p.form == SGEMM_B_PLAIN) {
            b[y][x] = element(p.B, p.K, p.N, k + y, n + x);
        } else {
            b[x][y] = element(p.B, p.N, p.K, n + y, k + x);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) {
            sum += a[y][i] * b[i][x];
        }
        __syncthreads();
    }
    store(p, m + y, n + x, sum);
}

enum status sgemm_v03_shared_tile(const struct sgemm_problem *problem, void *workspace,
                                  device_stream stream, struct error *error) {
    (void)workspace;
    return launch_tiles<shared_tile>("sgemm_v03_shared_tile", problem, TILE, TILE, dim3(TILE, TILE),
                                     stream, error);
}

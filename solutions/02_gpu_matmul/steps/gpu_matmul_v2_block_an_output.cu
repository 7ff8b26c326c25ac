/**
 * @file gpu_matmul_v2_block_an_output.cu
 * @brief Step 2: one block computes one output, its threads share the sum.
 *
 * Changes since v1: the threads of a block stride along k, each with a sum of
 * its own; a tree in shared memory adds the 128 sums. Where the grid is smaller
 * than the number of outputs, blocks loop over them (grid-stride loop).
 *
 * Why: the lanes of a warp read 32 neighbouring floats, so a load is 4 sectors
 * and every byte of them is used (coalesced). And one row of M = 1 now occupies
 * N blocks instead of N threads: enough loads to keep memory busy.
 *
 * Grid: M*N blocks of 128 threads. Shared memory: 512 bytes. Bytes and FLOPs as v1.
 *
 * Where it loses: 8 barriers for each output. At K = 288 a thread multiplies
 * two or three times, and then waits for 7 rounds of additions, each with half
 * as many active threads as the one before.
 */
#include "solutions/02_gpu_matmul/steps/grid.cuh"
#include "solutions/02_gpu_matmul/steps/ladder.h"

enum { THREADS = 128 };

/* Sum of one value of each thread of the block, for all of them. sums: THREADS floats. */
static __device__ float block_sum(float value, float *sums) {
    unsigned t = threadIdx.x;
    sums[t] = value;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) {
            sums[t] += sums[t + half];
        }
        __syncthreads();
    }
    float sum = sums[0];
    __syncthreads(); /* before the next output overwrites it */
    return sum;
}

static __global__ void block_an_output(float *out, const float *in, const float *weight, size_t M,
                                       size_t N, size_t K) {
    __shared__ float sums[THREADS];
    for (size_t i = blockIdx.x; i < M * N; i += gridDim.x) {
        const float *x = in + i / N * K;
        const float *w = weight + i % N * K;
        float part = 0.0f;
        for (size_t k = threadIdx.x; k < K; k += THREADS) {
            part += x[k] * w[k];
        }
        float sum = block_sum(part, sums);
        if (threadIdx.x == 0) {
            out[i] = sum;
        }
    }
}

enum status gpu_matmul_v2_block_an_output(float *out, const float *in, const float *weight,
                                          size_t M, size_t N, size_t K, device_stream stream,
                                          struct error *error) {
    if (M == 0 || N == 0) {
        return STATUS_OK;
    }
    block_an_output<<<grid_for(M * N, 1), THREADS, 0, stream>>>(out, in, weight, M, N, K);
    return device_launched("block_an_output", error);
}

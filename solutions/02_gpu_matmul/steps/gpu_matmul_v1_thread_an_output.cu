/**
 * @file gpu_matmul_v1_thread_an_output.cu
 * @brief Step 1: one thread computes one output. The starter's kernel.
 *
 * Grid: ceil(M*N / 256) blocks of 256 threads; neighbouring threads have
 * neighbouring n. FLOPs 2*M*N*K. Bytes that must move: 4*(N*K + M*K + M*N).
 *
 * Where it loses: in one step of k, the 32 lanes of a warp read 32 rows of the
 * weight, K floats apart, so one load fetches 32 sectors of 32 bytes and uses 4
 * bytes of each. The rest of a sector serves the next 7 steps, if the cache
 * still has it then. And with M = 1 there are only N threads: 768 of them fill 3
 * blocks, on a GPU with room for hundreds.
 */
#include "solutions/02_gpu_matmul/steps/grid.cuh"
#include "solutions/02_gpu_matmul/steps/ladder.h"

enum { THREADS = 256 };

static __global__ void thread_an_output(float *out, const float *in, const float *weight, size_t M,
                                        size_t N, size_t K) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < M * N; i += step) {
        const float *x = in + i / N * K;
        const float *w = weight + i % N * K;
        float sum = 0.0f;
        for (size_t k = 0; k < K; k++) {
            sum += x[k] * w[k];
        }
        out[i] = sum;
    }
}

enum status gpu_matmul_v1_thread_an_output(float *out, const float *in, const float *weight,
                                           size_t M, size_t N, size_t K, device_stream stream,
                                           struct error *error) {
    if (M == 0 || N == 0) {
        return STATUS_OK;
    }
    thread_an_output<<<grid_for(M * N, THREADS), THREADS, 0, stream>>>(out, in, weight, M, N, K);
    return device_launched("thread_an_output", error);
}

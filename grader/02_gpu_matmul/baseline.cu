#include "grader/02_gpu_matmul/baseline.h"

static __global__ void naive(float *out, const float *in, const float *weight, size_t M, size_t N,
                             size_t K) {
    size_t index = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= M * N) {
        return;
    }
    size_t m = index / N;
    size_t n = index % N;
    float sum = 0.0f;
    for (size_t k = 0; k < K; k++) {
        sum += in[m * K + k] * weight[n * K + k];
    }
    out[index] = sum;
}

enum status gpu_matmul_baseline(float *out, const float *in, const float *weight, size_t M,
                                size_t N, size_t K, device_stream stream, struct error *error) {
    const unsigned threads = 256;
    unsigned blocks = (unsigned)((M * N + threads - 1) / threads);
    naive<<<blocks, threads, 0, stream>>>(out, in, weight, M, N, K);
    return device_launched("naive", error);
}

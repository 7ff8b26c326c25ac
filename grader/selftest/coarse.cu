#include "grader/selftest/coarse.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum { THREADS = 128, TOGETHER = 16 };

static __device__ float rounded(float x, enum coarse coarse) {
    return coarse == COARSE_FP16 ? __half2float(__float2half(x))
                                 : __bfloat162float(__float2bfloat16(x));
}

static __global__ void product_kernel(enum coarse coarse, __nv_bfloat16 *out,
                                      const __nv_bfloat16 *in, const __nv_bfloat16 *weight,
                                      size_t count, size_t N, size_t K) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    float sum = 0.0f;
    for (size_t k = 0; k < K && i < count; k++) {
        sum += (float)in[i / N * K + k] * (float)weight[i % N * K + k];
        sum = k % TOGETHER == TOGETHER - 1 ? rounded(sum, coarse) : sum;
    }
    if (i < count) {
        out[i] = __float2bfloat16(sum);
    }
}

static __global__ void store_kernel(__nv_bfloat16 *out, const float *x, size_t count) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        out[i] = __float2bfloat16_rz(x[i]);
    }
}

static __global__ void add_kernel(__nv_bfloat16 *out, const __nv_bfloat16 *x, size_t count) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        out[i] = __float2bfloat16((float)out[i] + (float)x[i]);
    }
}

static unsigned blocks_of(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

void coarse_product(enum coarse coarse, void *out, const void *in, const void *weight, size_t M,
                    size_t N, size_t K, device_stream stream) {
    product_kernel<<<blocks_of(M * N), THREADS, 0, (cudaStream_t)stream>>>(
        coarse, (__nv_bfloat16 *)out, (const __nv_bfloat16 *)in, (const __nv_bfloat16 *)weight,
        M * N, N, K);
}

void coarse_store(void *out, const float *x, size_t count, device_stream stream) {
    store_kernel<<<blocks_of(count), THREADS, 0, (cudaStream_t)stream>>>((__nv_bfloat16 *)out, x,
                                                                         count);
}

void coarse_add(void *out, const void *x, size_t count, device_stream stream) {
    add_kernel<<<blocks_of(count), THREADS, 0, (cudaStream_t)stream>>>(
        (__nv_bfloat16 *)out, (const __nv_bfloat16 *)x, count);
}

/*
 * Find the fault: each block of 128 groups of 4 elements, reversed. The groups stay as they are.
 *
 *   x      | a b c d | e f g h | i j k l | m n o p |      (blocks of 4 groups in the drawing)
 *   y      | m n o p | i j k l | e f g h | a b c d |
 */
#include "common/cuda/async_copy.cuh"
#include "labs/00_warmups/warmups.h"

enum { THREADS = 128 };

static __global__ void reverse(float4 *y, const float4 *x) {
    __shared__ float4 tile[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    cp_async<16>(&tile[t], &x[i], true);
    cp_async_commit();
    __syncthreads();
    y[i] = tile[THREADS - 1 - t];
}

void f06_copy_ahead(float *d_y, const float *d_x, int n) {
    reverse<<<n / 4 / THREADS, THREADS>>>(reinterpret_cast<float4 *>(d_y),
                                          reinterpret_cast<const float4 *>(d_x));
}

/*
 * A launch that fails is silent.
 *
 * kernel<<<...>>>() returns nothing. If it cannot be started (here: more than 1024 threads in a
 * block), CUDA notes an error, and the program goes on with a result that nobody computed:
 *
 *   host      launch ---- asks ---- copies the result
 *                |          |
 *   CUDA      notes      tells the noted error, and forgets it
 *
 * cudaGetLastError() asks. A fault while the kernel runs is another matter: that is known only when
 * the host has waited for the kernel (cudaDeviceSynchronize()).
 */
#include "labs/00_warmups/warmups.h"

static __global__ void negate(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = -x[i];
    }
}

int w06_error_check(float *d_y, const float *d_x, int n, int threads) {
    negate<<<(n + threads - 1) / threads, threads>>>(d_y, d_x, n);
    return 0; // TODO: what CUDA says of the launch
}

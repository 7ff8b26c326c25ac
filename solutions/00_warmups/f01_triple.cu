/*
 * Find the fault: every element times 3.
 *
 *   element   0 ... 255 | 256 ... 511 | 512 ... 767 | 768 ... n - 1
 *   block         0     |      1      |      2      |      3
 */
#include "labs/00_warmups/warmups.h"

static __global__ void triple(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = 3.0f * x[i];
    }
}

void f01_triple(float *d_y, const float *d_x, int n) {
    triple<<<(n + 255) / 256, 256>>>(d_y, d_x, n);
}

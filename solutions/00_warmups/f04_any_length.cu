/*
 * Find the fault: each block of 256 elements, reversed; the last block may be shorter, and what it
 * lacks counts as 0.
 *
 *   x      a b c d | e f . .        (blocks of 4 in the drawing)
 *   tile   a b c d   e f 0 0
 *   y      d c b a | 0 0 . .        elements beyond the end are not written
 */
#include "labs/00_warmups/warmups.h"

enum { THREADS = 256 };

static __global__ void reverse(float *y, const float *x, int n) {
    __shared__ float tile[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    tile[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) {
        y[i] = tile[THREADS - 1 - t];
    }
}

void f04_any_length(float *d_y, const float *d_x, int n) {
    reverse<<<(n + THREADS - 1) / THREADS, THREADS>>>(d_y, d_x, n);
}

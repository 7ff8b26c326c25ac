/*
 * Find the fault: each element plus its two neighbours. What is beyond the ends counts as 0.
 *
 *   x              . | a  b  c  d | e ...     (blocks of 4 in the drawing)
 *   tile           0   1  2  3  4   5         thread t: places t, t + 1 and t + 2
 */
#include "labs/00_warmups/warmups.h"

enum { THREADS = 256 };

static __global__ void add_neighbours(float *y, const float *x, int n) {
    __shared__ float tile[THREADS + 2];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    tile[t + 1] = x[i];
    (void)n;
    __syncthreads();
    y[i] = tile[t] + tile[t + 1] + tile[t + 2];
}

void f05_neighbours(float *d_y, const float *d_x, int n) {
    add_neighbours<<<n / THREADS, THREADS>>>(d_y, d_x, n);
}

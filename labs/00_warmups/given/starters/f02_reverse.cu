/*
 * Find the fault: each block of 256 elements, reversed.
 *
 *   x      a b c d | e f g h        (blocks of 4 in the drawing)
 *   tile   a b c d   e f g h        thread t writes place t, and reads the place opposite
 *   y      d c b a | h g f e
 */
#include "labs/00_warmups/warmups.h"

enum { THREADS = 256 };

static __global__ void reverse(float *y, const float *x) {
    __shared__ float tile[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    tile[t] = x[i];
    y[i] = tile[THREADS - 1 - t];
}

void f02_reverse(float *d_y, const float *d_x, int n) {
    reverse<<<n / THREADS, THREADS>>>(d_y, d_x);
}

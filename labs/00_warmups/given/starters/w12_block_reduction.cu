/*
 * Adding up a block, as a tree.
 *
 * The values of a block are in shared memory. Half of the threads add a value of the other half to
 * their own, then a quarter of the threads, and so on. With 8 threads:
 *
 *   part         1    2    3    4    5    6    7    8
 *   half = 4    1+5  2+6  3+7  4+8   .    .    .    .
 *               ------------- barrier -------------
 *   half = 2    6+10 8+12  .    .
 *               ------------- barrier -------------
 *   half = 1   16+20  .
 *
 * Only some threads add, but all must reach each barrier: it stands outside of the `if`.
 */
#include "labs/00_warmups/warmups.h"

enum { THREADS = 256 };

static __global__ void block_sums(float *y, const float *x) {
    __shared__ float part[THREADS];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * THREADS + t];
    __syncthreads();
    // TODO: for half = 128, 64 ... 1: the first `half` threads add, then all meet at a barrier
    if (t == 0) {
        y[blockIdx.x] = part[0];
    }
}

void w12_block_reduction(float *d_y, const float *d_x, int n) {
    block_sums<<<n / THREADS, THREADS>>>(d_y, d_x);
}

/*
 * Find the fault: 3 rounds in which each thread adds the value of the thread 32 places further, and
 * the last 32 those of the first.
 *
 *   round     line[t] = value | barrier | value += line[t + 32]      all 256 threads
 */
#include "labs/00_warmups/warmups.h"

enum { THREADS = 256, ROUNDS = 3 };

static __global__ void add_rounds(float *y, const float *x) {
    __shared__ float line[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float value = x[i];
    for (int round = 0; round < ROUNDS; round++) {
        line[t] = value;
        __syncthreads();
        value += line[(t + 32) % THREADS];
        __syncthreads();
    }
    y[i] = value;
}

void f03_rounds(float *d_y, const float *d_x, int n) {
    add_rounds<<<n / THREADS, THREADS>>>(d_y, d_x);
}

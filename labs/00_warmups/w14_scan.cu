/*
 * Running sums (inclusive scan).
 *
 * Each element becomes the sum of itself and all before it. In step d = 1, 2, 4 ... each element
 * gets the one d places before it added, if there is one. With 8 elements:
 *
 *   x          1   2   3   4   5   6   7   8
 *   d = 1      1   3   5   7   9  11  13  15
 *   d = 2      1   3   6  10  14  18  22  26
 *   d = 4      1   3   6  10  15  21  28  36
 *
 * All threads read and write in each step. If they did so in one array, some would read what others
 * have written already. So there are two: a step reads from one and writes to the other.
 */
#include "labs/00_warmups/warmups.h"

enum { THREADS = 256 };

static __global__ void scan(float *y, const float *x) {
    __shared__ float line[2][THREADS];
    int t = threadIdx.x, from = 0;
    line[0][t] = x[blockIdx.x * THREADS + t];
    __syncthreads();
    // TODO: for d = 1, 2, 4 ... 128: read line[from], write line[1 - from], barrier, change sides
    y[blockIdx.x * THREADS + t] = line[from][t];
}

void w14_scan(float *d_y, const float *d_x, int n) {
    scan<<<n / THREADS, THREADS>>>(d_y, d_x);
}

/*
 * More elements than threads.
 *
 * The grid has 4 blocks of 128 threads, whatever n is. In each round all threads together take the
 * next 512 elements. Drawn with 4 threads and n = 10:
 *
 *   element   0  1  2  3 | 4  5  6  7 | 8  9
 *   thread    0  1  2  3 | 0  1  2  3 | 0  1
 *   round          0     |     1      |   2
 *
 * Such a loop is right for a grid of any size, and loads stay coalesced.
 */
#include "labs/00_warmups/warmups.h"

static __global__ void square(float *y, const float *x, int n) {
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int i = first; // TODO: not only the first round: go on while there are elements
    if (i < n) {
        y[i] = x[i] * x[i];
    }
}

void w04_grid_stride(float *d_y, const float *d_x, int n) {
    square<<<4, 128>>>(d_y, d_x, n);
}

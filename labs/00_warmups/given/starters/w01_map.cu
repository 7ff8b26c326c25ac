/*
 * One thread an element.
 *
 * A kernel is run by many threads at once, and each has to find out which element is its own.
 * Threads come in blocks of the same size; here of 4 to draw them, below of 256. n is 10:
 *
 *   block          0            1            2
 *   thread      0 1 2 3      0 1 2 3      0 1 2 3
 *   element     0 1 2 3      4 5 6 7      8 9 . .      the last two threads have none
 *
 * A thread knows threadIdx.x (its number in the block), blockIdx.x (the block's number) and
 * blockDim.x (threads of a block).
 */
#include "labs/00_warmups/warmups.h"

static __global__ void map(float *y, const float *x, int n) {
    int i = 0;           // TODO: this thread's element, counted over all blocks
    bool inside = false; // TODO: whether there is such an element
    if (inside) {
        y[i] = 2.0f * x[i] + 1.0f;
    }
}

void w01_map(float *d_y, const float *d_x, int n) {
    map<<<(n + 255) / 256, 256>>>(d_y, d_x, n);
}

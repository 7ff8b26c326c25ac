/*
 * A tile in shared memory, and its two barriers.
 *
 * Every thread compares its x with all others. Read from memory, each x would be loaded n times.
 * The threads of a block load 128 elements together, once, into shared memory, and then all use
 * them:
 *
 *   round 0                          round 1
 *   load | barrier | use | barrier | load | barrier | use | barrier | ...
 *            1              2
 *
 *   1: nobody may use the tile before all have loaded their element
 *   2: nobody may load the next tile while others still use this one
 *
 * __syncthreads() is the barrier. All threads of the block must reach it.
 */
#include "labs/00_warmups/warmups.h"

enum { TILE = 128 };

static __global__ void distances(float *y, const float *x, int n) {
    __shared__ float tile[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float mine = x[i];
    float sum = 0.0f;
    for (int begin = 0; begin < n; begin += TILE) {
        tile[threadIdx.x] = x[begin + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < TILE; j++) {
            sum += fabsf(mine - tile[j]);
        }
        __syncthreads();
    }
    y[i] = sum;
}

void w07_shared_tile(float *d_y, const float *d_x, int n) {
    distances<<<n / TILE, TILE>>>(d_y, d_x, n);
}

/*
 * Counting with atomics.
 *
 * bins[key]++ is three steps: read, add, write. Two threads with the same key can both read 5 and
 * both write 6. atomicAdd(&bins[key], 1) does the three steps as one.
 *
 *   keys     3 1 3 3 0 1 ...        block 0             block 1
 *                                 [ . . . . ]         [ . . . . ]     own bins, in shared memory
 *                                        \               /
 *   d_bins                             [  .   .   .   .  ]            one sum a block and bin
 *
 * Threads that hit the same address wait for each other. Bins in shared memory make that short: a
 * block counts for itself, and adds 16 numbers to those in device memory at the end.
 */
#include "labs/00_warmups/warmups.h"

enum { BINS = 16 };

static __global__ void histogram(int *bins, const int *keys, int n) {
    __shared__ int own[BINS];
    if (threadIdx.x < BINS) {
        own[threadIdx.x] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        // TODO: count keys[i] in the block's own bins
        (void)keys;
    }
    __syncthreads();
    if (threadIdx.x < BINS) {
        if (blockIdx.x == 0) { // TODO: every block adds its counts to those in device memory
            bins[threadIdx.x] = own[threadIdx.x];
        }
    }
}

void w15_histogram(int *d_bins, const int *d_keys, int n) {
    histogram<<<4, 128>>>(d_bins, d_keys, n);
}

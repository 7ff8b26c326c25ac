/*
 * How many blocks fit on a multiprocessor?
 *
 * While some warps wait for memory, others calculate; so a multiprocessor holds many at once. On an
 * H200 it has room for 64 warps, but all threads share 65,536 registers:
 *
 *   registers  |  block 0  |  block 1  |  block 2  | left over |
 *
 * On paper first: blocks of 256 threads that take 96 registers each. How many whole blocks fit? How
 * many warps is that? What percentage of 64?
 *
 * __launch_bounds__(T, B) in front of a kernel's name promises blocks of at most T threads, and
 * asks the compiler to use so few registers that B blocks fit. What no longer fits into registers
 * goes to memory, so more warps are not always faster: measure.
 */
#include "labs/00_warmups/warmups.h"

/* 65536 / (256 * 96) = 2.67;  2 * 256 / 32;  16 / 64 */
const int w17_paper[3] = {2, 16, 25};

enum { THREADS = 256, KEPT = 96 };

static __global__ void __launch_bounds__(THREADS, 4) variance(float *y, const float *x, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    float kept[KEPT], mean = 0.0f, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        kept[k] = x[(i + k) & (n - 1)];
        mean += kept[k] / KEPT;
    }
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        sum += (kept[k] - mean) * (kept[k] - mean);
    }
    y[i] = sum / KEPT;
}

int w17_occupancy(float *d_y, const float *d_x, int n) {
    int blocks = 0;
    variance<<<n / THREADS, THREADS>>>(d_y, d_x, n);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, variance, THREADS, 0);
    return blocks;
}

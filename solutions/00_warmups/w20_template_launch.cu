/*
 * A kernel for each size.
 *
 * If the compiler knows how often a loop runs, it can write out all rounds, keep arrays in
 * registers and leave out tests. A template makes one kernel for each number; the host, which knows
 * the number only when it runs, chooses:
 *
 *   width = 16, 32 or 64              sums<16>   16 additions, no loop
 *         |                           sums<32>   32
 *         +-- switch --> one of       sums<64>   64
 *
 * k<64><<<blocks, threads>>>(...) launches the kernel k for 64.
 */
#include "labs/00_warmups/warmups.h"

template <int WIDTH> static __global__ void sums(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (int k = 0; k < WIDTH; k++) {
            sum += x[i * WIDTH + k];
        }
        y[i] = sum;
    }
}

void w20_template_launch(float *d_y, const float *d_x, int n, int width) {
    int blocks = (n + 127) / 128;
    switch (width) {
    case 16:
        sums<16><<<blocks, 128>>>(d_y, d_x, n);
        break;
    case 32:
        sums<32><<<blocks, 128>>>(d_y, d_x, n);
        break;
    case 64:
        sums<64><<<blocks, 128>>>(d_y, d_x, n);
        break;
    }
}

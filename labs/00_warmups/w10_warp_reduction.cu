/*
 * Adding up a warp, from register to register.
 *
 * __shfl_down_sync(0xffffffffu, value, d) gives each lane the value of the lane d further on. All
 * 32 lanes must execute it. With 8 lanes instead of 32:
 *
 *   lane       0    1    2    3    4    5    6    7
 *   value      1    2    3    4    5    6    7    8
 *   d = 4     1+5  2+6  3+7  4+8   .    .    .    .
 *   d = 2     6+10 8+12  .    .
 *   d = 1    16+20  .
 *             36                                        lane 0 has the sum
 *
 * What the dots hold does not matter.
 */
#include "labs/00_warmups/warmups.h"

static __global__ void warp_sums(float *y, const float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    // TODO: add the value of the lane d further on, for d = 16, 8, 4, 2, 1
    if (i % 32 == 0) {
        y[i / 32] = value;
    }
}

void w10_warp_reduction(float *d_y, const float *d_x, int n) {
    warp_sums<<<n / 128, 128>>>(d_y, d_x);
}

/*
 * Four floats with one instruction.
 *
 * A float4 is a struct of four floats, .x .y .z .w, that lies on a multiple of 16 bytes. Loading
 * one is one instruction of 16 bytes instead of four of 4 bytes:
 *
 *   x as floats     | 0  1  2  3 | 4  5  6  7 | 8  9 10 11 | ...
 *   x as float4     |     0      |     1      |     2      | ...     thread i takes number i
 *
 * The compiler does not do it by itself: it cannot know that x lies on a multiple of 16 bytes. You
 * tell it by reading through a pointer of another type: reinterpret_cast<const float4 *>(x).
 */
#include "labs/00_warmups/warmups.h"

static __global__ void twice(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i < n) {
        float4 four = reinterpret_cast<const float4 *>(x)[i];
        reinterpret_cast<float4 *>(y)[i] =
            make_float4(2.0f * four.x, 2.0f * four.y, 2.0f * four.z, 2.0f * four.w);
    }
}

void w05_vector_loads(float *d_y, const float *d_x, int n) {
    twice<<<(n / 4 + 127) / 128, 128>>>(d_y, d_x, n);
}

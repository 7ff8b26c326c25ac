/*
 * One product on a tensor core.
 *
 * mma.sync.m16n8k16 multiplies 16 x 16 by 16 x 8 fp16 numbers and adds to 16 x 8 floats. A warp
 * executes it together, and the matrices are distributed over its registers. An unsigned holds two
 * neighbours along k. Lane 4 g + p (g = 0..7, p = 0..3) has:
 *
 *   A       k: 2p, 2p+1   2p+8, 2p+9      C       column: 2p      2p+1
 *   row g         a[0]       a[2]         row g           c[0]    c[1]
 *   row g+8       a[1]       a[3]         row g+8         c[2]    c[3]
 *
 *   B       k: 2p, 2p+1   2p+8, 2p+9
 *   column g      b[0]       b[1]
 *
 * d_B has one row of 16 for each column of B, so that the pairs along k are neighbours there, too.
 */
#include "labs/00_warmups/warmups.h"

static __device__ unsigned pair(const uint16_t *two) {
    return *reinterpret_cast<const unsigned *>(two);
}

static __device__ void mma(float c[4], const unsigned a[4], const unsigned b[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

static __global__ void one_mma(float *C, const uint16_t *A, const uint16_t *B) {
    int g = threadIdx.x / 4, p = threadIdx.x % 4;
    unsigned a[4] = {pair(&A[16 * g + 2 * p]), pair(&A[16 * (g + 8) + 2 * p]),
                     pair(&A[16 * g + 2 * p + 8]), pair(&A[16 * (g + 8) + 2 * p + 8])};
    unsigned b[2] = {pair(&B[16 * g + 2 * p]), pair(&B[16 * g + 2 * p + 8])};
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    mma(c, a, b);
    C[8 * g + 2 * p] = c[0];
    C[8 * g + 2 * p + 1] = c[1];
    C[8 * (g + 8) + 2 * p] = c[2];
    C[8 * (g + 8) + 2 * p + 1] = c[3];
}

void w24_one_mma(float *d_C, const uint16_t *d_A, const uint16_t *d_B) {
    one_mma<<<1, 32>>>(d_C, d_A, d_B);
}

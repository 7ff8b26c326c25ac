/*
 * From shared memory into fragments, with one instruction.
 *
 * ldmatrix.x4 loads four matrices of 8 x 8 numbers of 16 bits. Each lane gives the address of one
 * row of 16 bytes: lanes 0 to 7 the rows of matrix 0, lanes 8 to 15 those of matrix 1, and so on.
 * Afterwards lane 4 g + p has in register i the pair 2p, 2p+1 of row g of matrix i.
 *
 * The tile is A of a product, 16 x 16. w24 shows where mma wants it: register 0 has rows 0 to 7 and
 * k 0 to 7, register 1 the rows below, register 2 the k to the right:
 *
 *             k 0 to 7      k 8 to 15
 *   row 0    +------------+------------+
 *    to 7    |  matrix 0  |  matrix 2  |     lane 8 has the address of row 8, k 0
 *   row 8    +------------+------------+     lane 16 that of row 0, k 8
 *    to 15   |  matrix 1  |  matrix 3  |
 *            +------------+------------+
 */
#include "labs/00_warmups/warmups.h"

static __device__ void ldmatrix_x4(unsigned a[4], const uint16_t *row) {
#if __CUDA_ARCH__ >= 800
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
#endif
}

static __global__ void load_fragment(int *y, const uint16_t *A) {
    __shared__ __align__(16) uint16_t tile[16 * 16];
    int lane = threadIdx.x;
    unsigned a[4] = {0, 0, 0, 0};
    for (int i = lane; i < 16 * 16; i += 32) {
        tile[i] = A[i];
    }
    __syncwarp();
    const uint16_t *row = &tile[16 * (lane % 16) + 8 * (lane / 16)];
    ldmatrix_x4(a, row);
    for (int i = 0; i < 4; i++) {
        y[4 * lane + i] = (int)a[i];
    }
}

void w25_ldmatrix(int *d_y, const uint16_t *d_A) {
    load_fragment<<<1, 32>>>(d_y, d_A);
}

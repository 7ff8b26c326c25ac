/*
 * A matmul by tiles.
 *
 * A block computes a tile of 16 x 16 elements of C, a thread one element. It goes along K in steps
 * of 16. In each step the block loads a tile of A and one of B, each thread one element of both:
 *
 *                        B (K, N)     . . | b | . .
 *                                     . . | b | . .    step by step downwards
 *
 *   A (M, K)   . . . .                . . . . . .
 *              a a a a   ->           . . | C | . .    the tile of this block
 *              step by step
 *
 * An element that is loaded once is used 16 times.
 */
#include "labs/00_warmups/warmups.h"

enum { TILE = 16 };

static __global__ void matmul(float *C, const float *A, const float *B, int N, int K) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int k = 0; k < K; k += TILE) {
        a[y][x] = A[row * K + k + x];
        b[y][x] = B[(k + y) * N + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++) {
            sum += a[y][i] * b[i][x];
        }
        __syncthreads();
    }
    C[row * N + column] = sum;
}

void w09_tiled_matmul(float *d_C, const float *d_A, const float *d_B, int M, int N, int K) {
    matmul<<<dim3(N / TILE, M / TILE), dim3(TILE, TILE)>>>(d_C, d_A, d_B, N, K);
}

/*
 * A tile that is written by rows and read by columns, without bank conflicts and without padding.
 *
 * A row of the tile is 128 bytes, all 32 banks, in 8 pieces of 16 bytes. Threads write it row by
 * row. ldmatrix reads it by columns of pieces: piece 0 of rows 0 to 7 together. All of these lie in
 * the same four banks, and the loads wait for each other.
 *
 * So the pieces of a row change places, in each row in another way. Piece p of row r lies at place
 * p ^ (r % 8), where ^ is exclusive or. A column now meets each bank once, as does a row:
 *
 *             place 0   1   2   3   4   5   6   7
 *     row 0         0   1   2   3   4   5   6   7
 *     row 1         1   0   3   2   5   4   7   6
 *     row 2         2   3   0   1   6   7   4   5
 *     row 3         3   2   1   0   7   6   5   4
 *     ...
 *
 * Whoever reads must look in the same place. The TMA can permute a box like this (128-byte
 * swizzle), and wgmma reads it so.
 */
#include "labs/00_warmups/warmups.h"

enum { ROWS = 32, PIECES = 8 };

/* Where piece p of row r lies in the tile. */
static __device__ int place(int r, int p) {
    return PIECES * r + (p ^ r % 8);
}

static __global__ void swap_pieces(float4 *y, const float4 *x) {
    __shared__ float4 tile[ROWS * PIECES];
    int t = threadIdx.x;
    tile[place(t / PIECES, t % PIECES)] = x[t];
    __syncthreads();
    y[t] = tile[place(t % ROWS, t / ROWS)];
}

void w26_swizzle(float *d_y, const float *d_x) {
    swap_pieces<<<1, ROWS * PIECES>>>((float4 *)d_y, (const float4 *)d_x);
}

/*
 * Banks, and one column more.
 *
 * Shared memory has 32 banks of 4 bytes: word w lies in bank w % 32. Each bank serves one word at a
 * time, so 32 lanes that read 32 words of one bank wait for 32 rounds (31 bank conflicts). This
 * transpose reads rows and writes rows of memory, and transposes the tile in between: a warp reads
 * a column of it. Drawn with 4 banks; the number is the bank of each word, the column is marked:
 *
 *   tile[4][4]             tile[4][5]
 *   [0] 1  2  3            [0] 1  2  3  0
 *   [0] 1  2  3            [1] 2  3  0  1
 *   [0] 1  2  3            [2] 3  0  1  2
 *   [0] 1  2  3            [3] 0  1  2  3
 *   4 rounds               1 round
 */
#include "labs/00_warmups/warmups.h"

enum { TILE = 32, ROWS = 8 };

static __global__ void transpose(float *y, const float *x, int rows, int columns) {
    __shared__ float tile[TILE][TILE]; // TODO: right, but with conflicts
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    for (int r = threadIdx.y; r < TILE; r += ROWS) {
        tile[r][threadIdx.x] = x[(row + r) * columns + column + threadIdx.x];
    }
    __syncthreads();
    for (int r = threadIdx.y; r < TILE; r += ROWS) {
        y[(column + r) * rows + row + threadIdx.x] = tile[threadIdx.x][r];
    }
}

void w08_padded_transpose(float *d_y, const float *d_x, int rows, int columns) {
    transpose<<<dim3(columns / TILE, rows / TILE), dim3(TILE, ROWS)>>>(d_y, d_x, rows, columns);
}

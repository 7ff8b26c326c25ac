/*
 * Blocks of two dimensions.
 *
 * A matrix lies in memory row by row: element [row, column] is number row * columns + column.
 * Blocks and grids may have two dimensions. x counts fastest: threads with neighbouring threadIdx.x
 * are neighbours in a warp, so x belongs to the columns. Blocks of 3 x 2 threads on 4 rows, 5
 * columns:
 *
 *                    columns
 *             0  1  2 | 3  4  .        block (0, 0) | block (1, 0)
 *      rows   .  .  . | .  .  .                     |
 *            ---------+---------       -------------+-------------
 *             .  .  . | .  .  .        block (0, 1) | block (1, 1)
 *             .  .  . | .  .  .                     |
 *
 * blockIdx.y, blockDim.y and threadIdx.y are there as their namesakes with x.
 */
#include "labs/00_warmups/warmups.h"

static __global__ void add_to_rows(float *y, const float *x, const float *bias, int rows,
                                   int columns) {
    int row = rows;       // TODO: this thread's row
    int column = columns; // TODO: this thread's column
    if (row < rows && column < columns) {
        y[row * columns + column] = x[row * columns + column] + bias[row];
    }
}

void w02_index_2d(float *d_y, const float *d_x, const float *d_bias, int rows, int columns) {
    dim3 block(16, 8);
    dim3 grid((columns + 15) / 16, (rows + 7) / 8);
    add_to_rows<<<grid, block>>>(d_y, d_x, d_bias, rows, columns);
}

/*
 * One warp, one row.
 *
 * A row may be longer or shorter than a warp. First each lane goes along the row in steps of 32 and
 * keeps the largest element that it has seen; then the 32 lanes combine what they have. With 4
 * lanes and a row of 10:
 *
 *   row        3  1  4  1 | 5  9  2  6 | 5  3
 *   lane       0  1  2  3 | 0  1  2  3 | 0  1
 *   largest    5  9  4  6                        and together 9
 *
 * A lane that has no element begins with -infinity, the largest of nothing.
 */
#include "labs/00_warmups/warmups.h"

static __global__ void largest_of_rows(float *y, const float *x, int columns) {
    const float *row = x + blockIdx.x * columns;
    int lane = threadIdx.x;
    float largest = -INFINITY;
    if (lane < columns) {
        largest = row[lane]; // TODO: this lane's other elements, too
    }
    // TODO: the largest of all lanes (w10 adds where you need fmaxf)
    if (lane == 0) {
        y[blockIdx.x] = largest;
    }
}

void w13_row_reduction(float *d_y, const float *d_x, int rows, int columns) {
    largest_of_rows<<<rows, 32>>>(d_y, d_x, columns);
}

/*
 * Find the fault: how many elements of a sorted table are at most x? Each step halves what is left
 * between low and high; all before low are at most x, all from high on are larger.
 *
 *   table   1  3  3  7  8  9     x = 3     low -> |  the answer, 3  | <- high
 */
#include "labs/00_warmups/warmups.h"

static __global__ void search(int *y, const float *x, int n, const float *table, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int low = 0, high = size;
        while (low < high) {
            int middle = (low + high) / 2;
            if (table[middle] <= x[i]) {
                low = middle;
            } else {
                high = middle;
            }
        }
        y[i] = low;
    }
}

void f08_search(int *d_y, const float *d_x, int n, const float *d_table, int size) {
    search<<<(n + 127) / 128, 128>>>(d_y, d_x, n, d_table, size);
}

/*
 * Neighbouring threads, neighbouring addresses.
 *
 * Memory is fetched in sectors of 32 bytes, 8 floats. When the 32 threads of a warp execute a load,
 * the hardware fetches every sector that contains one of the 32 addresses. Each thread here copies
 * `each` elements. Drawn with 4 threads, 4 elements each, sectors of 4 floats; t0..t3 mark what is
 * read in the first round (k = 0):
 *
 *   now      | t0 .  .  . | t1 .  .  . | t2 .  .  . | t3 .  .  . |     4 sectors a load
 *   wanted   | t0 t1 t2 t3| .  .  .  . | .  .  .  . | .  .  .  . |     1 sector a load
 *
 * Both copy everything in the end. With 32 threads and 8 floats a sector it is 32 sectors
 * against 4.
 */
#include "labs/00_warmups/warmups.h"

static __global__ void copy(float *y, const float *x, int n) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int threads = gridDim.x * blockDim.x;
    int each = n / threads;
    for (int k = 0; k < each; k++) {
        int i =
            thread * each + k; // TODO: in each round neighbouring threads, neighbouring elements
        y[i] = x[i];
    }
}

void w03_coalescing(float *d_y, const float *d_x, int n) {
    copy<<<2, 128>>>(d_y, d_x, n);
}

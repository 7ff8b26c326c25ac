/**
 * @file grid.cuh
 * @brief Shared by several steps: the size of a grid, and alignment.
 */
#ifndef WARPBOOK_SOLUTIONS_02_GPU_MATMUL_STEPS_GRID_CUH_
#define WARPBOOK_SOLUTIONS_02_GPU_MATMUL_STEPS_GRID_CUH_

#include <stddef.h>
#include <stdint.h>

#include "common/base/checked.h"

enum { WARP = 32 };

/* Blocks for `items` of work, `per_block` a block; at most 2^30, because a grid has a largest size.
   The kernels loop until all items are done (grid-stride loop). */
static inline unsigned grid_for(size_t items, size_t per_block) {
    const size_t most = (size_t)1 << 30;
    size_t blocks = ceil_div(items, per_block);
    return (unsigned)(blocks < most ? blocks : most);
}

/* Whether all rows of K floats begin at a multiple of 16 bytes, as float4 requires. */
static inline bool rows_aligned(const float *first, size_t K) {
    return ((uintptr_t)first % sizeof(float4) | K % 4) == 0;
}

#endif

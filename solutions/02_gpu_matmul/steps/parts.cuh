/**
 * @file parts.cuh
 * @brief What several steps share: the size of a grid, and alignment.
 */
#ifndef WARPBOOK_SOLUTIONS_02_GPU_MATMUL_STEPS_PARTS_CUH_
#define WARPBOOK_SOLUTIONS_02_GPU_MATMUL_STEPS_PARTS_CUH_

#include <stddef.h>
#include <stdint.h>

#include "common/base/checked.h"

enum { WARP = 32 };

/* Blocks for `items` of work, `per_block` a block. No more than a grid may have: kernels that are
   launched with this go round until all items are done. */
static inline unsigned grid_for(size_t items, size_t per_block) {
    const size_t most = (size_t)1 << 30;
    size_t blocks = ceil_div(items, per_block);
    return (unsigned)(blocks < most ? blocks : most);
}

/* Whether rows of K floats all begin at a multiple of 16 bytes, as float4 wants it. */
static inline bool rows_aligned(const float *first, size_t K) {
    return ((uintptr_t)first % sizeof(float4) | K % 4) == 0;
}

#endif

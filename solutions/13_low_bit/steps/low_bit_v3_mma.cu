/**
 * @file low_bit_v3_mma.cu
 * @brief Step 3: the matrix in tensor cores' order, made once, and mma.sync.m16n8k16.
 *
 * Changes since v2: low_bit_prepare() puts the weights into the order in which a lane multiplies
 * them (fragments.cuh), so that a load is 16 bytes: 32 weights of 4 bits. W is the factor with 16
 * rows; up to 8 rows of `in` are the other one, and cost what one costs. A group's scale multiplies
 * four sums of a lane, not weights.
 *
 * Why: v2 spends an fma, a conversion of `in` and a test on each product; here a lane has 4 weights
 * for an mma of 2048 products, unpacks 8 in 8 or 11 instructions, and does nothing else. What
 * limits it now: a warp waits for a unit of columns before it asks for the next.
 *
 * Mapping: a block has 16 rows of W; its 8 warps take units of 128 columns (int4) or 64 (int8, fp8)
 * in turn, and add up their sums in shared memory.
 *
 * Measured: NVIDIA H100 80GB HBM3, 2026-11-27, one row, L2 flushed before each call, us: 22016 x
 * 4096 int8 42.7, int4 in groups of 128 28.0; eight rows 42.9 and 31.1.
 */
#include "solutions/13_low_bit/steps/ladder.h"

#include "solutions/13_low_bit/steps/mma_launch.cuh"

namespace {

template <enum low_bit_type TYPE, int GROUP, typename S, int NT>
using one_unit = form<TYPE, GROUP, S, NT, 1, 8, 1>;

}

enum status low_bit_v3_mma(const struct low_bit_linear *linear, void *workspace,
                           device_stream stream, struct error *error) {
    (void)workspace;
    return launch_mma<one_unit>(linear, "low_bit_v3_mma", stream, error);
}

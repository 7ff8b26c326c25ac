/**
 * @file low_bit_v6_warps.cu
 * @brief Step 6: more warps instead of more units a warp.
 *
 * Changes since v5: one unit in flight and no chain, as in v3, but 16 warps a tile.
 *
 * Why: a unit more costs 8 to 14 registers a thread, and with 54 two blocks of 16 warps fit into a
 * multiprocessor, with 40 three. Three blocks of one unit have 24 KiB under way, two of two units
 * 32, and yet the first are faster: what a warp has asked for helps only until it multiplies.
 *
 * Mapping: as v3, with 16 warps a block.
 *
 * Measured: NVIDIA H100 80GB HBM3 (a read probe has 3.02 TB/s), 2026-11-27, one row, calls in a
 * CUDA graph, each starting while the one before ends (v5): 22016 x 4096 int8 32.9 us (90% of the
 * probe), int4 in groups of 128 20.3 us (78%). All products of a 7B model one after the other:
 * int8 2.63 ms (82%; v5: 2.88, v4: 2.74), int4 1.69 ms (69%; v5: 1.76, v4: 1.92). Of a 1.1B model
 * int4: 0.467 ms (v5: 0.439, v4: 0.511): there the chain pays. 32 warps: slower than 16 but for
 * 2048 x 2048. Two tiles a block: about the same.
 */
#include "solutions/13_low_bit/steps/ladder.h"

#include "solutions/13_low_bit/steps/mma_launch.cuh"

namespace {

template <enum low_bit_type TYPE, int GROUP, typename S, int NT>
using sixteen_warps = form<TYPE, GROUP, S, NT, 1, 16, 1>;

}

enum status low_bit_v6_warps(const struct low_bit_linear *linear, void *workspace,
                             device_stream stream, struct error *error) {
    (void)workspace;
    return launch_mma<sixteen_warps>(linear, "low_bit_v6_warps", stream, error);
}

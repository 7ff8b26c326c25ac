/**
 * @file low_bit_v4_in_flight.cu
 * @brief Step 4: more units of columns in flight.
 *
 * Changes since v3: a warp has two units under way in registers, with their scales, and asks for
 * the next as soon as one is multiplied; 16 warps share a tile's columns.
 *
 * Why: memory answers after some 600 ns. At 3.3 TB/s that is 2 MB under way, 15 KB for each
 * multiprocessor all the time; a unit a warp is too little as soon as warps also multiply.
 *
 * Mapping: as v3, with 16 warps a block.
 *
 * Measured: NVIDIA H100 80GB HBM3, 2026-11-27, one row, L2 flushed before each call, us: 22016 x
 * 4096 int8 41.7, int4 29.6 (v3: 28.0); 4096 x 11008 23.5 and 18.7 (v3: 27.3 and 23.8). A gain
 * where a tile has many columns, and a loss where the GPU is full.
 */
#include "solutions/13_low_bit/steps/ladder.h"

#include "solutions/13_low_bit/steps/mma_launch.cuh"

namespace {

template <enum low_bit_type TYPE, int GROUP, typename S, int NT>
using in_flight = form<TYPE, GROUP, S, NT, 1, 16, 2>;

}

enum status low_bit_v4_in_flight(const struct low_bit_linear *linear, void *workspace,
                                 device_stream stream, struct error *error) {
    (void)workspace;
    return launch_mma<in_flight>(linear, "low_bit_v4_in_flight", stream, error);
}

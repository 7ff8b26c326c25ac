/**
 * @file low_bit_v5_chained.cu
 * @brief Step 5: weights are asked for while the kernel in front still runs.
 *
 * Changes since v4: programmatic dependent launch. Weights were prepared long ago, so each warp
 * asks for its first units at once, and waits for the kernel in front only before it reads `in`.
 *
 * Why: with 4 bits a product of a 7B model takes 7 to 24 us, of a 1.1B model 3 to 9, and two or
 * three of them are launch, first load and last sum, in which memory is idle. From compute
 * capability 9.0 on they overlap with the kernel in front; before, this is v4.
 *
 * Mapping: as v4.
 *
 * Measured: NVIDIA H100 80GB HBM3, 2026-11-27, one row, L2 flushed before each call, us: 22016 x
 * 4096 int8 40.9, int4 29.7: alone, as v4. All products of a 7B model in a CUDA graph: int8 2.88 ms
 * (v4: 2.74), int4 1.76 ms (1.92); of a 1.1B model 0.686 (0.658) and 0.439 ms (0.511). So the chain
 * pays with 4 bits, and costs with 8, where a block that waits takes the place of one that could
 * load.
 */
#include "solutions/13_low_bit/steps/ladder.h"

#include "solutions/13_low_bit/steps/mma_launch.cuh"

namespace {

template <enum low_bit_type TYPE, int GROUP, typename S, int NT>
using chained = form<TYPE, GROUP, S, NT, 1, 16, 2, true>;

}

enum status low_bit_v5_chained(const struct low_bit_linear *linear, void *workspace,
                               device_stream stream, struct error *error) {
    (void)workspace;
    return launch_mma<chained>(linear, "low_bit_v5_chained", stream, error);
}

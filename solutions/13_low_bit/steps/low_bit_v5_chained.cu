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

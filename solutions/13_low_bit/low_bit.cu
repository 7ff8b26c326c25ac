/**
 * @file low_bit.cu
 * @brief Solution of lab 13: the last step of the ladder, and the ladder.
 */
#include "labs/13_low_bit/low_bit.h"

#include "solutions/13_low_bit/steps/ladder.h"
#include "solutions/13_low_bit/steps/prepare.cuh"

enum status low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                            device_stream stream, struct error *error) {
    return prepare_fragments(matrix, prepared, stream, error);
}

enum status low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                           device_stream stream, struct error *error) {
    return low_bit_v6_warps(linear, workspace, stream, error);
}

const struct low_bit_step *low_bit_ladder(size_t *count) {
    static const struct low_bit_step steps[] = {
        {"v1_rows", prepare_plain, low_bit_v1_rows},
        {"v2_magic", prepare_plain, low_bit_v2_magic},
        {"v3_mma", prepare_fragments, low_bit_v3_mma},
        {"v4_in_flight", prepare_fragments, low_bit_v4_in_flight},
        {"v5_chained", prepare_fragments, low_bit_v5_chained},
        {"v6_warps", prepare_fragments, low_bit_v6_warps},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

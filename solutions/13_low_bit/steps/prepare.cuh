/**
 * @file prepare.cuh
 * @brief Both orders in which the steps keep a matrix: as it came, and in tensor cores' fragments.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_PREPARE_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_PREPARE_CUH_

#include <stdint.h>

#include "labs/13_low_bit/low_bit.h"

/* Where the parts of a matrix in the plain order stand in prepared memory, each 256-byte aligned.
 */
static inline struct low_bit_matrix plain_parts(const struct low_bit_layout *layout,
                                                const void *prepared) {
    size_t values = (low_bit_values_bytes(layout) + 255) / 256 * 256;
    size_t scales = (low_bit_scales_bytes(layout) + 255) / 256 * 256;
    char *at = (char *)prepared;
    return (struct low_bit_matrix){*layout, at, at + values,
                                   layout->has_zeros ? (uint8_t *)at + values + scales : NULL};
}

/* The functions low_bit_prepare() of the steps. */
MUST_CHECK enum status prepare_plain(const struct low_bit_matrix *matrix, void *prepared,
                                     device_stream stream, struct error *error);
MUST_CHECK enum status prepare_fragments(const struct low_bit_matrix *matrix, void *prepared,
                                         device_stream stream, struct error *error);

/* STATUS_UNSUPPORTED, with a line, on a GPU before compute capability 8.0. */
MUST_CHECK enum status low_bit_needs_bf16(struct error *error);

#endif

/**
 * @file alignment.h
 * @brief What is known of the alignment of registers before a kernel runs.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DECODE_ALIGNMENT_H_
#define WARPBOOK_COMMON_SIMT_CORE_DECODE_ALIGNMENT_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/core/code.h"

/** Of each row of a frame. */
struct simt_alignment {
    uint8_t *zeros;         /**< (row_bytes / SIMT_ROW32): low bits that are always 0, at most 12 */
    const uint64_t **value; /**< (the same): of a constant; NULL: not one */
};

/**
 * @brief Follows constants, addresses of variables, sums, products and shifts through a function.
 *
 * Looks at no order: a register has the alignment that all its definitions share.
 *
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status simt_alignment_find(struct simt_alignment *alignment,
                                           const struct simt_code *code);

void simt_alignment_free(struct simt_alignment *alignment);

/** @return low bits of the row at @p offset that are always 0. */
static inline uint32_t simt_alignment_zeros(const struct simt_alignment *a, uint32_t offset) {
    return a->zeros[offset / SIMT_ROW32];
}

/** @return true and the constant that the row at @p offset holds. */
static inline bool simt_alignment_constant(const struct simt_alignment *a, uint32_t offset,
                                           uint64_t *value) {
    const uint64_t *constant = a->value[offset / SIMT_ROW32];
    if (constant != NULL) {
        *value = *constant;
    }
    return constant != NULL;
}

#endif

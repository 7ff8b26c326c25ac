/**
 * @file number.h
 * @brief Numbers as PTX writes them: 12, 017, 0x1fU, 0b101, 1.5e-3, 0f3F800000, 0d3FF0000000000000.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_NUMBER_H_
#define WARPBOOK_COMMON_SIMT_PTX_NUMBER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/ptx/ptx.h"

struct ptx_number {
    uint64_t bits; /**< of the integer, or of the float or double */
    enum ptx_immediate_type type;
};

/** @return false when @p text is no number, or an integer of more than 64 bits. */
bool ptx_number_read(const char *text, size_t length, struct ptx_number *number);

/** @return the number with its sign changed: two's complement, or the sign bit of a float. */
struct ptx_number ptx_number_negate(struct ptx_number number);

/** @return true when an element of that type can hold the number (integers may be cut). */
bool ptx_number_fits(struct ptx_number number, enum ptx_type type);

/**
 * @brief Writes the number, which fits, as one element of memory.
 * @param type  of the element; a double is rounded to float, an integer is cut
 * @param bytes receives ptx_type_size(type) bytes, at most 8
 */
void ptx_number_store(struct ptx_number number, enum ptx_type type, unsigned char *bytes);

#endif

/**
 * @file sparse.h
 * @brief Which columns of a sparse A are stored, as the metadata of mma.sp and wgmma.sp says.
 *
 * A (16 x K) is sparse along K: of each group of 4 elements 2 are stored, of 4-bit ones 2 pairs of
 * 4 pairs, of tf32 1 of 2. A nibble of metadata says which of a row's group: two numbers of two
 * bits, of the lower one first; of tf32 0b0100 for the first element and 0b1110 for the second.
 *
 * K/4 groups (K/2 of tf32, K/8 of 4 bits) of 16 rows take 1, 2 or 4 threads of each four; the
 * selector says which thread, or which pair.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_SPARSE_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_SPARSE_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/tile.h"

enum { SPARSE_ROWS = 16, SPARSE_MOST_STORED = 64 };

/** The form of a sparse product. */
struct sparse {
    enum tile_format format; /**< of A */
    uint32_t k;              /**< of the whole A; half of it is stored */
    uint32_t selector;
    bool ordered; /**< the numbers of a nibble must grow */
};

/** @return whether there is such a form: k fits its format, and the selector k. */
bool sparse_is_known(const struct sparse *form);

/**
 * @brief Reads a warp's metadata.
 * @param row of the operand with the metadata
 * @param columns (16, k / 2): the column of A that each stored element is
 * @return false after a fault: metadata that says nothing
 */
bool sparse_read(struct simt_warp *warp, const struct simt_instruction *i,
                 const struct sparse *form, uint32_t row, uint32_t *columns);

#endif

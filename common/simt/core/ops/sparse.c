#include "common/simt/core/ops/sparse.h"

#include "common/simt/core/ops/lane_access.h"

enum { QUAD = 4, NIBBLES = 8, PAIR_FIRST = 0x4, PAIR_SECOND = 0xe };

/* Elements that a number of the metadata stands for. */
static uint32_t unit_of(const struct sparse *form) {
    return tile_bits(form->format) == 4 ? 2 : 1;
}

static uint32_t group_of(const struct sparse *form) {
    return form->format == TILE_TF32 ? 2 : 4 * unit_of(form);
}

/* Threads of each four that hold metadata. */
static uint32_t threads_of(const struct sparse *form) {
    return form->k / group_of(form) * SPARSE_ROWS / (SIMT_LANES / QUAD * NIBBLES);
}

bool sparse_is_known(const struct sparse *form) {
    uint32_t group = group_of(form), threads = threads_of(form);
    uint32_t bits = tile_bits(form->format);
    uint32_t least = bits == 32 ? 8 : bits == 16 ? 16 : bits == 8 ? 32 : 64;
    bool fits = form->k % group == 0 && (form->k == least || form->k == 2 * least);
    return fits && threads > 0 && form->selector < QUAD / threads;
}

/* The nibble of a row's group. A thread holds 4 groups of rows r and r + 8, or, of elements of 8
 * and 4 bits, 8 groups of one of the two. */
static uint32_t nibble_of(const struct simt_warp *warp, const struct sparse *form, uint32_t row,
                          uint32_t group, uint32_t metadata) {
    bool both = tile_bits(form->format) >= 16;
    uint32_t thread = both ? group / QUAD : row / 8 + group / NIBBLES * 2;
    uint32_t number = both ? row / 8 * QUAD + group % QUAD : group % NIBBLES;
    uint32_t lane = row % 8 * QUAD + form->selector * threads_of(form) + thread;
    return simt_row(warp, metadata)->u32[lane] >> 4 * number & 0xf;
}

static bool is_known_nibble(const struct sparse *form, uint32_t nibble) {
    uint32_t first = nibble & 3, second = nibble >> 2;
    return form->format == TILE_TF32 ? nibble == PAIR_FIRST || nibble == PAIR_SECOND
           : form->ordered           ? first < second
                                     : first != second;
}

static bool refuse(struct simt_warp *warp, const struct simt_instruction *i,
                   const struct sparse *form, uint32_t row, uint32_t group, uint32_t nibble) {
    uint32_t size = group_of(form);
    simt_fail(
        warp, i, row % 8 * QUAD, SIMT_FAULT_UNSUPPORTED, 0,
        "multiplies a sparse matrix whose metadata for columns %u to %u of row %u is 0x%x: %s",
        group * size, group * size + size - 1, row, nibble,
        form->format == TILE_TF32 ? "for tf32 it is 0x4 (the first of the two) or 0xe"
                                  : "its two numbers of two bits must grow");
    return false;
}

/* The columns of a group's stored elements. */
static void put_columns(const struct sparse *form, uint32_t group, uint32_t nibble, uint32_t *to) {
    uint32_t unit = unit_of(form), first = group * group_of(form);
    if (form->format == TILE_TF32) {
        to[group] = first + (nibble == PAIR_SECOND);
        return;
    }
    for (uint32_t n = 0; n < 2; n++) {
        uint32_t number = nibble >> 2 * n & 3;
        for (uint32_t e = 0; e < unit; e++) {
            to[(2 * group + n) * unit + e] = first + number * unit + e;
        }
    }
}

bool sparse_read(struct simt_warp *warp, const struct simt_instruction *i,
                 const struct sparse *form, uint32_t row, uint32_t *columns) {
    uint32_t groups = form->k / group_of(form);
    for (uint32_t r = 0; r < SPARSE_ROWS; r++) {
        for (uint32_t group = 0; group < groups; group++) {
            uint32_t nibble = nibble_of(warp, form, r, group, row);
            if (!is_known_nibble(form, nibble)) {
                return refuse(warp, i, form, r, group, nibble);
            }
            put_columns(form, group, nibble, columns + r * (form->k / 2));
        }
    }
    return true;
}

/**
 * @file fragments.cuh
 * @brief The order of prepared weights: what a lane of a warp multiplies next is 16 bytes in a row.
 *
 * Tiles are 16 rows; a unit of a tile is two loads of 16 bytes a lane, 1 KiB: 128 columns of int4
 * or 64 of int8 and fp8. Units of a tile stand one after another, tiles too. Within 32 columns lane
 * (g, t), g = lane / 4, t = lane % 4, has columns 8 t .. 8 t + 7 of rows g and g + 8: two steps of
 * mma.m16n8k16, whose k is in an order of our own; a lane of `in` has the same eight columns, 16
 * bytes. Behind the values: int4 a word a group and row, ((128 + zero) negative as bf16) << 16 |
 * scale, 16 rows of a tile together; int8 and fp8 the scales by row in fp32.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_FRAGMENTS_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_FRAGMENTS_CUH_

#include <stdint.h>

#include "labs/13_low_bit/low_bit.h"

enum { TILE_ROWS = 16, TILES_TOGETHER = 2, UNIT_WORDS = 256 };

/* Sizes of a prepared matrix. */
struct prepared_sizes {
    size_t tiles, units, groups; /* tiles: a multiple of 2; groups of a row of whole units */
};

static inline struct prepared_sizes prepared_sizes_of(const struct low_bit_layout *l) {
    size_t unit = l->type == LOW_BIT_INT4 ? 128 : 64, units = (l->columns + unit - 1) / unit;
    return (struct prepared_sizes){(l->rows + 31) / 32 * 2, units,
                                   l->type == LOW_BIT_INT4 ? units * unit / l->group : 1};
}

/* Row of the tile and column of the unit of one stored number: `part` of a word (8 nibbles or 4
   bytes), word of a load, load of a unit. */
struct element_place {
    unsigned row, column;
};

static __device__ __forceinline__ struct element_place place_of_int4(unsigned load, unsigned lane,
                                                                     unsigned word, unsigned part) {
    unsigned j = part % 4, half = part / 4; /* register of the fragment; which of its pair */
    return (struct element_place){lane / 4 + (j & 1) * 8, load * 64 + word / 2 * 32 + lane % 4 * 8 +
                                                              word % 2 * 4 + (j >> 1) * 2 + half};
}

static __device__ __forceinline__ struct element_place place_of_byte(unsigned load, unsigned lane,
                                                                     unsigned word, unsigned part) {
    return (struct element_place){lane / 4 + (part & 1) * 8, load * 32 + lane % 4 * 8 +
                                                                 word / 2 * 4 + word % 2 * 2 +
                                                                 (part >> 1)};
}

/* The stored number at (row, column) of a matrix in the plain order; 0 beside it. */
static __device__ unsigned stored(const struct low_bit_matrix &m, size_t row, size_t column) {
    const struct low_bit_layout &l = m.layout;
    if (row >= l.rows || column >= l.columns) {
        return 0;
    }
    const uint8_t *values = (const uint8_t *)m.values;
    if (l.type == LOW_BIT_INT4) {
        return values[row * ((l.columns + 1) / 2) + column / 2] >> (column % 2 * 4) & 15;
    }
    return values[row * l.columns + column];
}

/* A word of a unit: `in_unit` of its UNIT_WORDS, of the rows from `row(0)` on and the unit's
   columns. @param row row of the matrix for a row of the tile */
template <typename ROW>
static __device__ __forceinline__ uint32_t unit_word(const struct low_bit_matrix &m, size_t unit,
                                                     unsigned in_unit, const ROW &row) {
    bool is_int4 = m.layout.type == LOW_BIT_INT4;
    unsigned load = in_unit / 128, lane = in_unit % 128 / 4, word = in_unit % 4;
    unsigned parts = is_int4 ? 8 : 4, bits = is_int4 ? 4 : 8;
    uint32_t made = 0;
    for (unsigned part = 0; part < parts; part++) {
        struct element_place p =
            is_int4 ? place_of_int4(load, lane, word, part) : place_of_byte(load, lane, word, part);
        made |= stored(m, row(p.row), unit * (is_int4 ? 128 : 64) + p.column) << (part * bits);
    }
    return made;
}

/* A group's entry: its scale, and -(128 + zero) as bf16, whose last bit counts 1. */
static __device__ __forceinline__ uint32_t group_entry(const struct low_bit_matrix &m, size_t row,
                                                       size_t group) {
    const struct low_bit_layout &l = m.layout;
    size_t groups = (l.columns + l.group - 1) / l.group;
    uint32_t scale = 0, zero = 8;
    if (row < l.rows && group < groups) {
        scale = ((const uint16_t *)m.scales)[row * groups + group];
        zero = l.has_zeros ? m.zeros[row * groups + group] : 8;
    }
    return (0xc300u | zero) << 16 | scale;
}

/* What prepare_fragments() is about, by value. */
struct prepare_call {
    struct low_bit_matrix matrix;
    struct prepared_sizes sizes;
    uint32_t *values;
    uint32_t *scales;
};

#endif

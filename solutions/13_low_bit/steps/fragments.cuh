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

/* What prepare_fragments() is about, by value. */
struct prepare_call {
    struct low_bit_matrix matrix;
    struct prepared_sizes sizes;
    uint32_t *values;
    uint32_t *scales;
};

#endif

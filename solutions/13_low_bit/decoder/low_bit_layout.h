/**
 * @file low_bit_layout.h
 * @brief How large the matrices of the low-bit decoder are; low_bit_tiles.cuh draws their order.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_LAYOUT_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_LAYOUT_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/checked.h"
#include "common/nn/low_bit.h"

/* Rows of a tile; bytes of a slice's weights, without scales. */
enum { LOW_BIT_TILE_ROWS = 16, LOW_BIT_SLICE_VALUES = 2048 };

/* Sizes of a matrix in the decoder's order. */
struct low_bit_stream {
    size_t tiles, slices; /* slices of a tile */
    size_t slice_columns, slice_bytes;
    size_t bytes; /* all of it, with the scales of rows */
};

/* @param paired gate and up in one matrix, in turn */
static inline struct low_bit_stream low_bit_stream_of(const struct low_bit_layout *l, bool paired) {
    struct low_bit_stream s;
    bool is_int4 = l->type == LOW_BIT_INT4;
    size_t rows = paired ? l->rows / 2 : l->rows;
    s.tiles = ceil_div(rows, paired ? LOW_BIT_TILE_ROWS / 2 : LOW_BIT_TILE_ROWS);
    s.slice_columns = is_int4 ? 256 : 128;
    s.slices = ceil_div(l->columns, s.slice_columns);
    s.slice_bytes = LOW_BIT_SLICE_VALUES;
    s.slice_bytes += is_int4 ? s.slice_columns / l->group * LOW_BIT_TILE_ROWS * 4 : 0;
    s.bytes = s.tiles * s.slices * s.slice_bytes;
    s.bytes += is_int4 ? 0 : s.tiles * LOW_BIT_TILE_ROWS * sizeof(float);
    return s;
}

#endif

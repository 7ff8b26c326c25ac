/**
 * @file prepare_stream.cu
 * @brief Puts a matrix into the decoder's order: tiles of slices, each with its groups' scales.
 */
#include <cuda_runtime.h>

#include "labs/13_low_bit/low_bit.h"
#include "solutions/13_low_bit/decoder/low_bit_decoder.h"
#include "solutions/13_low_bit/decoder/low_bit_layout.h"
#include "solutions/13_low_bit/steps/fragments.cuh"

struct stream_call {
    struct low_bit_matrix matrix;
    struct low_bit_stream sizes;
    bool paired;
    uint32_t *out;
};

/* Row of the matrix for a row of a tile; beside the matrix where there is none. */
static __device__ size_t row_of(const struct stream_call &c, size_t tile, unsigned row) {
    enum { HALF = LOW_BIT_TILE_ROWS / 2 };
    size_t rows = c.matrix.layout.rows, n = tile * HALF + row % HALF;
    if (!c.paired) {
        return tile * LOW_BIT_TILE_ROWS + row;
    }
    return n >= rows / 2 ? rows : row < HALF ? n : rows / 2 + n;
}

/* A word of a slice in the order of integer_weights.cuh. */
static __device__ uint32_t integer_word(const struct stream_call &c, size_t tile, size_t slice,
                                        unsigned at) {
    bool is_int4 = c.matrix.layout.type == LOW_BIT_INT4;
    unsigned load = at / 128, lane = at % 128 / 4, word = at % 4;
    size_t row = row_of(c, tile, lane / 4 + word % 2 * 8);
    size_t column =
        slice * c.sizes.slice_columns + load * (is_int4 ? 64 : 32) + lane % 4 * 8 + word / 2 * 4;
    uint32_t made = 0;
    for (unsigned p = 0; p < 4; p++) {
        unsigned byte = stored(c.matrix, row, column + p);
        byte |= is_int4 ? stored(c.matrix, row, column + p + 32) << 4 : 0;
        made |= byte << (8 * p);
    }
    return made;
}

/* A word of a slice: of weights, or a group's entry. */
static __device__ uint32_t slice_word(const struct stream_call &c, size_t tile, size_t slice,
                                      unsigned at) {
    if (at < LOW_BIT_SLICE_VALUES / 4) {
        return c.matrix.layout.type != LOW_BIT_FP8
                   ? integer_word(c, tile, slice, at)
                   : unit_word(c.matrix, slice * 2 + at / UNIT_WORDS, at % UNIT_WORDS,
                               [&](unsigned row) { return row_of(c, tile, row); });
    }
    unsigned entry = at - LOW_BIT_SLICE_VALUES / 4;
    size_t group = slice * (c.sizes.slice_columns / c.matrix.layout.group) + entry / 16;
    return group_entry(c.matrix, row_of(c, tile, entry % LOW_BIT_TILE_ROWS), group);
}

/* A thread makes a word: of slices, then of the scales of rows. */
static __global__ void stream_kernel(const struct stream_call c, size_t words) {
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, of_slice = c.sizes.slice_bytes / 4;
    size_t of_slices = c.sizes.tiles * c.sizes.slices * of_slice;
    if (at >= words) {
        return;
    }
    if (at < of_slices) {
        size_t slice = at / of_slice;
        c.out[at] = slice_word(c, slice / c.sizes.slices, slice % c.sizes.slices,
                               (unsigned)(at % of_slice));
        return;
    }
    size_t i = at - of_slices;
    size_t row = row_of(c, i / LOW_BIT_TILE_ROWS, (unsigned)(i % LOW_BIT_TILE_ROWS));
    c.out[at] = row < c.matrix.layout.rows ? ((const uint32_t *)c.matrix.scales)[row] : 0;
}

enum status low_bit_decoder_prepare(const struct low_bit_matrix *matrix, bool paired,
                                    void *prepared, device_stream stream, struct error *error) {
    const struct low_bit_layout *layout = &matrix->layout;
    TRY(low_bit_check_layout(layout, error));
    if (paired && layout->rows % 2 != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "low-bit decoder: %zu rows of gate and up; they must be even",
                         layout->rows);
    }
    const struct stream_call c = {*matrix, low_bit_stream_of(layout, paired), paired,
                                  (uint32_t *)prepared};
    size_t words = c.sizes.bytes / 4;
    stream_kernel<<<(unsigned)ceil_div(words, 256), 256, 0, stream>>>(c, words);
    return device_launched("low_bit_decoder_prepare", error);
}

/**
 * @file prepare.cu
 * @brief Puts a matrix into the order in which a step reads it, once, when it is loaded.
 */
#include "solutions/13_low_bit/steps/prepare.cuh"

#include "common/base/checked.h"
#include "solutions/13_low_bit/steps/fragments.cuh"

static enum status copy(void *to, const void *from, size_t bytes, device_stream stream,
                        struct error *error) {
    return bytes == 0 ? STATUS_OK : device_copy(to, from, bytes, stream, error);
}

enum status prepare_plain(const struct low_bit_matrix *matrix, void *prepared, device_stream stream,
                          struct error *error) {
    const struct low_bit_layout *layout = &matrix->layout;
    TRY(low_bit_check_layout(layout, error));
    const struct low_bit_matrix to = plain_parts(layout, prepared);
    TRY(copy(to.values, matrix->values, low_bit_values_bytes(layout), stream, error));
    TRY(copy(to.scales, matrix->scales, low_bit_scales_bytes(layout), stream, error));
    return copy(to.zeros, matrix->zeros, low_bit_zeros_bytes(layout), stream, error);
}

/* ---- Fragments: fragments.cuh draws the order ---- */

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

/* A thread makes a word. */
static __global__ void values_kernel(const struct prepare_call c, size_t words) {
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= words) {
        return;
    }
    bool is_int4 = c.matrix.layout.type == LOW_BIT_INT4;
    size_t tile = at / UNIT_WORDS / c.sizes.units, unit = at / UNIT_WORDS % c.sizes.units;
    unsigned in_unit = (unsigned)(at % UNIT_WORDS), parts = is_int4 ? 8 : 4, bits = is_int4 ? 4 : 8;
    unsigned load = in_unit / 128, lane = in_unit % 128 / 4, word = in_unit % 4;
    uint32_t made = 0;
    for (unsigned part = 0; part < parts; part++) {
        struct element_place p =
            is_int4 ? place_of_int4(load, lane, word, part) : place_of_byte(load, lane, word, part);
        made |= stored(c.matrix, tile * TILE_ROWS + p.row, unit * (is_int4 ? 128 : 64) + p.column)
                << (part * bits);
    }
    c.values[at] = made;
}

/* A thread makes an entry: a group's scale, and -(128 + zero) as bf16, whose last bit counts 1. */
static __global__ void groups_kernel(const struct prepare_call c, size_t entries) {
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= entries) {
        return;
    }
    const struct low_bit_layout &l = c.matrix.layout;
    size_t groups = (l.columns + l.group - 1) / l.group;
    size_t row = at / TILE_ROWS / c.sizes.groups * TILE_ROWS + at % TILE_ROWS;
    size_t group = at / TILE_ROWS % c.sizes.groups;
    uint32_t scale = 0, zero = 8;
    if (row < l.rows && group < groups) {
        scale = ((const uint16_t *)c.matrix.scales)[row * groups + group];
        zero = l.has_zeros ? c.matrix.zeros[row * groups + group] : 8;
    }
    c.scales[at] = (0xc300u | zero) << 16 | scale;
}

enum status prepare_fragments(const struct low_bit_matrix *matrix, void *prepared,
                              device_stream stream, struct error *error) {
    const struct low_bit_layout *layout = &matrix->layout;
    TRY(low_bit_check_layout(layout, error));
    const struct prepared_sizes sizes = prepared_sizes_of(layout);
    size_t words = sizes.tiles * sizes.units * UNIT_WORDS;
    const struct prepare_call c = {*matrix, sizes, (uint32_t *)prepared,
                                   (uint32_t *)prepared + words};
    values_kernel<<<(unsigned)ceil_div(words, 256), 256, 0, stream>>>(c, words);
    TRY(device_launched("low_bit values", error));
    if (layout->type != LOW_BIT_INT4) {
        return copy(c.scales, matrix->scales, low_bit_scales_bytes(layout), stream, error);
    }
    size_t entries = sizes.tiles * sizes.groups * TILE_ROWS;
    groups_kernel<<<(unsigned)ceil_div(entries, 256), 256, 0, stream>>>(c, entries);
    return device_launched("low_bit groups", error);
}

enum status low_bit_needs_bf16(struct error *error) {
    struct device_properties gpu;
    TRY(device_properties(&gpu, error));
    return gpu.code >= 80 ? STATUS_OK
                          : error_set(error, STATUS_UNSUPPORTED,
                                      "low_bit: products of bf16 need compute capability 8.0");
}

/**
 * @file prepare.cu
 * @brief Puts a matrix into the order in which a step reads it, once, when it is loaded.
 */
#include "solutions/13_low_bit/steps/prepare.cuh"

#include "common/base/checked.h"
#include "common/cuda/gpu_limits.cuh"
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

/* A thread makes a word. */
static __global__ void values_kernel(const struct prepare_call c, size_t words) {
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < words) {
        size_t tile = at / UNIT_WORDS / c.sizes.units, unit = at / UNIT_WORDS % c.sizes.units;
        c.values[at] = unit_word(c.matrix, unit, (unsigned)(at % UNIT_WORDS),
                                 [=](unsigned row) { return tile * TILE_ROWS + row; });
    }
}

/* A thread makes an entry. */
static __global__ void groups_kernel(const struct prepare_call c, size_t entries) {
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < entries) {
        size_t tile = at / TILE_ROWS / c.sizes.groups, group = at / TILE_ROWS % c.sizes.groups;
        c.scales[at] = group_entry(c.matrix, tile * TILE_ROWS + at % TILE_ROWS, group);
    }
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
    return gpu_code() >= 80 ? STATUS_OK
                            : error_set(error, STATUS_UNSUPPORTED,
                                        "low_bit: products of bf16 need compute capability 8.0");
}

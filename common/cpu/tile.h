/**
 * @file tile.h
 * @brief A tile of a product, held in vector registers: out (rows, 2 lanes) = a (rows, depth) *
 *        b (depth, 2 lanes), for attention and for gemm.c.
 *
 * TILE_KERNEL(lanes) defines a vector type and `tile_<lanes>`, whose number of rows is a constant
 * wherever it is inlined. A vector must not be longer than the CPU's registers.
 */
#ifndef WARPBOOK_COMMON_CPU_TILE_H_
#define WARPBOOK_COMMON_CPU_TILE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/cpu.h"

/** The operands of one tile. Element (r, k) of a is a[r * a_row + k * a_depth]. */
struct tile {
    const float *a;
    size_t a_row, a_depth;
    const float *b; /**< rows b_stride apart */
    size_t b_stride;
    size_t depth;
    float *out; /**< rows out_stride apart */
    size_t out_stride;
    bool add; /**< to the values in out */
};

#define TILE_KERNEL(lanes)                                                                     \
    typedef float tile_vector_##lanes                                                          \
        __attribute__((vector_size((lanes) * sizeof(float)), aligned(4), may_alias));          \
    CPU_INLINE void tile_##lanes(const struct tile *t, const size_t rows) {                    \
        typedef float vector __attribute__((vector_size((lanes) * sizeof(float)), may_alias)); \
        vector sum[12][2] = {0};                                                               \
        for (size_t k = 0; k < t->depth; k++) {                                                \
            vector b0 = *(const tile_vector_##lanes *)(t->b + k * t->b_stride);                \
            vector b1 = *(const tile_vector_##lanes *)(t->b + k * t->b_stride + (lanes));      \
            _Pragma("GCC unroll 12") for (size_t r = 0; r < rows; r++) {                       \
                float a = t->a[r * t->a_row + k * t->a_depth];                                 \
                sum[r][0] += a * b0;                                                           \
                sum[r][1] += a * b1;                                                           \
            }                                                                                  \
        }                                                                                      \
        _Pragma("GCC unroll 12") for (size_t r = 0; r < rows; r++) {                           \
            tile_vector_##lanes *out = (tile_vector_##lanes *)(t->out + r * t->out_stride);    \
            tile_vector_##lanes *next = (tile_vector_##lanes *)((float *)out + (lanes));       \
            *out = sum[r][0] + (t->add ? (vector)*out : (vector){0});                          \
            *next = sum[r][1] + (t->add ? (vector)*next : (vector){0});                        \
        }                                                                                      \
    }

TILE_KERNEL(16)
TILE_KERNEL(8)
TILE_KERNEL(4)

/** A tile of 32 columns, with vectors of @p lanes. @p rows is a constant, 1 to 12. */
CPU_INLINE void tile_of_32(const struct tile *tile, const size_t rows, size_t lanes) {
    if (lanes == 16) {
        tile_16(tile, rows);
        return;
    }
    for (size_t n = 0; n < 32; n += 2 * lanes) {
        struct tile part = *tile;
        part.b += n;
        part.out += n;
        if (lanes == 8) {
            tile_8(&part, rows);
        } else {
            tile_4(&part, rows);
        }
    }
}

/** @p rows rows, any number, of 32 columns. */
CPU_INLINE void tile_rows(const struct tile *tile, size_t rows, size_t lanes) {
    struct tile part = *tile;
    while (rows > 0) {
        size_t step;
        if (lanes == 16 && rows >= 12) {
            tile_of_32(&part, step = 12, lanes);
        } else if (rows >= 4) {
            tile_of_32(&part, step = 4, lanes);
        } else if (rows >= 2) {
            tile_of_32(&part, step = 2, lanes);
        } else {
            tile_of_32(&part, step = 1, lanes);
        }
        rows -= step;
        part.a += step * part.a_row;
        part.out += step * part.out_stride;
    }
}

#endif

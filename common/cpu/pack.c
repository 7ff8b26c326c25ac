#include "common/cpu/pack.h"

#include <string.h>

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int quad_index __attribute__((vector_size(16)));

/* to (4, 4), rows `width` apart, = from (4, 4)^T, rows `stride` apart. */
static inline void transpose_4x4(float *to, size_t width, const float *from, size_t stride) {
    const quad_index evens = {0, 4, 2, 6}, odds = {1, 5, 3, 7};
    const quad_index lows = {0, 1, 4, 5}, highs = {2, 3, 6, 7};
    quad a = *(const quad *)from, b = *(const quad *)(from + stride);
    quad c = *(const quad *)(from + 2 * stride), d = *(const quad *)(from + 3 * stride);
    quad ab_even = __builtin_shuffle(a, b, evens), ab_odd = __builtin_shuffle(a, b, odds);
    quad cd_even = __builtin_shuffle(c, d, evens), cd_odd = __builtin_shuffle(c, d, odds);
    *(quad *)to = __builtin_shuffle(ab_even, cd_even, lows);
    *(quad *)(to + width) = __builtin_shuffle(ab_odd, cd_odd, lows);
    *(quad *)(to + 2 * width) = __builtin_shuffle(ab_even, cd_even, highs);
    *(quad *)(to + 3 * width) = __builtin_shuffle(ab_odd, cd_odd, highs);
}

/* Columns of `from` are contiguous: four of them at a time. */
static void pack_transposed(float *to, struct strided from, size_t depth, size_t count,
                            size_t width) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float *columns = from.at + i * from.column;
        size_t k = 0;
        for (; k + 4 <= depth; k += 4) {
            transpose_4x4(to + k * width + i, width, columns + k, from.column);
        }
        for (; k < depth; k++) {
            for (size_t j = 0; j < 4; j++) {
                to[k * width + i + j] = columns[j * from.column + k];
            }
        }
    }
    for (; i < width; i++) {
        for (size_t k = 0; k < depth; k++) {
            to[k * width + i] = i < count ? from.at[i * from.column + k] : 0.0f;
        }
    }
}

void cpu_pack_panel(float *to, struct strided from, size_t depth, size_t count, size_t width) {
    if (from.row == 1 && from.column != 1) {
        pack_transposed(to, from, depth, count, width);
        return;
    }
    for (size_t k = 0; k < depth; k++, to += width) {
        const float *row = from.at + k * from.row;
        if (from.column == 1) {
            memcpy(to, row, count * sizeof *to);
        } else {
            for (size_t i = 0; i < count; i++) {
                to[i] = row[i * from.column];
            }
        }
        memset(to + count, 0, (width - count) * sizeof *to);
    }
}

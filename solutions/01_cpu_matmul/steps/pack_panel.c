/**
 * @file pack_panel.c
 * @brief Part of v4: copies the weights of 32 output features in the order in which the tile reads
 * them.
 *
 * In the weight neighbours in memory have consecutive k; the tile needs 32
 * consecutive n: a transpose. It is done in squares of 4 x 4 with eight shuffles
 * each. At M = 128 a weight is used only 128 times per copy, so a slow transpose
 * would show.
 */
#include "solutions/01_cpu_matmul/steps/ladder.h"

typedef float quad __attribute__((vector_size(16), may_alias));
typedef float loose_quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int quad_index __attribute__((vector_size(16)));

/* packed (4, 4), rows MATMUL_PANEL apart, = in (4, 4)^T, rows K apart. */
static inline void transpose_4x4(float *packed, const float *in, size_t K) {
    const quad_index low = {0, 4, 1, 5}, high = {2, 6, 3, 7};
    const quad_index left = {0, 1, 4, 5}, right = {2, 3, 6, 7};
    quad a = *(const loose_quad *)in, b = *(const loose_quad *)(in + K);
    quad c = *(const loose_quad *)(in + 2 * K), d = *(const loose_quad *)(in + 3 * K);
    quad ab_low = __builtin_shuffle(a, b, low), ab_high = __builtin_shuffle(a, b, high);
    quad cd_low = __builtin_shuffle(c, d, low), cd_high = __builtin_shuffle(c, d, high);
    *(quad *)packed = __builtin_shuffle(ab_low, cd_low, left);
    *(quad *)(packed + MATMUL_PANEL) = __builtin_shuffle(ab_low, cd_low, right);
    *(quad *)(packed + 2 * MATMUL_PANEL) = __builtin_shuffle(ab_high, cd_high, left);
    *(quad *)(packed + 3 * MATMUL_PANEL) = __builtin_shuffle(ab_high, cd_high, right);
}

void matmul_pack_panel(float *panel, const float *weight, size_t K, size_t columns, size_t depth) {
    for (size_t n = 0; n < MATMUL_PANEL; n += 4) {
        size_t k = 0;
        for (; n + 4 <= columns && k + 4 <= depth; k += 4) {
            transpose_4x4(panel + k * MATMUL_PANEL + n, weight + n * K + k, K);
        }
        for (; k < depth; k++) {
            for (size_t i = n; i < n + 4; i++) {
                panel[k * MATMUL_PANEL + i] = i < columns ? weight[i * K + k] : 0.0f;
            }
        }
    }
}

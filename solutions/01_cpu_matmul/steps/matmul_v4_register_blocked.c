/**
 * @file matmul_v4_register_blocked.c
 * @brief A tile of the output stays in vector registers over a loop along K.
 *
 * Changes since v3: the innermost work is a tile of 12 rows x 32 columns of
 * out, held in 24 vector registers (GCC's vector extensions); per k it takes 2
 * vectors of weights and 12 broadcast inputs for 24 fused multiply-adds. Both
 * operands are first copied ("packed") into panels that the tile reads front
 * to back: inputs as they are, weights transposed (pack_panel.c). few_rows.c
 * multiplies products of few rows.
 *
 * Why: relieves loads and stores. v3 needs two loads and a store for each
 * vector of products; here one load serves 1.7 of them, and out is touched
 * once per DEPTH products. The 24 sums are independent: more than the 8 that
 * two units with a latency of 4 cycles need.
 *
 * Blocks as in Goto and van de Geijn, "Anatomy of High-Performance Matrix
 * Multiplication" (2008): a panel of weights, DEPTH x 32, stays in L1 while the
 * block of inputs, BLOCK_M x DEPTH, passes from L2.
 *
 * With fewer and shorter registers (AVX2: 16 of 8 floats) the tile is 4 rows x 2 vectors.
 *
 * Measured on AMD EPYC (family 26), one core: 512x512x512 1.07 ms, 250 GFLOP/s, 2.3x v3, 93% of
 * the core's peak, 103% of OpenBLAS 0.3.21 with its AVX-512 kernels; at 1024x1024x1024 97%. With
 * vectors of 8 floats 118, with 4 floats 45 GFLOP/s.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cpu.h"
#include "solutions/01_cpu_matmul/steps/ladder.h"

enum {
    COLUMNS = MATMUL_PANEL, /* of a tile, and of a panel of weights: two vectors of 16 */
    ROWS = 12,              /* of a tile */
    FEW = 4,                /* rows of the tile for the remaining rows */
    DEPTH = 256,            /* of a panel: 32 KiB of weights */
    BLOCK_M = 10 * ROWS,    /* 120 KiB of inputs */
    BLOCK_N = 16 * COLUMNS
};

const size_t matmul_v4_scratch = (size_t)(BLOCK_M + BLOCK_N) * DEPTH;

/* Where a tile is stored. With add, it is added to the values there. */
struct target {
    float *out;
    size_t stride;
    bool add;
};

#define TILE tile_12x32
#define TILE_ROWS 12
#define TILE_VECTORS 2
#define TILE_LANES 16
#include "solutions/01_cpu_matmul/steps/tile.h"

#define TILE tile_4x32
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define TILE_LANES 16
#include "solutions/01_cpu_matmul/steps/tile.h"

#define TILE tile_4x8
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define TILE_LANES 4
#include "solutions/01_cpu_matmul/steps/tile.h"

#define TILE tile_4x16
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define TILE_LANES 8
#include "solutions/01_cpu_matmul/steps/tile.h"

/* The tile for this CPU's vectors. */
CPU_INLINE void any_tile(struct target t, const float *inputs, const float *panel, size_t depth,
                         size_t rows, size_t lanes) {
    if (rows == ROWS) {
        tile_12x32(t, inputs, panel, depth);
    } else if (lanes == 16) {
        tile_4x32(t, inputs, panel, depth);
    } else {
        for (size_t n = 0; n < COLUMNS; n += 2 * lanes) {
            struct target part = {t.out + n, t.stride, t.add};
            if (lanes == 8) {
                tile_4x16(part, inputs, panel + n, depth);
            } else {
                tile_4x8(part, inputs, panel + n, depth);
            }
        }
    }
}

/* One panel of weights against all packed rows. A tile that reaches beyond the output is computed
   in a buffer, and the part inside is copied. */
CPU_INLINE void multiply_panel(struct target t, const float *inputs, const float *panel,
                               size_t depth, size_t rows, size_t columns, size_t lanes) {
    float edge[ROWS * COLUMNS];
    size_t step;
    for (size_t r = 0; r < rows; r += step) {
        step = lanes == 16 && rows - r >= ROWS ? ROWS : FEW;
        float *out = t.out + r * t.stride;
        if (columns == COLUMNS && rows - r >= step) {
            any_tile((struct target){out, t.stride, t.add}, inputs + r * DEPTH, panel, depth, step,
                     lanes);
            continue;
        }
        any_tile((struct target){edge, COLUMNS, false}, inputs + r * DEPTH, panel, depth, step,
                 lanes);
        for (size_t i = 0; i < least(step, rows - r); i++) {
            for (size_t n = 0; n < columns; n++) {
                float sum = edge[i * COLUMNS + n];
                out[i * t.stride + n] = t.add ? out[i * t.stride + n] + sum : sum;
            }
        }
    }
}

CPU_CLONES
static void multiply_block(struct target t, const float *inputs, const float *panels, size_t rows,
                           size_t columns, size_t depth, size_t lanes) {
    for (size_t n = 0; n < columns; n += COLUMNS) {
        multiply_panel((struct target){t.out + n, t.stride, t.add}, inputs, panels + n * DEPTH,
                       depth, rows, least(COLUMNS, columns - n), lanes);
    }
}

/* packed (rows, DEPTH) = in (rows, depth), and rows of zeros up to a multiple of FEW. */
static void pack_inputs(float *packed, const float *in, size_t K, size_t rows, size_t depth) {
    for (size_t r = 0; r < rows; r++) {
        memcpy(packed + r * DEPTH, in + r * K, depth * sizeof *packed);
    }
    for (size_t r = rows; r % FEW != 0; r++) {
        memset(packed + r * DEPTH, 0, depth * sizeof *packed);
    }
}

void matmul_v4_part(float *out, size_t stride, const float *in, const float *weight, size_t M,
                    size_t N, size_t K, float *scratch) {
    if (matmul_few_rows(M) || K == 0) {
        matmul_few_rows_part(out, stride, in, weight, M, N, K);
        return;
    }
    size_t lanes = cpu_vector_floats();
    float *inputs = scratch, *panels = scratch + BLOCK_M * DEPTH;
    for (size_t n = 0; n < N; n += BLOCK_N) {
        size_t columns = least(BLOCK_N, N - n);
        for (size_t k = 0; k < K; k += DEPTH) {
            size_t depth = least(DEPTH, K - k);
            for (size_t i = 0; i < columns; i += COLUMNS) {
                matmul_pack_panel(panels + i * DEPTH, weight + (n + i) * K + k, K, columns - i,
                                  depth);
            }
            for (size_t m = 0; m < M; m += BLOCK_M) {
                struct target target = {out + m * stride + n, stride, k > 0};
                pack_inputs(inputs, in + m * K + k, K, least(BLOCK_M, M - m), depth);
                multiply_block(target, inputs, panels, least(BLOCK_M, M - m), columns, depth,
                               lanes);
            }
        }
    }
}

enum status matmul_v4_register_blocked(float *out, const float *in, const float *weight, size_t M,
                                       size_t N, size_t K, int threads) {
    (void)threads;
    float *scratch = NULL;
    if (!matmul_few_rows(M)) {
        scratch = aligned_alloc(64, matmul_v4_scratch * sizeof *scratch);
        if (scratch == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    matmul_v4_part(out, N, in, weight, M, N, K, scratch);
    free(scratch);
    return STATUS_OK;
}

/**
 * @file gemm.c
 * @brief Blocks of C, one an item of work; for each block and DEPTH of K, A and B are packed.
 *
 * A block stays in L2 while panels of A (12 rows) and of B (32 columns) pass; see tile.h.
 */
#include "common/cpu/gemm.h"

#include <string.h>

#include "common/base/checked.h"
#include "common/cpu/parallel.h"
#include "common/cpu/tile.h"

enum {
    ROWS = 12,
    COLUMNS = 32,
    DEPTH = 256,
    MOST_M = 20 * ROWS, /* of a block */
    MOST_N = 16 * COLUMNS,
    SCRATCH = (MOST_M + MOST_N) * DEPTH + ROWS * COLUMNS /* floats of a thread */
};

struct call {
    const struct gemm *g;
    float *scratch;
    size_t block_m, block_n; /* sizes of a block; how C is divided changes no sum */
    size_t across;           /* blocks in a row of blocks */
};

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Rows and columns of one block, and where it is packed. */
struct block {
    size_t m, n, rows, columns;
    float *a, *b, *edge;
};

static void pack(const struct block *block, const struct gemm *g, size_t k, size_t depth) {
    for (size_t r = 0; r < block->rows; r += ROWS) {
        const struct strided a = {g->a.at + (block->m + r) * g->a.row + k * g->a.column,
                                  g->a.column, g->a.row};
        cpu_pack_panel(block->a + r * DEPTH, a, depth, least(ROWS, block->rows - r), ROWS);
    }
    for (size_t n = 0; n < block->columns; n += COLUMNS) {
        const struct strided b = {g->b.at + k * g->b.row + (block->n + n) * g->b.column, g->b.row,
                                  g->b.column};
        cpu_pack_panel(block->b + n * DEPTH, b, depth, least(COLUMNS, block->columns - n), COLUMNS);
    }
}

/* A tile that reaches beyond C is computed in a buffer. */
CPU_INLINE void multiply_tile(const struct block *block, const struct gemm *g, size_t r, size_t n,
                              size_t depth, bool add, size_t lanes) {
    size_t rows = least(ROWS, block->rows - r), columns = least(COLUMNS, block->columns - n);
    float *out = g->c + (block->m + r) * g->N + block->n + n;
    struct tile tile = {.a = block->a + r * DEPTH,
                        .a_row = 1,
                        .a_depth = ROWS,
                        .b = block->b + n * DEPTH,
                        .b_stride = COLUMNS,
                        .depth = depth,
                        .out = out,
                        .out_stride = g->N,
                        .add = add};
    if (columns == COLUMNS) {
        tile_rows(&tile, rows, lanes);
        return;
    }
    tile.out = block->edge;
    tile.out_stride = COLUMNS;
    tile.add = false;
    tile_rows(&tile, rows, lanes);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            float sum = block->edge[i * COLUMNS + j];
            out[i * g->N + j] = add ? sum + out[i * g->N + j] : sum;
        }
    }
}

CPU_CLONES
static void multiply_block(const struct block *block, const struct gemm *g, size_t depth, bool add,
                           size_t lanes) {
    for (size_t n = 0; n < block->columns; n += COLUMNS) {
        for (size_t r = 0; r < block->rows; r += ROWS) {
            multiply_tile(block, g, r, n, depth, add, lanes);
        }
    }
}

/* Before the first sums are added: the bias, or zeros where there is nothing to multiply. */
static void fill(const struct block *block, const struct gemm *g) {
    for (size_t r = 0; r < block->rows; r++) {
        float *out = g->c + (block->m + r) * g->N + block->n;
        if (g->bias != NULL) {
            memcpy(out, g->bias + block->n, block->columns * sizeof *out);
        } else {
            memset(out, 0, block->columns * sizeof *out);
        }
    }
}

static void multiply_items(void *arguments, int thread, size_t begin, size_t end) {
    const struct call *call = arguments;
    const struct gemm *g = call->g;
    float *scratch = call->scratch + (size_t)thread * SCRATCH;
    for (size_t item = begin; item < end; item++) {
        struct block block = {.m = item / call->across * call->block_m,
                              .n = item % call->across * call->block_n,
                              .a = scratch,
                              .b = scratch + MOST_M * DEPTH,
                              .edge = scratch + (MOST_M + MOST_N) * DEPTH};
        block.rows = least(call->block_m, g->M - block.m);
        block.columns = least(call->block_n, g->N - block.n);
        bool filled = !g->add && (g->bias != NULL || g->K == 0);
        if (filled) {
            fill(&block, g);
        }
        for (size_t k = 0; k < g->K; k += DEPTH) {
            size_t depth = least(DEPTH, g->K - k);
            pack(&block, g, k, depth);
            multiply_block(&block, g, depth, g->add || filled || k > 0, cpu_vector_floats());
        }
    }
}

/* Blocks as large as possible, but several for each thread. */
static void divide(struct call *call, int threads) {
    size_t M = call->g->M, N = call->g->N, wanted = threads > 1 ? 3 * (size_t)threads : 1;
    call->block_m = MOST_M;
    call->block_n = MOST_N;
    while (ceil_div(M, call->block_m) * ceil_div(N, call->block_n) < wanted &&
           (call->block_m > 2 * ROWS || call->block_n > 2 * COLUMNS)) {
        bool columns =
            call->block_n > 2 * COLUMNS &&
            (least(N, call->block_n) >= least(M, call->block_m) || call->block_m <= 2 * ROWS);
        if (columns) {
            call->block_n = ceil_div(call->block_n / 2, COLUMNS) * COLUMNS;
        } else {
            call->block_m = ceil_div(call->block_m / 2, ROWS) * ROWS;
        }
    }
    call->across = ceil_div(N, call->block_n);
}

enum status cpu_gemm(int threads, struct cpu_scratch *scratch, const struct gemm *g) {
    struct call call = {.g = g};
    if (g->M == 0 || g->N == 0) {
        return STATUS_OK;
    }
    TRY(cpu_scratch_reserve(scratch, (size_t)threads, SCRATCH));
    call.scratch = scratch->memory;
    divide(&call, threads);
    cpu_parallel_for(threads, ceil_div(g->M, call.block_m) * call.across, 1, multiply_items, &call);
    return STATUS_OK;
}

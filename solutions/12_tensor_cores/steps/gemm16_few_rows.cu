/**
 * @file gemm16_few_rows.cu
 * @brief Which kernel few rows get: gemm16_sliced(), gemm16_skinny() and gemm16_bulk() as measured
 *        on an H200 for 1 to 128 rows of 27 matrices of weights, 640 x 2560 to 22016 x 4096;
 *        gemm16_stream() as measured on an H100 for up to 16 rows of 14 of these.
 */
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

bool gemm16_few_rows_can(const struct gemm16_problem *p) {
    return has_plain_rows(p) && p->M <= GEMM16_FEW_ROWS;
}

/* By gemm16_stream(): blocks of 8 rows of weight, with many warps, where blocks of 16 are less than
   one a multiprocessor. */
static enum status stream_rows(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                               device_stream stream, struct error *error) {
    enum { ROWS_8, ROWS_16 = 2, ROWS_32 = 4 };
    bool narrow = (p->N + 15) / 16 <= (size_t)gpu->multiprocessors;
    int shape = p->M <= 8 ? ROWS_8 : p->M <= 16 ? ROWS_16 : ROWS_32;
    return gemm16_stream(p, shape + (shape < ROWS_32 && !narrow ? 1 : 0), stream, error);
}

enum {
    ROWS_16,
    ROWS_32,
    ROWS_64,
    ROWS_96,
    ROWS_128,
    DEEP = 3 /* from 64, 96 and 128 rows to those with deep rings */
};

/* Tiles of gemm16_bulk(): all rows, or where columns are few two tiles of 64. */
static int bulk_shape(size_t M, size_t tiles, size_t wave) {
    bool halved = M > 96 && 8 * tiles <= wave;
    return M <= 16             ? ROWS_16
           : M <= 32           ? ROWS_32
           : M <= 64 || halved ? ROWS_64
           : M <= 96           ? ROWS_96
                               : ROWS_128;
}

/* Blocks of clusters that run at the same time: a cluster lies within a GPC, and not all of these
   have the same number of multiprocessors. On an H200 24 clusters of four do, 32 do not; 20 and 24
   of five; 16 of six, not of seven. */
static size_t blocks_at_once(size_t wave, unsigned cluster) {
    return cluster <= 2 ? wave : cluster <= 4 ? wave * 10 / 11 : wave * 7 / 9;
}

/* By gemm16_bulk(): as many blocks share K as run at the same time, with six steps each or more. */
static enum status bulk_rows(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                             device_stream stream, struct error *error) {
    int count;
    size_t wave = (size_t)gpu->multiprocessors;
    size_t tiles = (p->N + 63) / 64, steps = (p->K + 63) / 64;
    int shape = bulk_shape(p->M, tiles, wave);
    size_t rows = gemm16_bulk_shapes(&count)[shape].rows;
    size_t all = tiles * ((p->M + rows - 1) / rows);
    unsigned blocks = 1;
    for (unsigned n = 2; n <= 8; n++) {
        if (all * n <= blocks_at_once(wave, n) && steps >= 6 * n) {
            blocks = n;
        }
    }
    bool deep = shape >= ROWS_64 && all * blocks <= wave && steps > 12 * blocks;
    return gemm16_bulk(p, shape + (deep ? DEEP : 0), blocks, stream, error);
}

/* Whether blocks must share K: few columns, and K is long. */
static bool is_long(const struct gemm16_problem *p, size_t wave) {
    return p->M > 32 && p->N <= 16 * wave && 2 * p->K >= 5 * p->N;
}

/* The kernel of gemm16_sliced(), or -1 if others should be faster: up to 64 rows and not too few
   columns, in tiles as narrow as two blocks a multiprocessor allow, or three. */
static int sliced_shape(const struct gemm16_problem *p, size_t wave) {
    enum { ROWS_8, ROWS_8_WIDE, ROWS_16, ROWS_16_WIDE, ROWS_32, ROWS_32_WIDE };
    int narrow = p->M <= 8 ? ROWS_8 : p->M <= 16 ? ROWS_16 : ROWS_32;
    size_t blocks = (p->N + 15) / 16, wide_blocks = (p->N + 31) / 32;
    if (p->M > 64 || p->N < 4 * wave) { /* fewer columns were not measured */
        return -1;
    }
    if (p->M > 32) { /* two tiles of rows */
        return blocks <= wave && !is_long(p, wave) ? narrow : -1;
    }
    return blocks <= 2 * wave                          ? narrow
           : wide_blocks <= (p->M > 16 ? 2 : 3) * wave ? narrow + 1
                                                       : -1;
}

enum {
    COLUMNS_16,
    COLUMNS_24,
    COLUMNS_32_ONE, /* blocks a multiprocessor; those without a number have two */
    COLUMNS_32,
    COLUMNS_32_THREE,
    COLUMNS_48,
    COLUMNS_24_SPLIT, /* two warpgroups that split K */
    COLUMNS_40_SPLIT
};

/* Whether tiles of so many columns leave a block for a third of the multiprocessors, and no more
   than `most` for any. */
static bool fills(const struct gemm16_problem *p, size_t columns, size_t most, size_t wave) {
    size_t blocks = (p->N + columns - 1) / columns * ((p->M + 63) / 64);
    return 3 * blocks > wave && blocks <= most * wave;
}

/* The kernel of gemm16_skinny(), or -1 if others should be faster. */
static int skinny_shape(const struct gemm16_problem *p, size_t wave) {
    if (p->M <= 32) { /* more columns than gemm16_sliced() takes */
        return p->N >= 4 * wave ? COLUMNS_32_THREE : -1;
    }
    if (is_long(p, wave)) {
        return -1;
    }
    if (p->N > 16 * wave && p->N <= 20 * wave) { /* one block a multiprocessor */
        return p->M <= 64 ? COLUMNS_24_SPLIT : COLUMNS_40_SPLIT;
    }
    if (p->K <= 1024 && fills(p, 16, p->M <= 64 ? 2 : 1, wave)) {
        return COLUMNS_16;
    }
    if (p->K > 1024 && fills(p, 32, 1, wave)) {
        return COLUMNS_32_ONE;
    }
    if (p->M > 64) {
        return p->N <= 1024                            ? -1
               : p->K <= 3072 && fills(p, 24, 2, wave) ? COLUMNS_24
               : p->K <= 2048 && fills(p, 32, 2, wave) ? COLUMNS_32
                                                       : -1;
    }
    return p->N < 2048 ? -1 : fills(p, 24, 2, wave) ? COLUMNS_24 : COLUMNS_48;
}

bool gemm16_few_rows_are_faster(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    /* More than 64 rows, and more than two waves of gemm16_bulk()'s blocks: 128 x 22016 x 4096
       takes 59.2 us by tiles of 128 x 192, by these 63.5 (H200). */
    bool wide = p->M > 64 && p->N > 128 * (size_t)gpu->multiprocessors;
    return gemm16_few_rows_can(p) && (p->M <= 16 || (!wide && gemm16_bulk_can(p, gpu)));
}

enum status gemm16_few_rows(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                            device_stream stream, struct error *error) {
    size_t wave = (size_t)gpu->multiprocessors;
    if (!gemm16_bulk_can(p, gpu)) {
        return stream_rows(p, gpu, stream, error);
    }
    int sliced = sliced_shape(p, wave), skinny = skinny_shape(p, wave);
    if (sliced >= 0) {
        return gemm16_sliced(p, sliced, stream, error);
    }
    if (skinny >= 0) {
        return gemm16_skinny(p, skinny, stream, error);
    }
    bool is_small = p->M <= 8 || (p->K <= 1024 && p->M <= 32);
    return is_small ? stream_rows(p, gpu, stream, error) : bulk_rows(p, gpu, stream, error);
}

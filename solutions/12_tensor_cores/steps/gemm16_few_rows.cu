/**
 * @file gemm16_few_rows.cu
 * @brief Which kernel few rows get: gemm16_sliced() and gemm16_skinny() as measured on an H200 for
 *        1 to 128 rows of 14 matrices of weights, 768 x 768 to 22016 x 4096; gemm16_stream() and
 *        gemm16_bulk() as measured on an H100 for 1, 8, 16, 64 and 128 rows of these.
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
    ROWS_128,
    ROWS_128_DEEP,
    ROWS_64_DEEP,
    ROWS_32_DEEP,
    ROWS_16_DEEP
};

/* Whether four blocks a tile nearly fill the GPU. */
static bool is_a_quarter(size_t tiles, size_t wave) {
    return 4 * tiles <= wave && 5 * tiles > wave;
}

/* Rows a tile: the most that leave half of the multiprocessors a block. */
static int bulk_shape(size_t M, size_t tiles, size_t steps, size_t wave) {
    size_t half = wave / 2 - 2;
    if (M <= 16) {
        return steps <= 32 && tiles <= wave / 2 ? ROWS_16_DEEP : ROWS_16;
    }
    if (M <= 32) {
        return ROWS_32;
    }
    if (M <= 64 && tiles >= half && 2 * tiles <= wave && steps >= 64) {
        return ROWS_64_DEEP;
    }
    if (M <= 64) {
        return tiles < (steps > 128 ? half : half * 5 / 4) ? ROWS_32
               : tiles > 2 * wave                          ? ROWS_64_DEEP
                                                           : ROWS_64;
    }
    if (tiles >= half) {
        return tiles < wave || tiles > 2 * wave ? ROWS_128_DEEP : ROWS_128;
    }
    if (is_a_quarter(tiles, wave) && steps > 64) {
        return ROWS_128_DEEP; /* by three blocks */
    }
    return 4 * tiles <= wave && steps <= 64                       ? ROWS_32
           : 2 * tiles <= wave && 4 * tiles > wave && steps >= 16 ? ROWS_64_DEEP
                                                                  : ROWS_64;
}

/* By gemm16_bulk(): clusters, while there is a multiprocessor for each block and enough steps of K
   for each; few rows are done sooner than a cluster meets. */
static enum status bulk_rows(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                             device_stream stream, struct error *error) {
    int count;
    size_t wave = (size_t)gpu->multiprocessors;
    size_t tiles = (p->N + 63) / 64, steps = (p->K + 63) / 64;
    int shape = bulk_shape(p->M, tiles, steps, wave);
    size_t rows = gemm16_bulk_shapes(&count)[shape].rows;
    size_t all = tiles * ((p->M + rows - 1) / rows);
    unsigned blocks = shape == ROWS_128_DEEP && is_a_quarter(tiles, wave) ? 3 : 1;
    while (blocks < 8 && 2 * blocks * all <= wave) {
        size_t least = shape == ROWS_64_DEEP ? 64 /* steps of a block */
                       : p->M > 16           ? 8
                       : all * blocks <= 24  ? 12
                                             : 40;
        if (steps < 2 * blocks * least) {
            break;
        }
        blocks *= 2;
    }
    return gemm16_bulk(p, shape, blocks, stream, error);
}

/* The kernel of gemm16_sliced(), or -1 if others should be faster: up to 32 rows and not too few
   columns, in tiles as narrow as two blocks a multiprocessor allow, or three. */
static int sliced_shape(const struct gemm16_problem *p, size_t wave) {
    enum { ROWS_8, ROWS_8_WIDE, ROWS_16, ROWS_16_WIDE, ROWS_32, ROWS_32_WIDE };
    int narrow = p->M <= 8 ? ROWS_8 : p->M <= 16 ? ROWS_16 : ROWS_32;
    size_t blocks = (p->N + 15) / 16, wide_blocks = (p->N + 31) / 32;
    if (p->M > 32 || p->N < 4 * wave) { /* fewer columns were not measured */
        return -1;
    }
    return blocks <= 2 * wave                          ? narrow
           : wide_blocks <= (p->M > 16 ? 2 : 3) * wave ? narrow + 1
                                                       : -1;
}

enum {
    COLUMNS_8,
    COLUMNS_16,
    COLUMNS_24,
    COLUMNS_32_ONE, /* blocks a multiprocessor; the others have two */
    COLUMNS_32_THREE,
    COLUMNS_48
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
    if (p->K <= 1024 && p->M <= 64 && fills(p, 8, 1, wave)) {
        return COLUMNS_8;
    }
    if (p->K <= 1024 && fills(p, 16, p->M <= 64 ? 2 : 1, wave)) {
        return COLUMNS_16;
    }
    if (p->K > 1024 && fills(p, 32, 1, wave) && (p->M <= 64 || p->N > 1024)) {
        return COLUMNS_32_ONE;
    }
    if (p->M > 64) {
        return p->K <= 2048 && p->N > 1024 && fills(p, 24, 2, wave) ? COLUMNS_24 : -1;
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

/**
 * @file gemm16_few_rows.cu
 * @brief Which kernel few rows get: as measured on an H100 for 1, 8, 16, 64 and 128 rows of 14
 *        matrices of weights, 768 x 768 to 22016 x 4096; 64 rows of 4096 columns and 128 rows of
 *        2048 x 5632 as is best on an H200, and no worse on an H100. gemm16_skinny() was measured
 * on an H200 alone.
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

enum {
    COLUMNS_8,
    COLUMNS_16,
    COLUMNS_24,
    COLUMNS_16_THREE, /* blocks a multiprocessor; the others have two */
    COLUMNS_32_ONE,
    COLUMNS_48
};

/* The kernel of gemm16_skinny(), or -1 if others should be faster: as narrow as two blocks a
   multiprocessor allow, three where K is short; as measured on an H200 for 64 and 128 rows. Other
   numbers of rows have tiles that are not whole, which the TMA fills slowly. */
static int skinny_shape(const struct gemm16_problem *p, size_t wave) {
    size_t high = (p->M + 63) / 64, blocks_of_16 = (p->N + 15) / 16 * high;
    if (p->M % 64 != 0 || p->N < 2048) {
        return -1;
    }
    if (p->K > 2048) {
        return high > 1                                                ? -1
               : p->K <= 4096 && p->N > 24 * wave && p->N <= 32 * wave ? COLUMNS_32_ONE
               : p->N > 90 * wave                                      ? COLUMNS_48
                                                                       : -1;
    }
    if (p->K <= 1024 && blocks_of_16 > 2 * wave && blocks_of_16 <= 3 * wave) {
        return COLUMNS_16_THREE;
    }
    return (p->N + 7) / 8 * high <= 2 * wave     ? COLUMNS_8
           : blocks_of_16 <= 2 * wave            ? COLUMNS_16
           : (p->N + 23) / 24 * high <= 2 * wave ? COLUMNS_24
                                                 : -1;
}

bool gemm16_few_rows_are_faster(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    return gemm16_few_rows_can(p) && (p->M <= 16 || gemm16_bulk_can(p, gpu));
}

enum status gemm16_few_rows(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                            device_stream stream, struct error *error) {
    bool is_small = p->K <= 1024 && (p->M <= 16 || (p->M <= 32 && p->N <= 1024));
    bool by_stream = p->M <= 8 || is_small || !gemm16_bulk_can(p, gpu);
    int skinny = skinny_shape(p, (size_t)gpu->multiprocessors);
    if (by_stream) {
        return stream_rows(p, gpu, stream, error);
    }
    return skinny >= 0 ? gemm16_skinny(p, skinny, stream, error) : bulk_rows(p, gpu, stream, error);
}

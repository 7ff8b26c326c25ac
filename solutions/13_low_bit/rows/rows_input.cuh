/**
 * @file rows_input.cuh
 * @brief The input of a product of up to eight rows: signed digits of 8 bits, for the integer
 * tensor cores.
 *
 * As in integer_input.cuh: 128 channels of a row become integers of three digits, of up to
 * 127 * 2^16. Digit d of row n is column n of the d-th mma. Device memory: for each 64 channels,
 * for each digit, for each row 64 bytes, in the order of integer_input.cuh, so that a warp's lanes
 * read 512 bytes in a row. Rows and channels that there are not are zeros, from the beginning.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_INPUT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_INPUT_CUH_

#include "common/cuda/warp.cuh"
#include "solutions/13_low_bit/rows/rows_decoder.h"

#ifndef ROWS_DIGITS
#define ROWS_DIGITS 3
#endif

enum { ROWS = ROWS_MOST, ROWS_BLOCK = 128, ROWS_LARGEST = 127 << 8 * (ROWS_DIGITS - 1) };

/* Blocks are of 128 channels. */
struct rows_input {
    uint32_t *digits;  /* (2 * blocks, ROWS_DIGITS, ROWS, 16) */
    float *scales;     /* (blocks, ROWS): what an integer of 1 is worth */
    float *sums;       /* (blocks, ROWS): of channels, which zero points multiply */
    float *group_sums; /* (4 * blocks, ROWS): of 32 channels each */
    float *squares;    /* (blocks, ROWS): sums of squares, before a norm's weights */
};

/* Digits of four integers. @param row of the input, `lane` has channels 4 lane .. 4 lane + 3 */
static __device__ __forceinline__ void store_row_digits(uint32_t *digits, unsigned block,
                                                        unsigned row, unsigned lane,
                                                        const int integers[4]) {
    enum { SIGNS = 0x008080, WORDS = 16 };
    unsigned bytes[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        bytes[j] = ((unsigned)integers[j] + SIGNS) ^ SIGNS;
    }
    size_t half = 2 * block + lane / 16;
    unsigned word = lane % 8 / 2 * 4 + lane / 8 % 2 * 2 + lane % 2;
    uint32_t *to = digits + (half * ROWS_DIGITS * ROWS + row) * WORDS + word;
#pragma unroll
    for (int d = 0; d < ROWS_DIGITS; d++) {
        unsigned pick = 0x0040 + 0x11 * (unsigned)d;
        to[d * ROWS * WORDS] = __byte_perm(__byte_perm(bytes[0], bytes[1], pick),
                                           __byte_perm(bytes[2], bytes[3], pick), 0x5410);
    }
}

/* 128 channels of a row, four in each lane of a warp. @param squares of the warp's channels */
static __device__ __forceinline__ void store_row(const struct rows_input &in, unsigned block,
                                                 unsigned row, float4 x, float squares) {
    unsigned lane = threadIdx.x % 32;
    float largest = warp_max(fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
    float scale = largest > 0.0f ? largest / ROWS_LARGEST : 1.0f, inverse = 1.0f / scale;
    const int integers[4] = {__float2int_rn(x.x * inverse), __float2int_rn(x.y * inverse),
                             __float2int_rn(x.z * inverse), __float2int_rn(x.w * inverse)};
    store_row_digits(in.digits, block, row, lane, integers);
    float sum = scale * (float)((integers[0] + integers[1]) + (integers[2] + integers[3]));
    sum = warp_sum<8>(sum);
    if (lane % 8 == 0) {
        in.group_sums[(block * 4 + lane / 8) * ROWS + row] = sum;
    }
    sum += __shfl_xor_sync(~0u, sum, 8);
    sum += __shfl_xor_sync(~0u, sum, 16);
    squares = warp_sum(squares);
    if (lane == 0) {
        size_t at = (size_t)block * ROWS + row;
        in.scales[at] = scale;
        in.sums[at] = sum;
        in.squares[at] = squares;
    }
}

#endif

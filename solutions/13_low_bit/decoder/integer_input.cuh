/**
 * @file integer_input.cuh
 * @brief The input of a product with integer weights: signed digits of 8 bits, for the integer
 * tensor cores.
 *
 * Of each 128 channels the largest magnitude gives a power of two, by which they become integers of
 * up to 2^22. An integer is three signed bytes, i = d0 + 2^8 d1 + 2^16 d2, and each digit is one of
 * the eight columns that mma.m16n8k32 multiplies at the price of one. Sums of products with stored
 * integers are exact.
 *
 * Shared memory, a block of 128 channels: two times 64 channels of each digit, 64 bytes a digit;
 * then struct block_scale. Within 64 channels lane t of a fragment's four reads channels 8t .. 8t+7
 * and 32 + 8t .. 32 + 8t+7, 16 bytes in a row: two steps of mma.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_INTEGER_INPUT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_INTEGER_INPUT_CUH_

#include "solutions/10_llama2_decoder/steps/d8_run.cuh"

/* What 128 channels have beside their digits: the value of an integer of 1, and sums of channels
 * divided by two, which zero points multiply. By two, because two lanes subtract them. */
struct block_scale {
    float scale, half_sum;
    float unused[2];
    float half_sums[4]; /* of 32 channels each */
};

enum {
    INTEGER_DIGITS = 3,
    INTEGER_BLOCK = 128,
    INTEGER_DIGIT_BYTES = INTEGER_BLOCK / 2, /* of a half block */
    INTEGER_HALF_BYTES = INTEGER_DIGITS * INTEGER_DIGIT_BYTES,
    INTEGER_BLOCK_BYTES = 2 * INTEGER_HALF_BYTES + sizeof(struct block_scale)
};

#define INTEGER_SIGNS 0x00008080u /* the sign bits of the lower digits */

/* The largest x of the warp; below, the sum. */
static __device__ __forceinline__ unsigned warp_largest(unsigned x) {
#if ONE_HAS_CP_ASYNC
    x = __reduce_max_sync(~0u, x);
#endif
    return x;
}

static __device__ __forceinline__ int warp_total(int x) {
#if ONE_HAS_CP_ASYNC
    x = __reduce_add_sync(~0u, x);
#endif
    return x;
}

/* A number's magnitude in bits, which are in its order; those of NaN are the largest. */
static __device__ __forceinline__ unsigned magnitude_of(float x) {
    return __float_as_uint(x) & 0x7fffffffu;
}

/* The power of two that makes numbers whose largest magnitude has these bits less than 2^22, and
 * its inverse; NaN, if one of them is infinite or NaN. */
static __device__ __forceinline__ float2 integer_scale(unsigned largest) {
    enum { LEAST = 32, NOT_FINITE = 255 };
    unsigned exponent = largest >> 23;
    if (exponent == NOT_FINITE) {
        return make_float2(0.0f, __uint_as_float(0x7fc00000u));
    }
    exponent = exponent < LEAST ? LEAST : exponent;
    return make_float2(__uint_as_float((275 - exponent) << 23),
                       __uint_as_float((exponent - 21) << 23));
}

/* The digits of an integer, a byte each. */
static __device__ __forceinline__ unsigned digits_of(int i) {
    return ((unsigned)i + INTEGER_SIGNS) ^ INTEGER_SIGNS;
}

/* Digit by digit, those of four integers in a word. */
static __device__ __forceinline__ void store_digits(unsigned *to, const unsigned digits[4]) {
    enum { DIGIT = INTEGER_DIGIT_BYTES / 4 };
    unsigned low = __byte_perm(digits[0], digits[1], 0x5140);
    unsigned high = __byte_perm(digits[0], digits[1], 0x0062);
    unsigned low2 = __byte_perm(digits[2], digits[3], 0x5140);
    unsigned high2 = __byte_perm(digits[2], digits[3], 0x0062);
    to[0] = __byte_perm(low, low2, 0x5410);
    to[DIGIT] = __byte_perm(low, low2, 0x7632);
    to[2 * DIGIT] = __byte_perm(high, high2, 0x5410);
}

/* The lane's four channels of a block of 128 as integers. @param largest magnitude of the block */
struct four_integers {
    int x[4];
    float unit; /* what an integer of 1 is worth */
};

/* Rounds x * scale, of which the magnitude is at most 2^22, to nearest: in fp32, a number added to
 * 1.5 * 2^23 is an integer in the lowest bits. */
static __device__ __forceinline__ int to_integer(float x, float scale) {
    const float MAGIC = 12582912.0f;
    return __float_as_int(fmaf(x, scale, MAGIC)) - __float_as_int(MAGIC);
}

static __device__ __forceinline__ struct four_integers integers_of(float4 x, unsigned largest) {
    const float2 scale = integer_scale(largest);
    return {{to_integer(x.x, scale.x), to_integer(x.y, scale.x), to_integer(x.z, scale.x),
             to_integer(x.w, scale.x)},
            scale.y};
}

/* Their largest magnitude. */
static __device__ __forceinline__ unsigned largest_of(float4 x) {
    return max(max(magnitude_of(x.x), magnitude_of(x.y)),
               max(magnitude_of(x.z), magnitude_of(x.w)));
}

/* Sums of the channels' integers, for zero points: of 32 channels in eight lanes (GROUPS), or of
 * all in all lanes. */
template <bool GROUPS> static __device__ __forceinline__ int sum_of_group(const int x[4]) {
    int sum = (x[0] + x[1]) + (x[2] + x[3]);
    if (GROUPS) {
#pragma unroll
        for (int step = 1; step < 8; step *= 2) {
            sum += __shfl_xor_sync(~0u, sum, step);
        }
    } else {
        sum = warp_total(sum);
    }
    return sum;
}

/* Stores channels 4i to 4i + 3 of a block's input. @param sum what sum_of_group() says */
template <bool GROUPS>
static __device__ __forceinline__ void store_integers(float4 *input, unsigned i,
                                                      const struct four_integers &x, int sum) {
    unsigned lane = i % 32, digits[4];
    char *block = (char *)input + (size_t)(i / 32) * INTEGER_BLOCK_BYTES;
    struct block_scale *info = (struct block_scale *)(block + 2 * INTEGER_HALF_BYTES);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        digits[j] = digits_of(x.x[j]);
    }
    /* channels 4 lane: 64 of them, half of these, lane of the fragment, its first four or second */
    store_digits((unsigned *)block + lane / 16 * (INTEGER_HALF_BYTES / 4) + lane % 8 / 2 * 4 +
                     lane / 8 % 2 * 2 + lane % 2,
                 digits);
    float half_sum = 0.5f * x.unit * (float)sum;
    if (GROUPS && lane % 8 == 0) {
        info->half_sums[lane / 8] = half_sum;
    }
    if (lane == 0) {
        info->scale = x.unit;
        info->half_sum = half_sum;
    }
}

#endif

/**
 * @file half.h
 * @brief fp16 and bf16 to fp32 and back: exact, ties to even, without branches.
 *
 * The formats are 16-bit words in the low half of a uint32_t. Loops over these
 * functions vectorise. They expect the host's rounding to be to nearest.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_HALF_H_
#define WARPBOOK_COMMON_SIMT_ALU_HALF_H_

#include "common/simt/alu/float_ops.h"

/** The NaN that fp16 and bf16 operations deliver. */
enum { HALF_NAN = 0x7fff };

/** @return the value of an fp16 word, NaN with its sign and payload. */
static inline float half_to_float(uint32_t word) {
    const uint32_t magnitude = word & 0x7fff;
    const uint32_t normal = (magnitude << 13) + 0x38000000;
    const uint32_t special = normal + 0x38000000;
    const uint32_t subnormal = row_bits_of_float((float)(int32_t)magnitude * 0x1p-24f);
    const uint32_t finite = magnitude < 0x0400 ? subnormal : normal;
    const uint32_t value = magnitude >= 0x7c00 ? special : finite;

    return row_float_of_bits(value | (word & 0x8000) << 16);
}

/** @return @p x rounded to fp16. */
static inline uint32_t float_to_half(float x) {
    const uint32_t bits = row_bits_of_float(x);
    const uint32_t magnitude = bits & 0x7fffffff;
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* Next to 1/2 the spacing of floats is that of subnormal halves. */
    const uint32_t subnormal = row_bits_of_float(float_abs(x) + 0.5f) - 0x3f000000;
    const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
    const uint32_t value = magnitude >= 0x477ff000 ? 0x7c00 : finite;

    return magnitude > 0x7f800000 ? HALF_NAN : value | sign;
}

/** @return the value of a bf16 word, NaN with its bits. */
static inline float bfloat_to_float(uint32_t word) {
    return row_float_of_bits(word << 16);
}

/** @return @p x rounded to bf16. */
static inline uint32_t float_to_bfloat(float x) {
    const uint32_t bits = row_bits_of_float(x);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (bits & 0x7fffffff) > 0x7f800000 ? (uint32_t)HALF_NAN : rounded;
}

/**
 * @return x * y + z rounded to fp32 towards the neighbour with an odd last bit
 *         where it is inexact, so that a second rounding to fp16 or bf16 is right.
 *         The product of two halves is exact in double; the sum leaves an error
 *         that a second difference recovers.
 */
static inline float fused_to_odd(float x, float y, float z) {
    const double product = (double)x * (double)y;
    const double addend = (double)z;
    const double sum = product + addend;
    const double back = sum - product;
    const double lost = (product - (sum - back)) + (addend - back);
    const float nearest = (float)sum;
    const double step = sum - (double)nearest;
    const double error = double_choose(step != 0, step, lost);
    const uint64_t error_bits = row_bits_of_double(error);
    const uint64_t size = error_bits << 1;
    /* Conditions as numbers 0 and 1: comparisons of both widths at once do not vectorise. */
    const uint32_t inexact = (uint32_t)((size | (0 - size)) >> 63);
    const uint32_t error_sign = (uint32_t)(error_bits >> 63);
    const uint32_t bits = row_bits_of_float(nearest);
    const uint32_t shrinks = error_sign ^ bits >> 31;
    const uint32_t finite = (bits & 0x7fffffff) < 0x7f800000;
    const uint32_t move = 0 - (inexact & ~bits & finite & 1);
    const uint32_t zero = 0 - (uint32_t)((bits & 0x7fffffff) == 0);
    /* A result of zero that is not exact takes the error's sign. */
    const uint32_t least = 1 | error_sign << 31;
    const uint32_t next = bits + 1 - 2 * shrinks;
    const uint32_t moved = (least & zero) | (next & ~zero);

    return row_float_of_bits((moved & move) | (bits & ~move));
}

#endif

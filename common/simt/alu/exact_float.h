/**
 * @file exact_float.h
 * @brief For tests: correctly rounded results found from exact values, in software.
 *
 * Values are sums of two numbers of 113 bits, which hold every sum and product of
 * doubles exactly. Rounding looks at the two neighbours and at the middle between
 * them, so it shares nothing with the code it judges.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_EXACT_FLOAT_H_
#define WARPBOOK_COMMON_SIMT_ALU_EXACT_FLOAT_H_

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/simt/alu/alu.h"

__extension__ typedef __float128 quad;

/** A value high + low, |low| far below |high|. */
struct exact {
    quad high, low;
};

/** @return the value of a word: 16 fp16, 17 bf16, 32 fp32, 64 fp64. */
static inline double exact_value(uint64_t word, int format) {
    const int fraction = format == 16 ? 10 : format == 17 ? 7 : format == 32 ? 23 : 52;
    const int exponents = format == 16 ? 5 : format == 64 ? 11 : 8;
    const uint64_t most = ((uint64_t)1 << exponents) - 1;
    const uint64_t field = word >> fraction & most;
    const uint64_t ones = word & (((uint64_t)1 << fraction) - 1);
    const bool negative = word >> (fraction + exponents) & 1;
    const int bias = (int)(most / 2);
    double value;

    if (field == most) {
        value = ones != 0 ? NAN : INFINITY;
    } else if (field == 0) {
        value = ldexp((double)ones, 1 - bias - fraction);
    } else {
        value = ldexp((double)(ones | (uint64_t)1 << fraction), (int)field - bias - fraction);
    }
    return negative ? -value : value;
}

static inline uint64_t exact_infinity(int format) {
    return format == 16   ? 0x7c00
           : format == 17 ? 0x7f80
           : format == 32 ? 0x7f800000
                          : 0x7ff0000000000000;
}

static inline struct exact exact_sum(quad x, quad y) {
    const quad sum = x + y;
    const quad back = sum - x;

    return (struct exact){sum, (x - (sum - back)) + (y - back)};
}

/** @return -1, 0, 1: @p value against @p limit. */
static inline int exact_compare(struct exact value, quad limit) {
    const quad difference = value.high - limit;

    /* The difference is exact near the limit, and far away only its sign counts. */
    const quad total = difference + value.low;
    return total < 0 ? -1 : total > 0 ? 1 : 0;
}

/** @return the largest magnitude word of the format that is not above @p value >= 0. */
static inline uint64_t exact_floor(struct exact value, int format) {
    uint64_t low = 0;
    uint64_t high = exact_infinity(format);

    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (exact_compare(value, (quad)exact_value(middle, format)) >= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/** @return the value that the word after the largest finite one would have if there were no
 * infinity. */
static inline quad exact_step(uint64_t word, int format) {
    const quad here = (quad)exact_value(word, format);

    if (word < exact_infinity(format)) {
        return here;
    }
    const quad last = (quad)exact_value(word - 1, format);
    return last + (last - (quad)exact_value(word - 2, format));
}

/** @return @p value in the format's bits; @p zero_negative: sign of a value that is exactly 0. */
static inline uint64_t exact_round(struct exact value, int format, uint32_t rounding,
                                   bool zero_negative) {
    const uint64_t sign_bit = format < 32 ? 0x8000 : (uint64_t)1 << (format - 1);
    const int sign = exact_compare(value, 0);

    if (sign == 0) {
        return zero_negative ? sign_bit : 0;
    }
    if (sign < 0) {
        value = (struct exact){-value.high, -value.low};
    }
    const uint64_t below = exact_floor(value, format);
    const quad lower = (quad)exact_value(below, format);
    const quad upper = exact_step(below + 1, format);
    const bool is_exact = exact_compare(value, lower) == 0;
    const int side = exact_compare(value, (lower + upper) / 2);
    const bool near = side > 0 || (side == 0 && (below & 1 || rounding == ALU_AWAY));
    const bool outwards = rounding == ALU_NEAREST || rounding == ALU_AWAY ? near
                          : rounding == ALU_UP                            ? sign > 0
                          : rounding == ALU_DOWN                          ? sign < 0
                                                                          : false;
    return (below + (!is_exact && outwards)) | (sign < 0 ? sign_bit : 0);
}

/**
 * @return true when the value, rounded to the format's digits whatever its
 *         exponent, is below the least normal number
 */
static inline bool exact_is_tiny(struct exact value, int format, uint32_t rounding) {
    const int exponent = format == 16 ? 14 : format == 64 ? 1022 : 126;
    const quad scale = (quad)ldexp(1.0, exponent);
    const struct exact scaled = {value.high * scale, value.low * scale};
    const uint64_t sign_bit = format < 32 ? 0x8000 : (uint64_t)1 << (format - 1);
    const uint64_t word = exact_round(scaled, format, rounding, false);

    return fabs(exact_value(word & (sign_bit - 1), format)) < 1;
}

#endif

/**
 * @file small_float.h
 * @brief The 8-bit floats e4m3 and e5m2, and fp64 rounded to fp16 once.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_SMALL_FLOAT_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_SMALL_FLOAT_H_

#include <math.h>
#include <stdint.h>

#include "common/simt/alu/half.h"

/** @return the value of an e4m3 byte: no infinity, 0x7f is NaN. */
static inline double e4m3_to_double(uint32_t byte) {
    const uint32_t exponent = byte >> 3 & 15;
    const uint32_t fraction = byte & 7;
    const double magnitude =
        exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, (int)exponent - 10);

    return (byte & 0x7f) == 0x7f ? (double)NAN : (byte & 0x80) != 0 ? -magnitude : magnitude;
}

/** @return the value of an e5m2 byte: the upper half of an fp16. */
static inline double e5m2_to_double(uint32_t byte) {
    return (double)half_to_float(byte << 8);
}

/** @return @p x rounded to fp32 towards the neighbour with an odd last bit: may be rounded again.
 */
static inline float double_to_odd(double x) {
    const float nearest = (float)x;
    uint32_t bits = row_bits_of_float(nearest);

    if ((double)nearest == x || x != x || (bits & 1) != 0) {
        return nearest;
    }
    if (nearest == 0.0f) {
        return row_float_of_bits(bits | 1);
    }
    return row_float_of_bits(fabs((double)nearest) < fabs(x) ? bits + 1 : bits - 1);
}

/**
 * @return @p x rounded to nearest even in a format with @p fraction_bits, the least exponent
 *         @p least and the largest value @p most, saturated; NaN is 0x7f
 */
static inline uint32_t double_to_byte(double x, int fraction_bits, int least, double most) {
    const uint32_t sign = signbit(x) ? 0x80 : 0;
    double magnitude = fabs(x);

    if (x != x) {
        return 0x7f;
    }
    magnitude = magnitude > most ? most : magnitude;
    int exponent = magnitude > 0 ? ilogb(magnitude) : least;
    exponent = exponent < least ? least : exponent;
    /* In units of the last place; a carry into the next exponent comes out right. */
    const double units = nearbyint(ldexp(magnitude, fraction_bits - exponent));
    const uint32_t base = (uint32_t)(exponent - least) << fraction_bits;

    return sign | (base + (uint32_t)units);
}

/** @return @p x as e4m3, saturated to 448. */
static inline uint32_t double_to_e4m3(double x) {
    return double_to_byte(x, 3, -6, 448.0);
}

/** @return @p x as e5m2, saturated to 57344. */
static inline uint32_t double_to_e5m2(double x) {
    return double_to_byte(x, 2, -14, 57344.0);
}

#endif

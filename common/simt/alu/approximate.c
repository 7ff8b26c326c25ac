/*
 * Polynomials in double precision. Coefficients are the Taylor series' own,
 * rounded to double: with more than twice the digits of fp32 at hand, nothing is
 * gained by better ones.
 */
#include "common/simt/alu/approximate.h"

#include "common/simt/alu/float_ops.h"

#define INFINITE __builtin_inff()

/** @return 2^t for |t| <= 1000: 2^n times the series of 2^f, |f| <= 1/2; relative error 2^-46. */
static inline double power_of_two(double t) {
    const double whole = __builtin_rint(t);
    const double f = t - whole;
    /* 1.5 * 2^52 + n has n in its low bits. */
    const uint64_t exponent = (row_bits_of_double(whole + 0x1.8p52) + 1023) << 52;
    double series = 0x1.e8cac7351bb25p-32;

    series = series * f + 0x1.e4cf5158b8ecap-28;
    series = series * f + 0x1.b5253d395e7c4p-24;
    series = series * f + 0x1.62c0223a5c824p-20;
    series = series * f + 0x1.ffcbfc588b0c7p-17;
    series = series * f + 0x1.430912f86c787p-13;
    series = series * f + 0x1.5d87fe78a6731p-10;
    series = series * f + 0x1.3b2ab6fba4e77p-7;
    series = series * f + 0x1.c6b08d704a0c0p-5;
    series = series * f + 0x1.ebfbdff82c58fp-3;
    series = series * f + 0x1.62e42fefa39efp-1;
    series = series * f + 1.0;
    return series * row_double_of_bits(exponent);
}

void approximate_ex2(const float x[SIMT_LANES], float result[SIMT_LANES]) {
    ROW_EACH_LANE(i) {
        const float v = x[i];
        const float low = float_choose(v > -200.0f, v, -200.0f);
        const float bounded = float_choose(low < 200.0f, low, 200.0f);
        const float power = (float)power_of_two((double)bounded);

        result[i] = float_choose(v == v, power, FLOAT_NAN);
    }
}

/** @return log2 of a positive finite number: x = 2^e m, m near 1, s = (m-1)/(m+1). */
static inline double logarithm(double x) {
    const uint64_t root_half = 0x3fe6a09e667f3bcd;
    const uint64_t one = 0x3ff0000000000000;
    const uint64_t bits = row_bits_of_double(x);
    const uint64_t biased = (bits - root_half + one) >> 52;
    const double e = row_double_of_bits(biased | 0x4330000000000000) - (0x1p52 + 1023.0);
    const double m = row_double_of_bits(bits + one - (biased << 52));
    const double s = (m - 1.0) / (m + 1.0);
    const double q = s * s;
    double series = 0x1.5b9ac9b743f0dp-3;

    series = series * q + 0x1.89f3b1694cffep-3;
    series = series * q + 0x1.c68f568d31760p-3;
    series = series * q + 0x1.0c9a84994022dp-2;
    series = series * q + 0x1.484b13d7c02a9p-2;
    series = series * q + 0x1.a61762a7aded9p-2;
    series = series * q + 0x1.2776c50ef9bfep-1;
    series = series * q + 0x1.ec709dc3a03fdp-1;
    series = series * q + 0x1.71547652b82fep+1;
    return e + series * s;
}

void approximate_lg2(const float x[SIMT_LANES], float result[SIMT_LANES]) {
    ROW_EACH_LANE(i) {
        const float v = x[i];
        const float ordinary = float_choose((v > 0.0f) & (v < INFINITE), v, 1.0f);
        const float value = (float)logarithm((double)ordinary);
        const float positive = float_choose(v == INFINITE, INFINITE, value);
        const float special = float_choose(v == 0.0f, -INFINITE, FLOAT_NAN);

        result[i] = float_choose(v > 0.0f, positive, special);
    }
}

/** @return sin(2 pi turns) for |turns| <= 1/4; absolute error below 2^-51. */
static inline double sine_of_turns(double turns) {
    const double q = turns * turns;
    double series = -0x1.8a404211f9547p-7;

    series = series * q + 0x1.aaec32af93359p-4;
    series = series * q - 0x1.6fadb9f155744p-1;
    series = series * q + 0x1.e8f434d018d63p+1;
    series = series * q - 0x1.e3074fde8871fp+3;
    series = series * q + 0x1.50783487ee782p+5;
    series = series * q - 0x1.32d2cce62bd86p+6;
    series = series * q + 0x1.466bc6775aae2p+6;
    series = series * q - 0x1.4abbce625be53p+5;
    series = series * q + 0x1.921fb54442d18p+2;
    return series * turns;
}

/** @return x / 2pi less the nearest whole number. */
static inline double turns_of_radians(float x) {
    const double turns = (double)x * 0x1.45f306dc9c883p-3;

    return turns - __builtin_rint(turns);
}

static inline double double_abs(double x) {
    return row_double_of_bits(row_bits_of_double(x) & INT64_MAX);
}

void approximate_sin(const float x[SIMT_LANES], float result[SIMT_LANES]) {
    ROW_EACH_LANE(i) {
        const float v = x[i];
        const bool finite = float_abs(v) < INFINITE;
        const double turns = turns_of_radians(float_choose(finite, v, 0.0f));
        const double half = double_choose(turns < 0, -0.5, 0.5);
        const double folded = double_choose(double_abs(turns) > 0.25, half - turns, turns);
        const float value = (float)sine_of_turns(folded);
        /* A zero has its argument's sign, which taking whole turns off loses. */
        const float signed_value = float_choose(v == 0.0f, v, value);

        result[i] = float_choose(finite, signed_value, FLOAT_NAN);
    }
}

void approximate_cos(const float x[SIMT_LANES], float result[SIMT_LANES]) {
    ROW_EACH_LANE(i) {
        const float v = x[i];
        const bool finite = float_abs(v) < INFINITE;
        const double turns = turns_of_radians(float_choose(finite, v, 0.0f));
        const float value = (float)sine_of_turns(0.25 - double_abs(turns));

        result[i] = float_choose(finite, value, FLOAT_NAN);
    }
}

/** tanh x = 1 - 2 / (e^2x + 1), and its series near 0, where that would cancel. */
void approximate_tanh(const float x[SIMT_LANES], float result[SIMT_LANES]) {
    ROW_EACH_LANE(i) {
        const float v = x[i];
        const float size = float_abs(v);
        const double bounded = (double)float_choose(size < 20.0f, size, 20.0f);
        const double large = 1.0 - 2.0 / (power_of_two(bounded * 0x1.71547652b82fep+1) + 1.0);
        const double q = bounded * bounded;
        const double series = 1.0 - q * (1.0 / 3.0 - q * (2.0 / 15.0 - q * (17.0 / 315.0)));
        const double small = bounded * series;
        const float value = (float)double_choose(bounded < 0.0625, small, large);

        result[i] = float_choose(v == v, float_copy_sign(v, value), FLOAT_NAN);
    }
}

void approximate_rsqrt(const float x[SIMT_LANES], float result[SIMT_LANES]) {
    ROW_EACH_LANE(i) {
        result[i] = float_canonical((float)(1.0 / __builtin_sqrt((double)x[i])));
    }
}

/**
 * @file float_ops.h
 * @brief What floating-point handlers share: NaN, flushing, saturation, rounding mode.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_FLOAT_OPS_H_
#define WARPBOOK_COMMON_SIMT_ALU_FLOAT_OPS_H_

#include <float.h>
#include <immintrin.h>

#include "common/simt/alu/alu.h"
#include "common/simt/alu/row_ops.h"

/** The one NaN that fp32 operations deliver: 0x7fffffff. */
#define FLOAT_NAN __builtin_nanf("0x3fffff")

/** @return condition ? yes : no. By masks: both are there, no branch may skip one of them. */
static inline float float_choose(bool condition, float yes, float no) {
    const uint32_t mask = 0 - (uint32_t)condition;

    return row_float_of_bits((row_bits_of_float(yes) & mask) | (row_bits_of_float(no) & ~mask));
}

/** @return condition ? yes : no, as float_choose(). */
static inline double double_choose(bool condition, double yes, double no) {
    const uint64_t mask = 0 - (uint64_t)condition;

    return row_double_of_bits((row_bits_of_double(yes) & mask) | (row_bits_of_double(no) & ~mask));
}

static inline float float_canonical(float x) {
    return float_choose(x == x, x, FLOAT_NAN);
}

/** @return a subnormal as a zero of its sign. */
static inline float float_flush(float x) {
    const uint32_t bits = row_bits_of_float(x);

    return row_float_of_bits((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}

/** @return @p x clamped to [0, 1]; NaN and -0 become +0. */
static inline float float_saturate(float x) {
    x = x > 0.0f ? x : 0.0f;
    return x < 1.0f ? x : 1.0f;
}

/** @return the smaller number; -0 is below +0; the number where the other is NaN. */
static inline float float_min(float x, float y) {
    const float zeros = row_float_of_bits(row_bits_of_float(x) | row_bits_of_float(y));
    const float ordered = x < y ? x : y < x ? y : zeros;
    const float left = x != x ? y : ordered;

    return y != y ? x : left;
}

/** @return the larger number, as float_min(). */
static inline float float_max(float x, float y) {
    const float zeros = row_float_of_bits(row_bits_of_float(x) & row_bits_of_float(y));
    const float ordered = x > y ? x : y > x ? y : zeros;
    const float left = x != x ? y : ordered;

    return y != y ? x : left;
}

static inline float float_abs(float x) {
    return row_float_of_bits(row_bits_of_float(x) & 0x7fffffff);
}

/** @return the magnitude of @p y with the sign of @p x. */
static inline float float_copy_sign(float x, float y) {
    return row_float_of_bits((row_bits_of_float(x) & 0x80000000) |
                             (row_bits_of_float(y) & 0x7fffffff));
}

/** min or max with .NaN and .xorsign.abs by @p flags; the result is canonical. */
#define FLOAT_SELECT(FUNCTION, x, y, flags) \
    float_select_finish(                    \
        x, y, (flags)&ALU_XORSIGN ? FUNCTION(float_abs(x), float_abs(y)) : FUNCTION(x, y), flags)

static inline float float_select_finish(float x, float y, float selected, uint32_t flags) {
    const float sign =
        row_float_of_bits((row_bits_of_float(x) ^ row_bits_of_float(y)) & 0x80000000);

    selected = flags & ALU_XORSIGN ? float_copy_sign(sign, selected) : selected;
    selected = (flags & ALU_NAN) && (x != x || y != y) ? FLOAT_NAN : selected;
    return float_canonical(selected);
}

/**
 * @brief Sets the rounding of SSE and AVX arithmetic. The compiler moves no load
 *        or store of rows across, hence no arithmetic between them.
 * @param rounding one of the first four of enum alu_rounding
 * @return the argument for alu_round_end()
 */
static inline uint32_t alu_round_begin(uint32_t rounding) {
    const uint32_t saved = _mm_getcsr();

    _mm_setcsr((saved & ~(3u << 13)) | rounding << 13);
    __asm__ volatile("" ::: "memory");
    return saved;
}

static inline void alu_round_end(uint32_t saved) {
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(saved);
}

#endif

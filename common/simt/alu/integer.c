/**
 * @file integer.c
 * @brief Integer arithmetic and logic without carry: add sub mul mad sad div rem abs neg min max,
 *        and or xor not cnot, shl shr, mul24 mad24, and the two-in-a-word forms.
 *
 * Signed arithmetic runs in unsigned types, where overflow wraps as the hardware
 * does. 16-bit operands are cut out of their lane and results zero-extended.
 */
#include "common/simt/alu/alu.h"
#include "common/simt/alu/row_ops.h"

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/** X(suffix, value type, view, stored type, wrapping type, double width type, bits) */
#define EACH_UNSIGNED(X)                                    \
    X(u16, uint16_t, u32, uint16_t, uint32_t, uint32_t, 16) \
    X(u32, uint32_t, u32, uint32_t, uint32_t, uint64_t, 32) \
    X(u64, uint64_t, u64, uint64_t, uint64_t, uint128, 64)
#define EACH_SIGNED(X)                                    \
    X(s16, int16_t, u32, uint16_t, uint32_t, int32_t, 16) \
    X(s32, int32_t, u32, uint32_t, uint32_t, int64_t, 32) \
    X(s64, int64_t, u64, uint64_t, uint64_t, int128, 64)
#define EACH_INTEGER(X) EACH_UNSIGNED(X) EACH_SIGNED(X)

/* Shift amounts are unsigned 32-bit values, clamped; bits shifted out are lost. */
#define DEFINE_UNSIGNED(S, T, V, U, W, D, BITS)                \
    ROW_OP2(add_##S, U, V, W, V, W, V, x + y)                  \
    ROW_OP2(sub_##S, U, V, W, V, W, V, x - y)                  \
    ROW_OP2(mul_lo_##S, U, V, W, V, W, V, (x) * (y))           \
    ROW_OP3(mad_lo_##S, U, V, W, V, W, V, W, V, (x) * (y) + z) \
    ROW_OP2(and_##S, U, V, W, V, W, V, (x) & (y))              \
    ROW_OP2(or_##S, U, V, W, V, W, V, x | y)                   \
    ROW_OP2(xor_##S, U, V, W, V, W, V, x ^ y)                  \
    ROW_OP1(not_##S, U, V, W, V, ~x)                           \
    ROW_OP1(cnot_##S, U, V, T, V, x == 0)                      \
    ROW_OP1(neg_##S, U, V, W, V, 0 - x)                        \
    ROW_OP2(shl_##S, U, V, W, V, uint32_t, u32, y < BITS ? x << (y & (BITS - 1)) : 0)

#define DEFINE_INTEGER(S, T, V, U, W, D, BITS)                                  \
    ROW_OP2(min_##S, U, V, T, V, T, V, x < y ? x : y)                           \
    ROW_OP2(max_##S, U, V, T, V, T, V, x > y ? x : y)                           \
    ROW_OP2(mul_hi_##S, U, V, T, V, T, V, ((D)x * (D)y) >> BITS)                \
    ROW_OP3(mad_hi_##S, U, V, T, V, T, V, W, V, (W)(((D)x * (D)y) >> BITS) + z) \
    ROW_OP3(sad_##S, U, V, T, V, T, V, W, V, (x < y ? (W)y - (W)x : (W)x - (W)y) + z)

#define DEFINE_SIGNED(S, T, V, U, W, D, BITS)             \
    ROW_OP1(abs_##S, U, V, T, V, x < 0 ? 0 - (W)x : (W)x) \
    ROW_OP2(shr_##S, U, V, T, V, uint32_t, u32, x >> (y < BITS ? y : BITS - 1))

EACH_UNSIGNED(DEFINE_UNSIGNED)
EACH_INTEGER(DEFINE_INTEGER)
EACH_SIGNED(DEFINE_SIGNED)

ROW_OP2(shr_u16, uint16_t, u32, uint16_t, u32, uint32_t, u32, y < 16 ? x >> (y & 15) : 0)
ROW_OP2(shr_u32, uint32_t, u32, uint32_t, u32, uint32_t, u32, y < 32 ? x >> (y & 31) : 0)
ROW_OP2(shr_u64, uint64_t, u64, uint64_t, u64, uint32_t, u32, y < 64 ? x >> (y & 63) : 0)

ROW_OP2(mul_wide_u16, uint32_t, u32, uint16_t, u32, uint16_t, u32, (uint32_t)x *(y))
ROW_OP2(mul_wide_s16, uint32_t, u32, int16_t, u32, int16_t, u32, (int32_t)x *(y))
ROW_OP2(mul_wide_u32, uint64_t, u64, uint32_t, u32, uint32_t, u32, (uint64_t)x *(y))
ROW_OP2(mul_wide_s32, uint64_t, u64, int32_t, u32, int32_t, u32, (int64_t)x *(y))
ROW_OP3(mad_wide_u16, uint32_t, u32, uint16_t, u32, uint16_t, u32, uint32_t, u32,
        (uint32_t)x *(y) + z)
ROW_OP3(mad_wide_s16, uint32_t, u32, int16_t, u32, int16_t, u32, uint32_t, u32,
        (uint32_t)((int32_t)x *y) + z)
ROW_OP3(mad_wide_u32, uint64_t, u64, uint32_t, u32, uint32_t, u32, uint64_t, u64,
        (uint64_t)x *(y) + z)
ROW_OP3(mad_wide_s32, uint64_t, u64, int32_t, u32, int32_t, u32, uint64_t, u64,
        (uint64_t)((int64_t)x *y) + z)

static inline uint32_t saturate_s32(int64_t value) {
    value = value > INT32_MAX ? INT32_MAX : value;
    value = value < INT32_MIN ? INT32_MIN : value;
    return (uint32_t)(int32_t)value;
}

ROW_OP2(add_sat_s32, uint32_t, u32, int32_t, u32, int32_t, u32, saturate_s32((int64_t)x + y))
ROW_OP2(sub_sat_s32, uint32_t, u32, int32_t, u32, int32_t, u32, saturate_s32((int64_t)x - y))
ROW_OP3(mad_hi_sat_s32, uint32_t, u32, int32_t, u32, int32_t, u32, int32_t, u32,
        saturate_s32((((int64_t)x * y) >> 32) + z))

/** @return the low 24 bits, sign-extended. */
static inline int64_t low24_s(uint32_t value) {
    return (int32_t)(value << 8) >> 8;
}

static inline uint64_t low24_u(uint32_t value) {
    return value & 0xffffff;
}

/* The product has 48 bits; .hi is its bits 47..16. */
#define PRODUCT24(SIGN) ((uint64_t)(low24_##SIGN(x) * low24_##SIGN(y)))
#define DEFINE_24(SIGN)                                                                          \
    ROW_OP2(mul24_lo_##SIGN, uint32_t, u32, uint32_t, u32, uint32_t, u32, PRODUCT24(SIGN))       \
    ROW_OP2(mul24_hi_##SIGN, uint32_t, u32, uint32_t, u32, uint32_t, u32, PRODUCT24(SIGN) >> 16) \
    ROW_OP3(mad24_lo_##SIGN, uint32_t, u32, uint32_t, u32, uint32_t, u32, uint32_t, u32,         \
            PRODUCT24(SIGN) + z)                                                                 \
    ROW_OP3(mad24_hi_##SIGN, uint32_t, u32, uint32_t, u32, uint32_t, u32, uint32_t, u32,         \
            (PRODUCT24(SIGN) >> 16) + z)

DEFINE_24(s)
DEFINE_24(u)
ROW_OP3(mad24_hi_sat_s32, uint32_t, u32, uint32_t, u32, uint32_t, u32, int32_t, u32,
        saturate_s32((int64_t)(int32_t)(uint32_t)(PRODUCT24(s) >> 16) + z))

/* Two 16-bit values in a word. */
#define PAIR(EXPRESSION_LOW, EXPRESSION_HIGH) \
    ((uint32_t)(uint16_t)(EXPRESSION_LOW) | (uint32_t)(uint16_t)(EXPRESSION_HIGH) << 16)
#define MINIMUM(T, a, b) ((T)(a) < (T)(b) ? (T)(a) : (T)(b))
#define MAXIMUM(T, a, b) ((T)(a) > (T)(b) ? (T)(a) : (T)(b))
#define WORDS uint32_t, u32, uint32_t, u32, uint32_t, u32
#define WORD_OP2(NAME, EXPRESSION) WORD_OP2_EXPAND(NAME, WORDS, EXPRESSION)
#define WORD_OP2_EXPAND(NAME, TYPES, EXPRESSION) ROW_OP2_OF(NAME, TYPES, EXPRESSION)
#define ROW_OP2_OF(NAME, ...) ROW_OP2(NAME, __VA_ARGS__)

WORD_OP2(add_x2, PAIR(x + y, (x >> 16) + (y >> 16)))
WORD_OP2(sub_x2, PAIR(x - y, (x >> 16) - (y >> 16)))
WORD_OP2(min_u16x2, PAIR(MINIMUM(uint16_t, x, y), MINIMUM(uint16_t, x >> 16, y >> 16)))
WORD_OP2(max_u16x2, PAIR(MAXIMUM(uint16_t, x, y), MAXIMUM(uint16_t, x >> 16, y >> 16)))
WORD_OP2(min_s16x2, PAIR(MINIMUM(int16_t, x, y), MINIMUM(int16_t, x >> 16, y >> 16)))
WORD_OP2(max_s16x2, PAIR(MAXIMUM(int16_t, x, y), MAXIMUM(int16_t, x >> 16, y >> 16)))

#define RELU(T, value) MAXIMUM(T, value, 0)
WORD_OP2(min_relu_s16x2, PAIR(RELU(int16_t, MINIMUM(int16_t, x, y)),
                              RELU(int16_t, MINIMUM(int16_t, x >> 16, y >> 16))))
WORD_OP2(max_relu_s16x2, PAIR(RELU(int16_t, MAXIMUM(int16_t, x, y)),
                              RELU(int16_t, MAXIMUM(int16_t, x >> 16, y >> 16))))
WORD_OP2(min_relu_s32, RELU(int32_t, MINIMUM(int32_t, x, y)))
WORD_OP2(max_relu_s32, RELU(int32_t, MAXIMUM(int32_t, x, y)))

/* Division by zero gives all ones, remainders too, as the hardware's routines do. */
static inline uint64_t quotient_s64(int64_t x, int64_t y) {
    return y == 0 ? UINT64_MAX : y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y);
}

static inline uint64_t remainder_s64(int64_t x, int64_t y) {
    return y == 0 ? UINT64_MAX : y == -1 ? 0 : (uint64_t)(x % y);
}

ROW_OP2(div_u64, uint64_t, u64, uint64_t, u64, uint64_t, u64, y == 0 ? UINT64_MAX : x / y)
ROW_OP2(rem_u64, uint64_t, u64, uint64_t, u64, uint64_t, u64, y == 0 ? UINT64_MAX : x % y)
ROW_OP2(div_s64, uint64_t, u64, int64_t, u64, int64_t, u64, quotient_s64(x, y))
ROW_OP2(rem_s64, uint64_t, u64, int64_t, u64, int64_t, u64, remainder_s64(x, y))

/**
 * Quotients of 32-bit numbers by way of doubles, which vectorises. A quotient
 * that is no integer is at least 1/y away from one, more than 2^-64 of its size
 * away from rounding up to it: x / y rounds to a double with the right floor.
 * 2^52 added to an integer below 2^52 leaves that integer in the low bits.
 */
static void quotients_u32(const uint32_t x[SIMT_LANES], const uint32_t y[SIMT_LANES],
                          uint32_t quotient[SIMT_LANES]) {
    const double shift = 0x1p52;
    const uint64_t shift_bits = 0x4330000000000000;

    ROW_EACH_LANE(i) {
        const double numerator = row_double_of_bits(shift_bits | x[i]) - shift;
        const double denominator = row_double_of_bits(shift_bits | (y[i] == 0 ? 1 : y[i])) - shift;
        const double whole = __builtin_floor(numerator / denominator) + shift;

        quotient[i] = y[i] == 0 ? UINT32_MAX : (uint32_t)row_bits_of_double(whole);
    }
}

#define NEVER(word) ((void)(word), false)
#define SIGN_BIT(word) ((word) >> 31)
/** Shared by the four 16- and 32-bit divisions; T and U: value type and its unsigned form. */
#define DEFINE_DIVISION(S, T, U, NEGATIVE)                                                     \
    static void divide_##S(struct simt_warp *warp, const struct simt_instruction *instruction, \
                           uint32_t quotient[SIMT_LANES]) {                                    \
        ROW_SOURCE(a, 0);                                                                      \
        ROW_SOURCE(b, 1);                                                                      \
        uint32_t x[SIMT_LANES];                                                                \
        uint32_t y[SIMT_LANES];                                                                \
        ROW_EACH_LANE(i) {                                                                     \
            const uint32_t p = (uint32_t)(T)a->u32[i];                                         \
            const uint32_t q = (uint32_t)(T)b->u32[i];                                         \
            x[i] = NEGATIVE(p) ? 0 - p : p;                                                    \
            y[i] = NEGATIVE(q) ? 0 - q : q;                                                    \
        }                                                                                      \
        quotients_u32(x, y, quotient);                                                         \
        ROW_EACH_LANE(i) {                                                                     \
            const uint32_t signs = (uint32_t)(T)a->u32[i] ^ (uint32_t)(T)b->u32[i];            \
            const bool negative = NEGATIVE(signs) && y[i] != 0;                                \
            quotient[i] = (U)(negative ? 0 - quotient[i] : quotient[i]);                       \
        }                                                                                      \
    }                                                                                          \
    ROW_HANDLER(div_##S) {                                                                     \
        uint32_t quotient[SIMT_LANES];                                                         \
        divide_##S(warp, instruction, quotient);                                               \
        row_commit32(warp, instruction->dst[0], quotient);                                     \
    }                                                                                          \
    ROW_HANDLER(rem_##S) {                                                                     \
        ROW_SOURCE(a, 0);                                                                      \
        ROW_SOURCE(b, 1);                                                                      \
        uint32_t quotient[SIMT_LANES];                                                         \
        uint32_t rest[SIMT_LANES];                                                             \
        divide_##S(warp, instruction, quotient);                                               \
        ROW_EACH_LANE(i) {                                                                     \
            const uint32_t value = a->u32[i] - quotient[i] * b->u32[i];                        \
            rest[i] = (U)((U)b->u32[i] == 0 ? UINT32_MAX : value);                             \
        }                                                                                      \
        row_commit32(warp, instruction->dst[0], rest);                                         \
    }

DEFINE_DIVISION(u16, uint16_t, uint16_t, NEVER)
DEFINE_DIVISION(s16, int16_t, uint16_t, SIGN_BIT)
DEFINE_DIVISION(u32, uint32_t, uint32_t, NEVER)
DEFINE_DIVISION(s32, int32_t, uint32_t, SIGN_BIT)

#define ENTRIES_INTEGER(S, T, V, U, W, D, BITS)                                 \
    {"min." #S, min_##S}, {"max." #S, max_##S}, {"mul.hi." #S, mul_hi_##S},     \
        {"mad.hi." #S, mad_hi_##S}, {"sad." #S, sad_##S}, {"div." #S, div_##S}, \
        {"rem." #S, rem_##S}, {"shr." #S, shr_##S},
#define ENTRIES_SIGNED(S, T, V, U, W, D, BITS) {"abs." #S, abs_##S},
/* The low half of sums and products does not know signs. */
#define ENTRIES_BITS(BITS)                                                                      \
    {"add.u" #BITS, add_u##BITS}, {"add.s" #BITS, add_u##BITS}, {"sub.u" #BITS, sub_u##BITS},   \
        {"sub.s" #BITS, sub_u##BITS}, {"mul.lo.u" #BITS, mul_lo_u##BITS},                       \
        {"mul.lo.s" #BITS, mul_lo_u##BITS}, {"mad.lo.u" #BITS, mad_lo_u##BITS},                 \
        {"mad.lo.s" #BITS, mad_lo_u##BITS}, {"neg.s" #BITS, neg_u##BITS},                       \
        {"and.b" #BITS, and_u##BITS}, {"or.b" #BITS, or_u##BITS}, {"xor.b" #BITS, xor_u##BITS}, \
        {"not.b" #BITS, not_u##BITS}, {"cnot.b" #BITS, cnot_u##BITS},                           \
        {"shl.b" #BITS, shl_u##BITS}, {"shr.b" #BITS, shr_u##BITS},

static const struct alu_entry entries[] = {
    ENTRIES_BITS(32) ENTRIES_BITS(64) ENTRIES_BITS(16) EACH_INTEGER(ENTRIES_INTEGER)
        EACH_SIGNED(ENTRIES_SIGNED){"mul.wide.u16", mul_wide_u16},
    {"mul.wide.s16", mul_wide_s16},
    {"mul.wide.u32", mul_wide_u32},
    {"mul.wide.s32", mul_wide_s32},
    {"mad.wide.u16", mad_wide_u16},
    {"mad.wide.s16", mad_wide_s16},
    {"mad.wide.u32", mad_wide_u32},
    {"mad.wide.s32", mad_wide_s32},
    {"add.sat.s32", add_sat_s32},
    {"sub.sat.s32", sub_sat_s32},
    {"mad.hi.sat.s32", mad_hi_sat_s32},
    {"mul24.lo.s32", mul24_lo_s},
    {"mul24.hi.s32", mul24_hi_s},
    {"mul24.lo.u32", mul24_lo_u},
    {"mul24.hi.u32", mul24_hi_u},
    {"mad24.lo.s32", mad24_lo_s},
    {"mad24.hi.s32", mad24_hi_s},
    {"mad24.lo.u32", mad24_lo_u},
    {"mad24.hi.u32", mad24_hi_u},
    {"mad24.hi.sat.s32", mad24_hi_sat_s32},
    {"add.u16x2", add_x2},
    {"add.s16x2", add_x2},
    {"sub.u16x2", sub_x2},
    {"sub.s16x2", sub_x2},
    {"min.u16x2", min_u16x2},
    {"max.u16x2", max_u16x2},
    {"min.s16x2", min_s16x2},
    {"max.s16x2", max_s16x2},
    {"min.relu.s16x2", min_relu_s16x2},
    {"max.relu.s16x2", max_relu_s16x2},
    {"min.s16x2.relu", min_relu_s16x2},
    {"max.s16x2.relu", max_relu_s16x2},
    {"min.relu.s32", min_relu_s32},
    {"max.relu.s32", max_relu_s32},
};

bool alu_decode_arithmetic(const struct simt_decoding *decoding,
                           struct simt_instruction *instruction) {
    return alu_decode_entry(entries, COUNT(entries), SIMT_CLASS_INTEGER, decoding, instruction);
}

/**
 * @file double.c
 * @brief fp64 arithmetic: add sub mul fma mad div rcp sqrt min max abs neg copysign, and the two
 *        coarse starting values rcp.approx.ftz.f64 and rsqrt.approx.f64.
 *
 * Subnormals are kept. A NaN operand comes out quiet, with its payload: of two the
 * second, of a division's the first, of fma's y before z before x; a NaN that no
 * operand brought is 0xfff8000000000000. All this as measured on an H200.
 * detail[1]: rounding.
 */
#include "common/simt/alu/float_ops.h"

#define D1(NAME, EXPRESSION) ROW_OP1(NAME, double, f64, double, f64, EXPRESSION)
#define D2(NAME, EXPRESSION) ROW_OP2(NAME, double, f64, double, f64, double, f64, EXPRESSION)
#define D3(NAME, EXPRESSION) \
    ROW_OP3(NAME, double, f64, double, f64, double, f64, double, f64, EXPRESSION)

/** The same operation under the rounding of detail[1]. */
#define DIRECTED(NAME)                                                  \
    ROW_HANDLER(NAME##_directed) {                                      \
        const uint32_t saved = alu_round_begin(instruction->detail[1]); \
        NAME(warp, instruction);                                        \
        alu_round_end(saved);                                           \
    }

/** @return @p x, a NaN, made quiet. */
static inline double quiet(double x) {
    return row_double_of_bits(row_bits_of_double(x) | 0x0008000000000000);
}

/** @return the result, or the NaN that the operands produce. */
static inline double settle1(double result, double x) {
    const double nan = double_choose(x == x, row_double_of_bits(0xfff8000000000000), quiet(x));

    return double_choose(result == result, result, nan);
}

static inline double settle2(double result, double x, double y) {
    return double_choose((result == result) | (y == y), settle1(result, x), quiet(y));
}

static inline double settle3(double result, double x, double y, double z) {
    const double added = double_choose((result == result) | (z == z), settle1(result, x), quiet(z));

    return double_choose((result == result) | (y == y), added, quiet(y));
}

D2(add_f64, settle2(x + y, x, y))
D2(sub_f64, settle2(x - y, x, y))
D2(mul_f64, settle2((x) * (y), x, y))
D2(div_f64, settle2(x / y, y, x))
D3(fused_f64, settle3(__builtin_fma(x, y, z), x, y, z))
D1(rcp_f64, settle1(1.0 / x, x))
D1(root_f64, settle1(__builtin_sqrt(x), x))
DIRECTED(add_f64)
DIRECTED(sub_f64)
DIRECTED(mul_f64)
DIRECTED(div_f64)
DIRECTED(fused_f64)
DIRECTED(rcp_f64)
DIRECTED(root_f64)

static inline double double_min(double x, double y) {
    const double zeros = row_double_of_bits(row_bits_of_double(x) | row_bits_of_double(y));
    const double ordered = x < y ? x : y < x ? y : zeros;
    const double left = double_choose(x == x, ordered, y);
    const double number = double_choose(y == y, left, x);

    return double_choose((x != x) & (y != y), quiet(y), number);
}

static inline double double_max(double x, double y) {
    const double zeros = row_double_of_bits(row_bits_of_double(x) & row_bits_of_double(y));
    const double ordered = x > y ? x : y > x ? y : zeros;
    const double left = double_choose(x == x, ordered, y);
    const double number = double_choose(y == y, left, x);

    return double_choose((x != x) & (y != y), quiet(y), number);
}

#define SIGN64 0x8000000000000000u
#define QUIET64 0x0008000000000000u
#define U1(NAME, EXPRESSION) ROW_OP1(NAME, uint64_t, u64, uint64_t, u64, EXPRESSION)

D2(min_f64, double_min(x, y))
D2(max_f64, double_max(x, y))
U1(absolute, x << 1 > 0xffe0000000000000 ? x | QUIET64 : x & ~SIGN64)
U1(negative, x << 1 > 0xffe0000000000000 ? x | QUIET64 : x ^ SIGN64)
ROW_OP2(sign_copied, uint64_t, u64, uint64_t, u64, uint64_t, u64, (x & SIGN64) | (y & ~SIGN64))

static inline double flush_double(double x) {
    const uint64_t bits = row_bits_of_double(x);

    return row_double_of_bits((bits & 0x7ff0000000000000) == 0 ? bits & SIGN64 : bits);
}

/** @return the upper 32 bits of @p x alone. */
static inline double upper_half(double x) {
    return row_double_of_bits(row_bits_of_double(x) & 0xffffffff00000000);
}

/** @return @p x rounded to 20 bits of fraction: to its upper half. */
static inline double round_upper_half(double x) {
    const uint64_t rounded = row_bits_of_double(x) + 0x80000000;
    const double finite = upper_half(row_double_of_bits(rounded));
    const bool infinite = (x == __builtin_inf()) | (x == -__builtin_inf());
    const double number = double_choose(infinite, x, finite);

    return double_choose(x == x, number, row_double_of_bits(0x7fffffff00000000));
}

D1(rcp_approx, flush_double(round_upper_half(1.0 / flush_double(upper_half(x)))))
D1(rsqrt_approx_ftz, round_upper_half(1.0 / __builtin_sqrt(flush_double(upper_half(x)))))
D1(rsqrt_approx, settle1(1.0 / __builtin_sqrt(x), x))

#define DOUBLE SIMT_CLASS_DOUBLE
#define SPECIAL SIMT_CLASS_SPECIAL
#define OPTIONAL ALU_ROUNDING_OPTIONAL
#define REQUIRED ALU_ROUNDING_REQUIRED
#define NONE ALU_ROUNDING_NONE
#define ROUNDED(NAME) NAME, NAME, NAME##_directed

static const struct alu_float_entry entries[] = {
    {"add.f64", ROUNDED(add_f64), 0, 0, OPTIONAL, DOUBLE, 1},
    {"sub.f64", ROUNDED(sub_f64), 0, 0, OPTIONAL, DOUBLE, 1},
    {"mul.f64", ROUNDED(mul_f64), 0, 0, OPTIONAL, DOUBLE, 1},
    {"fma.f64", ROUNDED(fused_f64), 0, 0, REQUIRED, DOUBLE, 2},
    {"mad.f64", ROUNDED(fused_f64), 0, 0, REQUIRED, DOUBLE, 2},
    {"div.f64", ROUNDED(div_f64), 0, 0, REQUIRED, SPECIAL, 1},
    {"rcp.f64", ROUNDED(rcp_f64), 0, 0, REQUIRED, SPECIAL, 1},
    {"sqrt.f64", ROUNDED(root_f64), 0, 0, REQUIRED, SPECIAL, 1},
    {"min.f64", min_f64, min_f64, NULL, 0, 0, NONE, DOUBLE, 1},
    {"max.f64", max_f64, max_f64, NULL, 0, 0, NONE, DOUBLE, 1},
    {"abs.f64", absolute, absolute, NULL, 0, 0, NONE, DOUBLE, 1},
    {"neg.f64", negative, negative, NULL, 0, 0, NONE, DOUBLE, 1},
    {"copysign.f64", sign_copied, sign_copied, NULL, 0, 0, NONE, DOUBLE, 0},
    {"rcp.f64", rcp_approx, rcp_approx, NULL, ALU_APPROX | ALU_FTZ, ALU_APPROX | ALU_FTZ, NONE,
     SPECIAL, 1},
    {"rsqrt.f64", rsqrt_approx, rsqrt_approx, NULL, ALU_APPROX, ALU_APPROX, NONE, SPECIAL, 1},
    {"rsqrt.f64", rsqrt_approx_ftz, rsqrt_approx_ftz, NULL, ALU_APPROX | ALU_FTZ,
     ALU_APPROX | ALU_FTZ, NONE, SPECIAL, 1},
};

bool alu_decode_f64(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    return alu_decode_float(entries, COUNT(entries), decoding, instruction);
}

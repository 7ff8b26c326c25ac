/**
 * @file half.c
 * @brief f16, f16x2, bf16 and bf16x2: add sub mul fma min max abs neg, ex2 and tanh.
 *
 * Operands become fp32, the result is rounded once: fp32 has more than twice the
 * digits, which makes the second rounding of sums and products harmless; fma
 * rounds to odd first. detail[0]: enum alu_flag.
 */
#include "common/simt/alu/half.h"
#include "common/simt/alu/approximate.h"

/** @return an fp16 word with a subnormal as a zero of its sign. */
static inline uint32_t flush_half(uint32_t word) {
    return (word & 0x7c00) == 0 ? word & 0x8000 : word;
}

/**
 * @return a result as a zero of its sign when it is subnormal after rounding to 11
 *         bits of any exponent: 2^-14 (1 - 2^-12) just rounds to the least normal half
 */
static inline float flush_half_result(float result) {
    return float_choose(float_abs(result) < 0x1.ffep-15f, float_copy_sign(result, 0.0f), result);
}

static inline uint32_t keep_bfloat(uint32_t word) {
    return word;
}

static inline float keep_bfloat_result(float result) {
    return result;
}

/** @return @p r with .sat and .relu applied. */
static inline float clamp_result(float r, uint32_t flags) {
    const float positive = r != r ? r : float_max(r, 0.0f);

    return flags & ALU_SAT ? float_saturate(r) : flags & ALU_RELU ? positive : r;
}

#define ADD(x, y, z, flags) ((x) + (y))
#define SUBTRACT(x, y, z, flags) ((x) - (y))
#define MULTIPLY(x, y, z, flags) ((x) * (y))
#define FUSED(x, y, z, flags) fused_to_odd(x, y, z)
#define MINIMUM(x, y, z, flags) FLOAT_SELECT(float_min, x, y, flags)
#define MAXIMUM(x, y, z, flags) FLOAT_SELECT(float_max, x, y, flags)

/**
 * Four handlers of an operation: one word and two, plain and by details. FORMAT
 * is half or bfloat; FLUSH what .ftz does to one of its words.
 */
#define DEFINE_FORMAT(NAME, OP, FORMAT, FLUSH, LOADS)                                 \
    static inline uint32_t NAME##_##FORMAT##_word(uint32_t x, uint32_t y, uint32_t z, \
                                                  uint32_t flags) {                   \
        const float p = FORMAT##_to_float(flags & ALU_FTZ ? FLUSH(x) : x);            \
        const float q = FORMAT##_to_float(flags & ALU_FTZ ? FLUSH(y) : y);            \
        const float r = FORMAT##_to_float(flags & ALU_FTZ ? FLUSH(z) : z);            \
        const float result = OP(p, q, r, flags);                                      \
        const float kept = flags & ALU_FTZ ? FLUSH##_result(result) : result;         \
        (void)r;                                                                      \
        return float_to_##FORMAT(clamp_result(kept, flags));                          \
    }                                                                                 \
    DEFINE_ROWS(NAME##_##FORMAT##_plain, NAME##_##FORMAT##_word, 0, LOADS)            \
    DEFINE_ROWS(NAME##_##FORMAT##_general, NAME##_##FORMAT##_word, instruction->detail[0], LOADS)

#define DEFINE_ROWS(NAME, WORD, FLAGS, LOADS)                                                     \
    ROW_HANDLER(NAME) {                                                                           \
        const uint32_t flags = FLAGS;                                                             \
        ROW_DESTINATION;                                                                          \
        LOADS##_ROWS;                                                                             \
        ROW_STORE(uint32_t, u32, LOADS##_LANES, WORD(x & 0xffff, y & 0xffff, z & 0xffff, flags)); \
    }                                                                                             \
    ROW_HANDLER(NAME##_x2) {                                                                      \
        const uint32_t flags = FLAGS;                                                             \
        ROW_DESTINATION;                                                                          \
        LOADS##_ROWS;                                                                             \
        ROW_STORE(uint32_t, u32, LOADS##_LANES,                                                   \
                  WORD(x & 0xffff, y & 0xffff, z & 0xffff, flags) |                               \
                      WORD(x >> 16, y >> 16, z >> 16, flags) << 16);                              \
    }

#define TWO_ROWS      \
    ROW_SOURCE(a, 0); \
    ROW_SOURCE(b, 1)
#define TWO_LANES                 \
    const uint32_t x = a->u32[i]; \
    const uint32_t y = b->u32[i]; \
    const uint32_t z = 0;
#define THREE_ROWS \
    TWO_ROWS;      \
    ROW_SOURCE(c, 2)
#define THREE_LANES               \
    const uint32_t x = a->u32[i]; \
    const uint32_t y = b->u32[i]; \
    const uint32_t z = c->u32[i];

#define DEFINE(NAME, OP, LOADS)                      \
    DEFINE_FORMAT(NAME, OP, half, flush_half, LOADS) \
    DEFINE_FORMAT(NAME, OP, bfloat, keep_bfloat, LOADS)

DEFINE(add, ADD, TWO)
DEFINE(sub, SUBTRACT, TWO)
DEFINE(mul, MULTIPLY, TWO)
DEFINE(fma, FUSED, THREE)
DEFINE(min, MINIMUM, TWO)
DEFINE(max, MAXIMUM, TWO)

#define W1(NAME, EXPRESSION) ROW_OP1(NAME, uint32_t, u32, uint32_t, u32, EXPRESSION)
#define BOTH(FUNCTION, x) (FUNCTION((x)&0xffff) | FUNCTION((x) >> 16) << 16)

/** abs and neg of a word; @p infinity: of its format. NaN becomes the canonical one. */
static inline uint32_t absolute(uint32_t word, uint32_t infinity) {
    const uint32_t magnitude = word & 0x7fff;

    return magnitude > infinity ? (uint32_t)HALF_NAN : magnitude;
}

static inline uint32_t negative(uint32_t word, uint32_t infinity) {
    return (word & 0x7fff) > infinity ? (uint32_t)HALF_NAN : word ^ 0x8000;
}

#define ABS_HALF(word) absolute(word, 0x7c00)
#define NEG_HALF(word) negative(word, 0x7c00)
#define ABS_FTZ(word) absolute(flush_half(word), 0x7c00)
#define NEG_FTZ(word) negative(flush_half(word), 0x7c00)
#define ABS_BFLOAT(word) absolute(word, 0x7f80)
#define NEG_BFLOAT(word) negative(word, 0x7f80)
#define DEFINE_SIGN(NAME, FUNCTION) \
    W1(NAME, FUNCTION(x & 0xffff))  \
    W1(NAME##_x2, BOTH(FUNCTION, x))

DEFINE_SIGN(abs_half, ABS_HALF)
DEFINE_SIGN(neg_half, NEG_HALF)
DEFINE_SIGN(abs_half_ftz, ABS_FTZ)
DEFINE_SIGN(neg_half_ftz, NEG_FTZ)
DEFINE_SIGN(abs_bfloat, ABS_BFLOAT)
DEFINE_SIGN(neg_bfloat, NEG_BFLOAT)

/** One half of a row through an approximation; adds the result's words to @p d. */
#define DEFINE_APPROXIMATE(FORMAT, FLUSH)                                                 \
    static void approximate_##FORMAT(const union simt_row *a, uint32_t shift, bool flush, \
                                     approximate_row *function, uint32_t d[SIMT_LANES]) { \
        float value[SIMT_LANES];                                                          \
        ROW_EACH_LANE(i) {                                                                \
            const uint32_t word = a->u32[i] >> shift & 0xffff;                            \
            value[i] = FORMAT##_to_float(flush ? FLUSH(word) : word);                     \
        }                                                                                 \
        function(value, value);                                                           \
        ROW_EACH_LANE(i) {                                                                \
            const uint32_t word = float_to_##FORMAT(value[i]);                            \
            d[i] |= (flush ? FLUSH(word) : word) << shift;                                \
        }                                                                                 \
    }

static inline uint32_t flush_bfloat(uint32_t word) {
    return (word & 0x7f80) == 0 ? word & 0x8000 : word;
}

DEFINE_APPROXIMATE(half, flush_half)
DEFINE_APPROXIMATE(bfloat, flush_bfloat)

#define DEFINE_SPECIAL(NAME, FUNCTION, FORMAT)                                      \
    ROW_HANDLER(NAME) {                                                             \
        uint32_t d[SIMT_LANES] = {0};                                               \
        ROW_SOURCE(a, 0);                                                           \
        approximate_##FORMAT(a, 0, instruction->detail[0] & ALU_FTZ, FUNCTION, d);  \
        row_commit32(warp, instruction->dst[0], d);                                 \
    }                                                                               \
    ROW_HANDLER(NAME##_x2) {                                                        \
        uint32_t d[SIMT_LANES] = {0};                                               \
        ROW_SOURCE(a, 0);                                                           \
        approximate_##FORMAT(a, 0, instruction->detail[0] & ALU_FTZ, FUNCTION, d);  \
        approximate_##FORMAT(a, 16, instruction->detail[0] & ALU_FTZ, FUNCTION, d); \
        row_commit32(warp, instruction->dst[0], d);                                 \
    }

DEFINE_SPECIAL(ex2_half, approximate_ex2, half)
DEFINE_SPECIAL(ex2_bfloat, approximate_ex2, bfloat)
DEFINE_SPECIAL(tanh_half, approximate_tanh, half)
DEFINE_SPECIAL(tanh_bfloat, approximate_tanh, bfloat)

#define PAIR_OF(KEY, FORMAT, HANDLER, ALLOWED, REQUIRED, ROUNDS, CLASS, FLOPS)               \
    {KEY "." FORMAT,                                                                         \
     HANDLER##_plain,                                                                        \
     HANDLER##_general,                                                                      \
     HANDLER##_general,                                                                      \
     ALLOWED,                                                                                \
     REQUIRED,                                                                               \
     ROUNDS,                                                                                 \
     CLASS,                                                                                  \
     FLOPS},                                                                                 \
    {                                                                                        \
        KEY "." FORMAT "x2", HANDLER##_plain_x2, HANDLER##_general_x2, HANDLER##_general_x2, \
            ALLOWED, REQUIRED, ROUNDS, CLASS, 2 * FLOPS                                      \
    }
#define SINGLE_OF(KEY, FORMAT, HANDLER, ALLOWED, REQUIRED, CLASS, FLOPS)                        \
    {KEY "." FORMAT, HANDLER, HANDLER, HANDLER, ALLOWED, REQUIRED, NONE, CLASS, FLOPS}, {       \
        KEY "." FORMAT "x2", HANDLER##_x2, HANDLER##_x2, HANDLER##_x2, ALLOWED, REQUIRED, NONE, \
            CLASS, 2 * FLOPS                                                                    \
    }
#define FLOAT SIMT_CLASS_FLOAT
#define SPECIAL SIMT_CLASS_SPECIAL
#define NONE ALU_ROUNDING_NONE
#define MAY_SAY_RN ALU_NEAREST_OPTIONAL
#define MUST_SAY_RN ALU_NEAREST_REQUIRED
#define SELECTS (ALU_NAN | ALU_XORSIGN)

static const struct alu_float_entry entries[] = {
    PAIR_OF("add", "f16", add_half, ALU_FTZ | ALU_SAT, 0, MAY_SAY_RN, FLOAT, 1),
    PAIR_OF("sub", "f16", sub_half, ALU_FTZ | ALU_SAT, 0, MAY_SAY_RN, FLOAT, 1),
    PAIR_OF("mul", "f16", mul_half, ALU_FTZ | ALU_SAT, 0, MAY_SAY_RN, FLOAT, 1),
    PAIR_OF("fma", "f16", fma_half, ALU_FTZ | ALU_SAT | ALU_RELU, 0, MUST_SAY_RN, FLOAT, 2),
    PAIR_OF("min", "f16", min_half, ALU_FTZ | SELECTS, 0, NONE, FLOAT, 1),
    PAIR_OF("max", "f16", max_half, ALU_FTZ | SELECTS, 0, NONE, FLOAT, 1),
    PAIR_OF("add", "bf16", add_bfloat, 0, 0, MAY_SAY_RN, FLOAT, 1),
    PAIR_OF("sub", "bf16", sub_bfloat, 0, 0, MAY_SAY_RN, FLOAT, 1),
    PAIR_OF("mul", "bf16", mul_bfloat, 0, 0, MAY_SAY_RN, FLOAT, 1),
    PAIR_OF("fma", "bf16", fma_bfloat, ALU_RELU, 0, MUST_SAY_RN, FLOAT, 2),
    PAIR_OF("min", "bf16", min_bfloat, SELECTS, 0, NONE, FLOAT, 1),
    PAIR_OF("max", "bf16", max_bfloat, SELECTS, 0, NONE, FLOAT, 1),
    SINGLE_OF("abs", "f16", abs_half, 0, 0, FLOAT, 1),
    SINGLE_OF("neg", "f16", neg_half, 0, 0, FLOAT, 1),
    SINGLE_OF("abs", "f16", abs_half_ftz, ALU_FTZ, ALU_FTZ, FLOAT, 1),
    SINGLE_OF("neg", "f16", neg_half_ftz, ALU_FTZ, ALU_FTZ, FLOAT, 1),
    SINGLE_OF("abs", "bf16", abs_bfloat, 0, 0, FLOAT, 1),
    SINGLE_OF("neg", "bf16", neg_bfloat, 0, 0, FLOAT, 1),
    SINGLE_OF("ex2", "f16", ex2_half, ALU_APPROX | ALU_FTZ, ALU_APPROX, SPECIAL, 1),
    SINGLE_OF("ex2", "bf16", ex2_bfloat, ALU_APPROX | ALU_FTZ, ALU_APPROX | ALU_FTZ, SPECIAL, 1),
    SINGLE_OF("tanh", "f16", tanh_half, ALU_APPROX, ALU_APPROX, SPECIAL, 1),
    SINGLE_OF("tanh", "bf16", tanh_bfloat, ALU_APPROX, ALU_APPROX, SPECIAL, 1),
};

bool simt_decode_half(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    return alu_decode_float(entries, COUNT(entries), decoding, instruction);
}

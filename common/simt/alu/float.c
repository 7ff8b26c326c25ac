/**
 * @file float.c
 * @brief fp32 arithmetic: add sub mul fma mad div rcp sqrt min max abs neg copysign testp.
 *
 * Each operation has a plain handler (.rn), one that flushes subnormals (.ftz)
 * and one for everything else (directed rounding, .sat), which reads the
 * instruction's details. detail[0]: enum alu_flag; detail[1]: rounding.
 *
 * div, rcp and sqrt with .approx or .full are rounded correctly, within the
 * bounds that PTX states for them.
 */
#include "common/simt/alu/float_ops.h"

#define F1(NAME, EXPRESSION) ROW_OP1(NAME, float, f32, float, f32, EXPRESSION)
#define F2(NAME, EXPRESSION) ROW_OP2(NAME, float, f32, float, f32, float, f32, EXPRESSION)

/* Operations, and the same 2^64 times as large (for flush_result()). */
#define ADD(x, y) ((x) + (y))
#define ADD_LARGE(x, y) (ADD(x, y) * 0x1p64f)
#define SUBTRACT(x, y) ((x) - (y))
#define SUBTRACT_LARGE(x, y) (SUBTRACT(x, y) * 0x1p64f)
#define MULTIPLY(x, y) ((x) * (y))
#define MULTIPLY_LARGE(x, y) ((x)*0x1p64f * (y))
#define DIVIDE(x, y) ((x) / (y))
#define DIVIDE_LARGE(x, y) ((x)*0x1p64f / (y))
#define RECIPROCAL(x) (1.0f / (x))
#define RECIPROCAL_LARGE(x) (0x1p64f / (x))
#define ROOT(x) __builtin_sqrtf(x)
#define ROOT_LARGE(x) 1.0f /* never subnormal; a zero stays one */
#define FUSED(x, y, z) __builtin_fmaf(x, y, z)
#define FUSED_LARGE(x, y, z) __builtin_fmaf((x)*0x1p64f, y, (z)*0x1p64f)

/**
 * What .ftz makes of a result: a zero when it is subnormal before it is rounded to
 * the spacing of subnormals, which may lift it to 2^-126. @p large: the same result
 * 2^64 times as large, where that spacing does not matter.
 */
static inline float flush_result(float result, float large) {
    const bool tiny = (float_abs(result) <= 0x1p-126f) & (float_abs(large) < 0x1p-62f);

    return float_choose(tiny, float_copy_sign(result, 0.0f), result);
}

static inline float finish_result(float result, bool saturate) {
    return saturate ? float_saturate(result) : float_canonical(result);
}

/* The body of a handler that may flush: `flush` and `saturate` are there. */
#define FLUSH_IF(x) (flush ? float_flush(x) : (x))
#define LOAD(name, row) const float name = FLUSH_IF(row->f32[i]);
#define BODY(LOADS, EXPRESSION, LARGE)                             \
    ROW_STORE(float, f32, LOADS const float result = (EXPRESSION); \
              , finish_result(flush ? flush_result(result, LARGE) : result, saturate))

/** Three handlers: plain, with .ftz, and any other with its details. */
#define HANDLERS_OF(NAME, SOURCES, LOADS, EXPRESSION, LARGE)            \
    ROW_HANDLER(NAME##_plain) {                                         \
        const bool flush = false;                                       \
        const bool saturate = false;                                    \
        ROW_DESTINATION;                                                \
        SOURCES;                                                        \
        BODY(LOADS, EXPRESSION, LARGE);                                 \
    }                                                                   \
    ROW_HANDLER(NAME##_ftz) {                                           \
        const bool flush = true;                                        \
        const bool saturate = false;                                    \
        ROW_DESTINATION;                                                \
        SOURCES;                                                        \
        BODY(LOADS, EXPRESSION, LARGE);                                 \
    }                                                                   \
    ROW_HANDLER(NAME##_general) {                                       \
        const bool flush = instruction->detail[0] & ALU_FTZ;            \
        const bool saturate = instruction->detail[0] & ALU_SAT;         \
        ROW_DESTINATION;                                                \
        SOURCES;                                                        \
        const uint32_t saved = alu_round_begin(instruction->detail[1]); \
        BODY(LOADS, EXPRESSION, LARGE);                                 \
        alu_round_end(saved);                                           \
    }
#define DEFINE1(NAME, OP) HANDLERS_OF(NAME, ROW_SOURCE(a, 0), LOAD(x, a), OP(x), OP##_LARGE(x))
#define DEFINE2(NAME, OP)               \
    HANDLERS_OF(NAME, ROW_SOURCE(a, 0); \
                ROW_SOURCE(b, 1), LOAD(x, a) LOAD(y, b), OP(x, y), OP##_LARGE(x, y))
#define DEFINE3(NAME, OP)                                                                   \
    HANDLERS_OF(NAME, ROW_SOURCE(a, 0); ROW_SOURCE(b, 1); ROW_SOURCE(c, 2),                 \
                                                          LOAD(x, a) LOAD(y, b) LOAD(z, c), \
                                                          OP(x, y, z), OP##_LARGE(x, y, z))

/* div.approx is x * (1 / y): beyond 2^126 the reciprocal is flushed to zero. */
static inline float divide_approx(float x, float y) {
    const float size = float_abs(y);
    const float quotient = x / y;
    const float tiny = float_copy_sign(quotient, 0.0f);
    const float lost = float_choose(float_abs(x) == __builtin_inff(), FLOAT_NAN, tiny);

    return float_choose((size > 0x1p126f) & (size < __builtin_inff()) & (x == x), lost, quotient);
}
#define DIVIDE_APPROX(x, y) divide_approx(x, y)
#define DIVIDE_APPROX_LARGE(x, y) DIVIDE_LARGE(x, y)

DEFINE2(add, ADD)
DEFINE2(sub, SUBTRACT)
DEFINE2(mul, MULTIPLY)
DEFINE2(div, DIVIDE)
DEFINE2(div_approx, DIVIDE_APPROX)
DEFINE3(fma, FUSED)
DEFINE1(rcp, RECIPROCAL)
DEFINE1(sqrt, ROOT)

static inline float negate(float x) {
    return row_float_of_bits(row_bits_of_float(x) ^ 0x80000000);
}

F2(min_plain, FLOAT_SELECT(float_min, x, y, 0))
F2(max_plain, FLOAT_SELECT(float_max, x, y, 0))
F2(min_ftz, FLOAT_SELECT(float_min, float_flush(x), float_flush(y), 0))
F2(max_ftz, FLOAT_SELECT(float_max, float_flush(x), float_flush(y), 0))
F2(sign_copied, float_copy_sign(x, y))
F1(abs_plain, float_canonical(float_abs(x)))
F1(abs_ftz, float_canonical(float_abs(float_flush(x))))
F1(neg_plain, float_canonical(negate(x)))
F1(neg_ftz, float_canonical(negate(float_flush(x))))

#define GENERAL_SELECT(NAME, FUNCTION)                                                     \
    ROW_HANDLER(NAME) {                                                                    \
        const uint32_t flags = instruction->detail[0];                                     \
        const bool flush = flags & ALU_FTZ;                                                \
        ROW_DESTINATION;                                                                   \
        ROW_SOURCE(a, 0);                                                                  \
        ROW_SOURCE(b, 1);                                                                  \
        ROW_STORE(float, f32, LOAD(x, a) LOAD(y, b), FLOAT_SELECT(FUNCTION, x, y, flags)); \
    }

GENERAL_SELECT(min_general, float_min)
GENERAL_SELECT(max_general, float_max)

/* testp: a class of numbers. detail[0]: which. */
enum test { TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NAN, TEST_NORMAL, TEST_SUBNORMAL };

static bool test_bits(enum test test, uint64_t magnitude, uint64_t least_normal,
                      uint64_t infinity) {
    switch (test) {
    case TEST_FINITE:
        return magnitude < infinity;
    case TEST_INFINITE:
        return magnitude == infinity;
    case TEST_NUMBER:
        return magnitude <= infinity;
    case TEST_NAN:
        return magnitude > infinity;
    case TEST_NORMAL:
        return magnitude == 0 ||
               (magnitude >= least_normal && magnitude < infinity); /* ISA: zeros too */
    default:
        return magnitude != 0 && magnitude < least_normal;
    }
}

ROW_HANDLER(testp_f32) {
    ROW_SOURCE(a, 0);
    uint32_t bits = 0;

    for (size_t i = 0; i < SIMT_LANES; i++) {
        const bool yes =
            test_bits(instruction->detail[0], a->u32[i] & 0x7fffffff, 0x00800000, 0x7f800000);
        bits |= (uint32_t)yes << i;
    }
    row_commit_predicate(warp, instruction->pred_dst[0], bits);
}

ROW_HANDLER(testp_f64) {
    ROW_SOURCE(a, 0);
    uint32_t bits = 0;

    for (size_t i = 0; i < SIMT_LANES; i++) {
        const bool yes = test_bits(instruction->detail[0], a->u64[i] & INT64_MAX,
                                   0x0010000000000000, 0x7ff0000000000000);
        bits |= (uint32_t)yes << i;
    }
    row_commit_predicate(warp, instruction->pred_dst[0], bits);
}

static const char *const test_names[] = {"finite",     "infinite", "number",
                                         "notanumber", "normal",   "subnormal"};

static bool decode_testp(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    const enum ptx_type type = ptx_modifier_type(source, 0);

    if (strcmp(source->base, "testp") != 0 || source->modifier_count != 2 ||
        (type != PTX_F32 && type != PTX_F64) || !alu_operands_fit(decoding)) {
        return false;
    }
    for (size_t i = 0; i < COUNT(test_names); i++) {
        if (strcmp(source->modifiers[0], test_names[i]) == 0) {
            out->detail[0] = (uint32_t)i;
            out->run = type == PTX_F32 ? testp_f32 : testp_f64;
            out->op_class = SIMT_CLASS_PREDICATE;
            return true;
        }
    }
    return false;
}

#define HANDLERS(NAME) NAME##_plain, NAME##_ftz, NAME##_general
#define FLOAT SIMT_CLASS_FLOAT
#define SPECIAL SIMT_CLASS_SPECIAL
#define OPTIONAL ALU_ROUNDING_OPTIONAL
#define REQUIRED ALU_ROUNDING_REQUIRED
#define NONE ALU_ROUNDING_NONE

static const struct alu_float_entry entries[] = {
    {"add.f32", HANDLERS(add), ALU_FTZ | ALU_SAT, 0, OPTIONAL, FLOAT, 1},
    {"sub.f32", HANDLERS(sub), ALU_FTZ | ALU_SAT, 0, OPTIONAL, FLOAT, 1},
    {"mul.f32", HANDLERS(mul), ALU_FTZ | ALU_SAT, 0, OPTIONAL, FLOAT, 1},
    {"fma.f32", HANDLERS(fma), ALU_FTZ | ALU_SAT, 0, REQUIRED, FLOAT, 2},
    {"mad.f32", HANDLERS(fma), ALU_FTZ | ALU_SAT, 0, OPTIONAL, FLOAT, 2},
    {"min.f32", HANDLERS(min), ALU_FTZ | ALU_NAN | ALU_XORSIGN, 0, NONE, FLOAT, 1},
    {"max.f32", HANDLERS(max), ALU_FTZ | ALU_NAN | ALU_XORSIGN, 0, NONE, FLOAT, 1},
    {"abs.f32", abs_plain, abs_ftz, NULL, ALU_FTZ, 0, NONE, FLOAT, 1},
    {"neg.f32", neg_plain, neg_ftz, NULL, ALU_FTZ, 0, NONE, FLOAT, 1},
    {"copysign.f32", sign_copied, NULL, NULL, 0, 0, NONE, FLOAT, 0},
    {"div.f32", HANDLERS(div), ALU_FTZ, 0, REQUIRED, SPECIAL, 1},
    {"div.f32", HANDLERS(div), ALU_FTZ | ALU_FULL, ALU_FULL, NONE, SPECIAL, 1},
    {"div.f32", HANDLERS(div_approx), ALU_FTZ | ALU_APPROX, ALU_APPROX, NONE, SPECIAL, 1},
    {"rcp.f32", HANDLERS(rcp), ALU_FTZ, 0, REQUIRED, SPECIAL, 1},
    {"rcp.f32", HANDLERS(rcp), ALU_FTZ | ALU_APPROX, ALU_APPROX, NONE, SPECIAL, 1},
    {"sqrt.f32", HANDLERS(sqrt), ALU_FTZ, 0, REQUIRED, SPECIAL, 1},
    {"sqrt.f32", HANDLERS(sqrt), ALU_FTZ | ALU_APPROX, ALU_APPROX, NONE, SPECIAL, 1},
};

bool alu_decode_f32(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    return decode_testp(decoding, instruction) ||
           alu_decode_float(entries, COUNT(entries), decoding, instruction);
}

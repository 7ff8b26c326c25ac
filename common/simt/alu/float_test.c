#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/alu/exact_float.h"
#include "common/simt/alu/testing.h"
#include "common/testing/testing.h"

struct form {
    const char *base;
    int format; /**< 16 fp16, 17 bf16, 32, 64 */
    uint32_t rounding;
    uint32_t flags;
};

static bool is(const struct form *f, const char *base) {
    return strcmp(f->base, base) == 0;
}

static uint64_t sign_bit(int format) {
    return format < 32 ? 0x8000 : (uint64_t)1 << (format - 1);
}

static uint64_t canonical_nan(int format) {
    return format < 32 ? 0x7fff : format == 32 ? 0x7fffffff : 0x7fffffffffffffff;
}

static uint64_t flush(uint64_t word, const struct form *f) {
    const uint64_t magnitude = word & (sign_bit(f->format) - 1);
    const uint64_t least = f->format == 16 ? 0x0400 : f->format == 17 ? 0x0080 : 0x00800000;

    return f->flags & ALU_FTZ && magnitude < least ? word & sign_bit(f->format) : word;
}

/** @return the square root to 113 bits, by Newton's method from a double. */
static quad root(double x) {
    quad r = (quad)sqrt(x);

    for (int step = 0; step < 3 && r != 0; step++) {
        r = (r + (quad)x / r) / 2;
    }
    return r;
}

/** The operation in doubles, for infinities, NaN and zeros alone. */
static double special(const struct form *f, double x, double y, double z) {
    return is(f, "add")                 ? x + y
           : is(f, "sub")               ? x - y
           : is(f, "mul")               ? x * y
           : is(f, "div")               ? x / y
           : is(f, "rcp")               ? 1 / x
           : is(f, "sqrt")              ? sqrt(x)
           : isfinite(x) && isfinite(y) ? z /* the one that is not finite */
                                        : x * y + z;
}

/** The exact value; quotients and roots to 113 bits, which is nearer than they come to a middle. */
static struct exact exact_result(const struct form *f, double x, double y, double z) {
    return is(f, "add")   ? exact_sum((quad)x, (quad)y)
           : is(f, "sub") ? exact_sum((quad)x, -(quad)y)
           : is(f, "mul") ? (struct exact){(quad)x * (quad)y, 0}
           : is(f, "div") ? (struct exact){(quad)x / (quad)y, 0}
           : is(f, "rcp") ? (struct exact){(quad)1 / (quad)x, 0}
           : is(f, "fma") ? exact_sum((quad)x * (quad)y, (quad)z)
                          : (struct exact){root(x), 0};
}

/** @return sign of an exact zero. */
static bool zero_is_negative(const struct form *f, double x, double y, double z) {
    const bool product = signbit(x) != signbit(y);

    if (is(f, "mul") || is(f, "div")) {
        return product;
    }
    if (is(f, "sqrt")) {
        return signbit(x);
    }
    const bool first = is(f, "fma") ? product : signbit(x);
    const bool second = is(f, "fma") ? signbit(z) : is(f, "sub") ? !signbit(y) : signbit(y);
    return first == second ? first : f->rounding == ALU_DOWN;
}

static uint64_t finish(const struct form *f, uint64_t word) {
    const bool nan = (word & (sign_bit(f->format) - 1)) > exact_infinity(f->format);
    const double value = exact_value(word, f->format);

    word = nan ? canonical_nan(f->format) : flush(word, f);
    if (f->flags & ALU_SAT && (nan || value <= 0 || value > 1)) {
        const struct exact one = {1, 0};
        return nan || value <= 0 ? 0 : exact_round(one, f->format, ALU_NEAREST, false);
    }
    return f->flags & ALU_RELU && !nan && word & sign_bit(f->format) ? 0 : word;
}

/** Which of the operands' NaN an H200 delivers, and what it delivers where there is none. */
static uint64_t double_nan(const struct form *f, const uint64_t s[3]) {
    const size_t first_operands[] = {0, 1, 2};
    const size_t second_operands[] = {1, 2, 0};
    const size_t *order = is(f, "div") ? first_operands : second_operands;

    for (size_t n = 0; n < 3; n++) {
        if (isnan(exact_value(s[order[n]], 64))) {
            return s[order[n]] | 0x0008000000000000;
        }
    }
    return 0xfff8000000000000;
}

static uint64_t one_word(const struct form *f, const uint64_t s[3]) {
    double v[3];
    bool finite = true;

    for (size_t n = 0; n < 3; n++) {
        v[n] = exact_value(flush(s[n], f), f->format);
        finite = finite && isfinite(v[n]);
    }
    const bool divides = is(f, "div") || is(f, "rcp");
    const bool by_zero = divides && v[is(f, "div")] == 0;
    if (finite && !by_zero && !(is(f, "sqrt") && v[0] < 0)) {
        const struct exact value = exact_result(f, v[0], v[1], v[2]);
        if (f->flags & ALU_FTZ && exact_compare(value, 0) != 0 &&
            exact_is_tiny(value, f->format, f->rounding)) {
            const bool below = exact_compare(value, 0) < 0;
            return below && !(f->flags & (ALU_SAT | ALU_RELU)) ? sign_bit(f->format) : 0;
        }
        return finish(f, exact_round(exact_result(f, v[0], v[1], v[2]), f->format, f->rounding,
                                     zero_is_negative(f, v[0], v[1], v[2])));
    }
    const double result = special(f, v[0], v[1], v[2]);
    if (isfinite(result)) {
        const struct exact value = {(quad)result, 0};
        return finish(f, exact_round(value, f->format, f->rounding, signbit(result)));
    }
    if (isnan(result)) {
        return f->format == 64 ? double_nan(f, s) : finish(f, canonical_nan(f->format));
    }
    return finish(f, exact_infinity(f->format) | (result < 0 ? sign_bit(f->format) : 0));
}

static uint64_t arithmetic(const void *context, const uint64_t s[4]) {
    const struct form *f = context;
    const bool unary = is(f, "rcp") || is(f, "sqrt");
    const uint64_t words[3] = {s[0], unary ? 0 : s[1], is(f, "fma") ? s[2] : 0};

    return one_word(f, words);
}

static uint64_t pairs(const void *context, const uint64_t s[4]) {
    const uint64_t low[3] = {s[0] & 0xffff, s[1] & 0xffff, s[2] & 0xffff};
    const uint64_t high[3] = {s[0] >> 16, s[1] >> 16, s[2] >> 16};

    return one_word(context, low) | one_word(context, high) << 16;
}

static const char *const modes[] = {"rn", "rm", "rp", "rz"};

static size_t sources_of(const char *base) {
    return strcmp(base, "fma") == 0                                ? 3
           : strcmp(base, "rcp") == 0 || strcmp(base, "sqrt") == 0 ? 1
                                                                   : 2;
}

C_TEST(alu_float, fp32_is_exactly_rounded_in_every_mode) {
    static const char *const bases[] = {"add", "sub", "mul", "fma", "div", "rcp", "sqrt"};
    char opcode[48];

    for (size_t b = 0; b < COUNT(bases); b++) {
        for (uint32_t mode = 0; mode < 4; mode++) {
            for (uint32_t flags = 0; flags < (b < 4 ? 4u : 2u); flags++) {
                const struct form form = {bases[b], 32, mode, flags};

                snprintf(opcode, sizeof opcode, "%s.%s%s%s.f32", bases[b], modes[mode],
                         flags & ALU_FTZ ? ".ftz" : "", flags & ALU_SAT ? ".sat" : "");
                alu_check(opcode, sources_of(bases[b]), alu_make_float, arithmetic, &form);
            }
        }
    }
}

C_TEST(alu_float, forms_without_a_mode_round_to_nearest) {
    static const struct {
        const char *opcode;
        struct form form;
    } forms[] = {
        {"add.f32", {"add", 32, 0, 0}},
        {"sub.ftz.f32", {"sub", 32, 0, ALU_FTZ}},
        {"mul.ftz.sat.f32", {"mul", 32, 0, ALU_FTZ | ALU_SAT}},
        {"mad.rn.f32", {"fma", 32, 0, 0}},
        {"mad.f32", {"fma", 32, 0, 0}},
        {"div.full.f32", {"div", 32, 0, 0}},
        {"div.full.ftz.f32", {"div", 32, 0, ALU_FTZ}},
        {"rcp.approx.f32", {"rcp", 32, 0, 0}},
        {"rcp.approx.ftz.f32", {"rcp", 32, 0, ALU_FTZ}},
        {"sqrt.approx.f32", {"sqrt", 32, 0, 0}},
        {"sqrt.approx.ftz.f32", {"sqrt", 32, 0, ALU_FTZ}},
        {"add.f64", {"add", 64, 0, 0}},
        {"mul.f64", {"mul", 64, 0, 0}},
        {"mad.rn.f64", {"fma", 64, 0, 0}},
    };

    for (size_t n = 0; n < COUNT(forms); n++) {
        alu_check(forms[n].opcode, sources_of(forms[n].form.base), alu_make_float, arithmetic,
                  &forms[n].form);
    }
}

C_TEST(alu_float, fp64_is_exactly_rounded_in_every_mode) {
    static const char *const bases[] = {"add", "sub", "mul", "fma", "div", "rcp", "sqrt"};
    char opcode[48];

    for (size_t b = 0; b < COUNT(bases); b++) {
        for (uint32_t mode = 0; mode < 4; mode++) {
            const struct form form = {bases[b], 64, mode, 0};

            snprintf(opcode, sizeof opcode, "%s.%s.f64", bases[b], modes[mode]);
            alu_check(opcode, sources_of(bases[b]), alu_make_float, arithmetic, &form);
        }
    }
}

C_TEST(alu_float, halves_are_exactly_rounded) {
    static const struct {
        const char *middle;
        uint32_t flags;
        bool half, bfloat; /* which formats have it */
        const char *only;  /* NULL: all operations */
    } forms[] = {
        {".rn", 0, true, true, NULL},
        {".rn.ftz", ALU_FTZ, true, false, NULL},
        {".rn.sat", ALU_SAT, true, false, NULL},
        {".rn.ftz.sat", ALU_FTZ | ALU_SAT, true, false, NULL},
        {".rn.relu", ALU_RELU, true, true, "fma"},
    };
    static const char *const bases[] = {"add", "sub", "mul", "fma"};
    char opcode[48];

    for (size_t n = 0; n < COUNT(forms); n++) {
        for (size_t b = 0; b < COUNT(bases); b++) {
            if (forms[n].only != NULL && strcmp(forms[n].only, bases[b]) != 0) {
                continue;
            }
            for (int format = 16; format <= 17; format++) {
                const struct form form = {bases[b], format, ALU_NEAREST, forms[n].flags};
                const char *name = format == 16 ? "f16" : "bf16";
                alu_operand_maker *maker = format == 16 ? alu_make_float : alu_make_bfloat;

                if (format == 16 ? forms[n].half : forms[n].bfloat) {
                    const size_t sources = sources_of(bases[b]);
                    snprintf(opcode, sizeof opcode, "%s%s.%s", bases[b], forms[n].middle, name);
                    alu_check(opcode, sources, maker, arithmetic, &form);
                    snprintf(opcode, sizeof opcode, "%s%s.%sx2", bases[b], forms[n].middle, name);
                    alu_check(opcode, sources, maker, pairs, &form);
                }
            }
        }
    }
}

/* min and max by the order of values, -0 below +0. */
static uint64_t select_word(const struct form *f, uint64_t a, uint64_t b) {
    const uint64_t sign = sign_bit(f->format);
    const uint64_t signs = (a ^ b) & sign;
    double x = exact_value(flush(a, f), f->format);
    double y = exact_value(flush(b, f), f->format);

    a = flush(a, f);
    b = flush(b, f);
    if (f->flags & ALU_XORSIGN) {
        x = fabs(x);
        y = fabs(y);
        a &= ~sign;
        b &= ~sign;
    }
    if (isnan(x) && isnan(y)) {
        return f->format == 64 ? b | 0x0008000000000000 : canonical_nan(f->format);
    }
    if (isnan(x) || isnan(y)) {
        const uint64_t number = isnan(x) ? b : a;
        return f->flags & ALU_NAN       ? canonical_nan(f->format)
               : f->flags & ALU_XORSIGN ? number | signs
                                        : number;
    }
    const bool a_first = x < y || (x == y && signbit(x) && !signbit(y));
    const uint64_t chosen = a_first == is(f, "min") ? a : b;
    return f->flags & ALU_XORSIGN ? chosen | signs : chosen;
}

static uint64_t selection(const void *context, const uint64_t s[4]) {
    return select_word(context, s[0], s[1]);
}

static uint64_t selection_pairs(const void *context, const uint64_t s[4]) {
    return select_word(context, s[0] & 0xffff, s[1] & 0xffff) |
           select_word(context, s[0] >> 16, s[1] >> 16) << 16;
}

static void check_selection(const char *base, const char *type, int format, uint32_t flags) {
    const struct form form = {base, format, 0, flags};
    char opcode[48];

    snprintf(opcode, sizeof opcode, "%s%s%s%s.%s", base, flags & ALU_FTZ ? ".ftz" : "",
             flags & ALU_NAN ? ".NaN" : "", flags & ALU_XORSIGN ? ".xorsign.abs" : "", type);
    alu_check(opcode, 2, format == 17 ? alu_make_bfloat : alu_make_float,
              strstr(type, "x2") != NULL ? selection_pairs : selection, &form);
}

C_TEST(alu_float, minimum_and_maximum) {
    static const uint32_t flags[] = {
        0, ALU_FTZ, ALU_NAN, ALU_XORSIGN, ALU_NAN | ALU_XORSIGN, ALU_FTZ | ALU_NAN | ALU_XORSIGN};
    static const char *const bases[] = {"min", "max"};

    for (size_t b = 0; b < 2; b++) {
        check_selection(bases[b], "f64", 64, 0);
        for (size_t n = 0; n < COUNT(flags); n++) {
            check_selection(bases[b], "f32", 32, flags[n]);
            check_selection(bases[b], "f16", 16, flags[n]);
            check_selection(bases[b], "f16x2", 16, flags[n]);
            if (!(flags[n] & ALU_FTZ)) {
                check_selection(bases[b], "bf16", 17, flags[n]);
                check_selection(bases[b], "bf16x2", 17, flags[n]);
            }
        }
    }
}

static uint64_t sign_operation(const void *context, const uint64_t s[4]) {
    const struct form *f = context;
    const uint64_t sign = sign_bit(f->format);
    const uint64_t word = flush(s[0], f);

    if (f->base[0] != 'c' && isnan(exact_value(word, f->format))) {
        return f->format == 64 ? word | 0x0008000000000000 : canonical_nan(f->format);
    }
    return is(f, "abs")   ? word & ~sign
           : is(f, "neg") ? word ^ sign
                          : (s[0] & sign) | (s[1] & ~sign);
}

C_TEST(alu_float, signs) {
    static const struct {
        const char *opcode;
        struct form form;
    } forms[] = {{"abs.f32", {"abs", 32, 0, 0}},           {"abs.ftz.f32", {"abs", 32, 0, ALU_FTZ}},
                 {"neg.f32", {"neg", 32, 0, 0}},           {"neg.ftz.f32", {"neg", 32, 0, ALU_FTZ}},
                 {"abs.f64", {"abs", 64, 0, 0}},           {"neg.f64", {"neg", 64, 0, 0}},
                 {"copysign.f32", {"cps", 32, 0, 0}},      {"copysign.f64", {"cps", 64, 0, 0}},
                 {"abs.f16", {"abs", 16, 0, 0}},           {"neg.f16", {"neg", 16, 0, 0}},
                 {"abs.ftz.f16", {"abs", 16, 0, ALU_FTZ}}, {"neg.ftz.f16", {"neg", 16, 0, ALU_FTZ}},
                 {"abs.bf16", {"abs", 17, 0, 0}},          {"neg.bf16", {"neg", 17, 0, 0}}};

    for (size_t n = 0; n < COUNT(forms); n++) {
        const size_t sources = forms[n].opcode[0] == 'c' ? 2 : 1;
        alu_check(forms[n].opcode, sources, alu_make_float, sign_operation, &forms[n].form);
    }
}

static uint64_t in_class(const void *context, const uint64_t s[4]) {
    const struct form *f = context;
    const double x = exact_value(s[0], f->format);
    const double least = f->format == 32 ? 0x1p-126 : 0x1p-1022;

    return is(f, "finite")       ? isfinite(x)
           : is(f, "infinite")   ? isinf(x) != 0
           : is(f, "number")     ? !isnan(x)
           : is(f, "notanumber") ? isnan(x) != 0
           : is(f, "normal")     ? x == 0 || (isfinite(x) && fabs(x) >= least)
                                 : x != 0 && fabs(x) < least;
}

C_TEST(alu_float, classes_of_numbers) {
    static const char *const names[] = {"finite",     "infinite", "number",
                                        "notanumber", "normal",   "subnormal"};
    char opcode[48];

    for (size_t n = 0; n < COUNT(names); n++) {
        for (int format = 32; format <= 64; format += 32) {
            const struct form form = {names[n], format, 0, 0};

            snprintf(opcode, sizeof opcode, "testp.%s.f%d", names[n], format);
            alu_check(opcode, 1, alu_make_float, in_class, &form);
        }
    }
}

C_TEST(alu_float, unknown_forms_are_refused) {
    static const char *const fused[] = {"fma.f32", "fma.sat.bf16"};
    static const char *const opcodes[] = {
        "div.f32",       "div.rn.sat.f32",  "add.approx.f32", "add.rni.f32",   "add.ftz.f64",
        "min.rn.f32",    "rcp.approx.f64",  "sqrt.full.f32",  "add.rz.f16",    "add.sat.bf16",
        "tanh.f32",      "sin.f32",         "copysign.f16",   "add.rn.rn.f32", "neg.sat.f32",
        "testp.odd.f32", "ex2.approx.bf16", "add.relu.f16"};
    alu_check_refused(fused, COUNT(fused), 3);
    alu_check_refused(opcodes, COUNT(opcodes), 2);
}

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/alu/exact_float.h"
#include "common/simt/alu/half.h"
#include "common/simt/alu/testing.h"
#include "common/testing/testing.h"

struct type {
    const char *name;
    int bits;
    int format; /**< of exact_float.h; 0: integer */
    bool is_signed;
};

static const struct type types[] = {
    {"u8", 8, 0, false},   {"s8", 8, 0, true},     {"u16", 16, 0, false}, {"s16", 16, 0, true},
    {"u32", 32, 0, false}, {"s32", 32, 0, true},   {"u64", 64, 0, false}, {"s64", 64, 0, true},
    {"f16", 16, 16, true}, {"bf16", 16, 17, true}, {"f32", 32, 32, true}, {"f64", 64, 64, true}};
enum { FIRST_FLOAT = 8 };

struct conversion {
    struct type to, from;
    uint32_t rounding, flags;
    bool whole;        /**< .rni and so on */
    int register_bits; /**< of the destination */
};

static quad power(int exponent) {
    return (quad)ldexp(1.0, exponent);
}

static uint64_t cut(uint64_t value, int bits) {
    return bits == 64 ? value : value & (((uint64_t)1 << bits) - 1);
}

static quad integer_value(uint64_t word, struct type type) {
    const quad value = (quad)cut(word, type.bits);
    const bool negative = type.is_signed && word >> (type.bits - 1) & 1;

    return negative ? value - power(type.bits) : value;
}

static double to_whole(double x, uint32_t rounding) {
    return rounding == ALU_NEAREST ? nearbyint(x)
           : rounding == ALU_DOWN  ? floor(x)
           : rounding == ALU_UP    ? ceil(x)
                                   : trunc(x);
}

static uint64_t sign_bit(int format) {
    return format < 32 ? 0x8000 : (uint64_t)1 << (format - 1);
}

/** An integer clamped to a type, as the bits of the destination's register. */
static uint64_t clamped(quad value, const struct conversion *c) {
    const quad most = power(c->to.bits - c->to.is_signed) - 1;
    const quad least = c->to.is_signed ? -most - 1 : 0;

    value = value > most ? most : value < least ? least : value;
    return cut(value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value, c->register_bits);
}

static uint64_t from_integer(const struct conversion *c, uint64_t word) {
    quad value = integer_value(word, c->from);

    if (c->to.format != 0) {
        if (c->flags & ALU_SAT) {
            value = value > 0 ? 1 : 0;
        }
        return exact_round((struct exact){value, 0}, c->to.format, c->rounding, false);
    }
    if (c->flags & ALU_SAT) {
        return clamped(value, c);
    }
    const uint64_t low = cut(word, c->from.bits);
    const uint64_t wide = value < 0 ? low | ~cut(UINT64_MAX, c->from.bits) : low;
    const uint64_t kept = cut(wide, c->to.bits);
    const bool negative = c->to.is_signed && kept >> (c->to.bits - 1) & 1;
    return cut(negative ? kept | ~cut(UINT64_MAX, c->to.bits) : kept, c->register_bits);
}

static uint64_t nan_of(int format) {
    return format < 32 ? 0x7fff : format == 32 ? 0x7fffffff : 0x7fffffffffffffff;
}

static uint64_t float_result(const struct conversion *c, double x) {
    const int format = c->to.format;
    uint64_t word;

    if (isnan(x)) {
        return c->flags & ALU_SAT ? 0 : nan_of(format);
    }
    if (c->flags & ALU_SAT) {
        x = x > 0 ? (x < 1 ? x : 1) : 0;
    }
    if (isinf(x)) {
        word = exact_infinity(format) | (x < 0 ? sign_bit(format) : 0);
    } else {
        word =
            exact_round((struct exact){(quad)x, 0}, format, c->whole ? 0 : c->rounding, signbit(x));
    }
    const uint64_t magnitude = word & (sign_bit(format) - 1);
    const bool flushes = c->flags & ALU_FTZ && format == 32 && magnitude < 0x00800000;
    return flushes ? word & sign_bit(format) : word;
}

/** What an H200 makes of NaN: zero, but from fp64 or to 64 bits the top bit. */
static uint64_t no_integer(const struct conversion *c) {
    const uint64_t top = (uint64_t)1 << (c->to.bits - 1);
    const bool wide = c->from.format == 64 || c->to.bits == 64;
    const uint64_t sign = c->to.is_signed ? ~(top - 1) : top;

    return wide ? cut(sign, c->register_bits) : 0;
}

static int fraction_bits(int format) {
    return format == 16 ? 10 : format == 17 ? 7 : format == 32 ? 23 : 52;
}

/** NaN to and from fp64 stays itself: sign, and the upper bits of the fraction, made quiet. */
static uint64_t carried(const struct conversion *c, uint64_t word) {
    const int from = fraction_bits(c->from.format);
    const int to = fraction_bits(c->to.format);
    const bool forgets = c->flags & ALU_FTZ && c->from.format == 32;
    const uint64_t source = forgets ? 0x7fffffff : word;
    const uint64_t fraction = source & (((uint64_t)1 << from) - 1);
    const uint64_t moved = to > from ? fraction << (to - from) : fraction >> (from - to);
    const bool negative = source & sign_bit(c->from.format);

    return (negative ? sign_bit(c->to.format) : 0) | exact_infinity(c->to.format) |
           (uint64_t)1 << (to - 1) | moved;
}

static uint64_t convert(const void *context, const uint64_t s[4]) {
    const struct conversion *c = context;

    if (c->from.format == 0) {
        return from_integer(c, s[0]);
    }
    double x = exact_value(cut(s[0], c->from.bits), c->from.format);
    if (c->flags & ALU_FTZ && c->from.format == 32 && fabs(x) < 0x1p-126) {
        x = copysign(0.0, x);
    }
    x = c->whole ? to_whole(x, c->rounding) : x;
    if (c->to.format == 0) {
        return isnan(x) ? no_integer(c) : clamped((quad)x, c);
    }
    const bool carries = c->to.format == 64 || c->from.format == 64;
    return isnan(x) && carries && !(c->flags & ALU_SAT) ? carried(c, s[0]) : float_result(c, x);
}

/** Floats that come near the limits of integers, besides the usual ones. */
static uint64_t make_number(struct rng *rng, size_t n, size_t bits) {
    const double scale = ldexp(1.0, (int)rng_below(rng, 70) - 3);
    const double value = (rng_uniform(rng) * 2 - 1) * scale;
    const float single = (float)value;
    uint64_t word = 0;

    if (rng_below(rng, 2) == 0) {
        return alu_make_float(rng, n, bits);
    }
    if (bits == 64) {
        memcpy(&word, &value, 8);
    } else {
        memcpy(&word, &single, 4);
    }
    return bits == 16 ? alu_make_float(rng, n, bits) : word;
}

static alu_operand_maker *maker_of(struct type from) {
    return from.format == 0 ? alu_make_integer : from.format == 17 ? alu_make_bfloat : make_number;
}

static void check(const char *modifiers, struct conversion c) {
    char opcode[48];

    c.register_bits = c.to.bits;
    snprintf(opcode, sizeof opcode, "cvt%s.%s.%s", modifiers, c.to.name, c.from.name);
    alu_check(opcode, 1, maker_of(c.from), convert, &c);
}

static const char *const modes[] = {".rn", ".rm", ".rp", ".rz"};
static const char *const whole_modes[] = {".rni", ".rmi", ".rpi", ".rzi"};

C_TEST(convert, integers_to_integers) {
    for (size_t to = 0; to < FIRST_FLOAT; to++) {
        for (size_t from = 0; from < FIRST_FLOAT; from++) {
            check("", (struct conversion){.to = types[to], .from = types[from]});
            check(".sat",
                  (struct conversion){.to = types[to], .from = types[from], .flags = ALU_SAT});
        }
    }
}

C_TEST(convert, integers_to_floats_in_every_mode) {
    char modifiers[16];

    for (size_t to = FIRST_FLOAT; to < COUNT(types); to++) {
        for (size_t from = 0; from < FIRST_FLOAT; from++) {
            for (uint32_t mode = 0; mode < 4; mode++) {
                struct conversion c = {.to = types[to], .from = types[from], .rounding = mode};
                check(modes[mode], c);
                c.flags = ALU_SAT;
                snprintf(modifiers, sizeof modifiers, "%s.sat", modes[mode]);
                check(modifiers, c);
            }
        }
    }
}

C_TEST(convert, floats_to_integers_in_every_mode) {
    char modifiers[16];

    for (size_t to = 0; to < FIRST_FLOAT; to++) {
        for (size_t from = FIRST_FLOAT; from < COUNT(types); from++) {
            for (uint32_t mode = 0; mode < 4; mode++) {
                struct conversion c = {
                    .to = types[to], .from = types[from], .rounding = mode, .whole = true};
                check(whole_modes[mode], c);
                c.flags = ALU_FTZ;
                snprintf(modifiers, sizeof modifiers, "%s.ftz", whole_modes[mode]);
                check(modifiers, c);
            }
        }
    }
}

C_TEST(convert, floats_to_floats) {
    static const char *const flag_names[] = {"", ".ftz", ".sat", ".ftz.sat"};
    char modifiers[24];

    for (size_t to = FIRST_FLOAT; to < COUNT(types); to++) {
        for (size_t from = FIRST_FLOAT; from < COUNT(types); from++) {
            const bool same = to == from;
            const bool widens = types[to].bits > types[from].bits;

            for (uint32_t n = 0; n < 16; n++) {
                const uint32_t mode = n % 4;
                const uint32_t flags = n / 4;
                const char *rounding = same ? whole_modes[mode] : widens ? "" : modes[mode];
                const bool payload = types[from].format == 17 && types[to].format == 32;

                if (payload && flags == 0) {
                    continue; /* a shift, which keeps NaN as it is: below */
                }
                snprintf(modifiers, sizeof modifiers, "%s%s", rounding, flag_names[flags]);
                check(modifiers, (struct conversion){.to = types[to],
                                                     .from = types[from],
                                                     .rounding = widens ? 0 : mode,
                                                     .flags = flags,
                                                     .whole = same});
            }
        }
    }
}

C_TEST(convert, all_halves) {
    for (uint32_t word = 0; word < 65536; word++) {
        const double half = exact_value(word, 16);
        const double bfloat = exact_value(word, 17);

        if (isnan(half)) {
            EXPECT_INT_EQ((word & 0x8000) << 16 | 0x7f800000 | (word & 0x3ff) << 13,
                          row_bits_of_float(half_to_float(word)));
            EXPECT_INT_EQ(HALF_NAN, float_to_half(half_to_float(word)));
        } else if ((double)half_to_float(word) != half || float_to_half((float)half) != word) {
            TEST_FAIL("fp16 %04x", word);
        }
        if (isnan(bfloat)) {
            EXPECT_INT_EQ(word << 16, row_bits_of_float(bfloat_to_float(word)));
            EXPECT_INT_EQ(HALF_NAN, float_to_bfloat(bfloat_to_float(word)));
        } else if ((double)bfloat_to_float(word) != bfloat ||
                   float_to_bfloat((float)bfloat) != word) {
            TEST_FAIL("bf16 %04x", word);
        }
    }
}

/** The floats around the middle between each two halves round to the nearer one. */
C_TEST(convert, middles_between_all_halves) {
    for (int format = 16; format <= 17; format++) {
        for (uint32_t word = 0; word < exact_infinity(format); word++) {
            const quad middle = (exact_step(word, format) + exact_step(word + 1, format)) / 2;
            const float at = (float)middle;
            const float around[] = {nextafterf(at, -INFINITY), at, nextafterf(at, INFINITY)};
            for (size_t n = 0; n < 3; n++) {
                const struct exact value = {(quad)around[n], 0};
                const uint64_t want = isinf(around[n]) ? exact_infinity(format)
                                                       : exact_round(value, format, 0, false);
                const uint32_t got =
                    format == 16 ? float_to_half(around[n]) : float_to_bfloat(around[n]);
                if (got != want) {
                    TEST_FAIL("%a: want %04x, got %04x", (double)around[n], (unsigned)want, got);
                }
            }
        }
    }
}

static uint64_t pair(const void *context, const uint64_t s[4]) {
    const struct conversion *c = context;
    uint64_t words[2];

    for (size_t n = 0; n < 2; n++) {
        words[n] = float_result(c, exact_value(s[n], 32));
        if (c->flags & ALU_RELU && words[n] & 0x8000) {
            words[n] = 0;
        }
    }
    return words[0] << 16 | words[1];
}

static uint64_t tf32(const void *context, const uint64_t s[4]) {
    const struct conversion *c = context;
    const double x = exact_value(s[0], 32);

    if (isnan(x)) {
        return c->rounding == ALU_AWAY ? s[0] & 0xffffe000 : 0x7fffe000;
    }
    if (isinf(x)) {
        return s[0];
    }
    /* A tf32 is a float with 13 bits less: its neighbours are floats with these bits zero. */
    const uint32_t below = (uint32_t)s[0] & 0x7fffe000;
    const uint32_t lost = (uint32_t)s[0] & 0x1fff;
    const bool odd = below & 0x2000;
    const bool up = c->rounding == ALU_AWAY      ? lost >= 0x1000
                    : c->rounding == ALU_NEAREST ? lost > 0x1000 || (lost == 0x1000 && odd)
                                                 : false;
    return ((uint32_t)s[0] & 0x80000000) | (below + (up ? 0x2000 : 0));
}

C_TEST(convert, pairs_and_tf32) {
    const struct conversion half = {.to = types[8], .from = types[10]};
    const struct conversion half_zero = {.to = types[8], .from = types[10], .rounding = ALU_ZERO};
    const struct conversion half_relu = {.to = types[8], .from = types[10], .flags = ALU_RELU};
    const struct conversion bfloat = {.to = types[9], .from = types[10]};
    const struct conversion bfloat_zero = {.to = types[9], .from = types[10], .rounding = ALU_ZERO};
    const struct conversion away = {.rounding = ALU_AWAY};
    const struct conversion nearest = {.rounding = ALU_NEAREST};
    const struct conversion zero = {.rounding = ALU_ZERO};

    alu_check("cvt.rn.f16x2.f32", 2, alu_make_float, pair, &half);
    alu_check("cvt.rz.f16x2.f32", 2, alu_make_float, pair, &half_zero);
    alu_check("cvt.rn.relu.f16x2.f32", 2, alu_make_float, pair, &half_relu);
    alu_check("cvt.rn.bf16x2.f32", 2, alu_make_float, pair, &bfloat);
    alu_check("cvt.rz.bf16x2.f32", 2, alu_make_float, pair, &bfloat_zero);
    alu_check("cvt.rna.tf32.f32", 1, alu_make_float, tf32, &away);
    alu_check("cvt.rn.tf32.f32", 1, alu_make_float, tf32, &nearest);
    alu_check("cvt.rz.tf32.f32", 1, alu_make_float, tf32, &zero);
}

struct packing {
    int bits;
    bool is_signed, three;
};

static uint64_t packed(const void *context, const uint64_t s[4]) {
    const struct packing *p = context;
    uint64_t result = p->three ? s[2] : 0;

    for (size_t n = 0; n < 2; n++) {
        const int64_t most = ((int64_t)1 << (p->bits - p->is_signed)) - 1;
        const int64_t least = p->is_signed ? -most - 1 : 0;
        int64_t value = (int32_t)(uint32_t)s[n];
        value = value > most ? most : value < least ? least : value;
        result = result << p->bits | cut((uint64_t)value, p->bits);
    }
    return cut(result, 32);
}

C_TEST(convert, packing_with_saturation) {
    for (int bits = 2; bits <= 16; bits *= 2) {
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            const struct packing packing = {bits, is_signed, bits < 16};
            struct alu_fixture f;
            char opcode[48];

            snprintf(opcode, sizeof opcode, "cvt.pack.sat.%c%d.s32%s", "us"[is_signed], bits,
                     bits < 16 ? ".b32" : "");
            alu_fixture_create(&f, opcode, bits < 16 ? 3 : 2);
            for (size_t n = 0; n < 4; n++) {
                alu_fixture_register(&f, n, PTX_U32);
            }
            ASSERT_TRUE(alu_fixture_decode(&f));
            struct rng rng = rng_create((uint64_t)bits);
            for (size_t n = 1; n < 4; n++) {
                for (size_t lane = 0; lane < SIMT_LANES; lane++) {
                    alu_fixture_set_lane(&f, n, lane, alu_make_integer(&rng, n, 32));
                }
            }
            f.instruction.run(&f.warp, &f.instruction);
            for (size_t lane = 0; lane < SIMT_LANES; lane++) {
                const uint64_t s[4] = {alu_fixture_lane(&f, 1, lane), alu_fixture_lane(&f, 2, lane),
                                       alu_fixture_lane(&f, 3, lane)};
                EXPECT_INT_EQ(packed(&packing, s), alu_fixture_row(&f, 0)->u32[lane]);
            }
        }
    }
}

/** Registers wider than the types: low bits of the source, extension to the destination. */
C_TEST(convert, wider_registers) {
    static const enum ptx_type registers[] = {PTX_B16, PTX_B32, PTX_B64};
    char opcode[48];

    for (size_t to = 0; to < 6; to++) {
        for (size_t from = 0; from < 6; from++) {
            for (size_t n = 0; n < 9; n++) {
                const enum ptx_type wide_to = registers[n / 3];
                const enum ptx_type wide_from = registers[n % 3];
                const int to_bits = 8 * (int)ptx_type_size(wide_to);
                const struct conversion c = {
                    .to = types[to], .from = types[from], .register_bits = to_bits};
                struct alu_fixture f;
                struct rng rng = rng_create(n);

                snprintf(opcode, sizeof opcode, "cvt.%s.%s", types[to].name, types[from].name);
                alu_fixture_create(&f, opcode, 1);
                if (to_bits < types[to].bits ||
                    8 * (int)ptx_type_size(wide_from) < types[from].bits) {
                    continue;
                }
                alu_fixture_register(&f, 0, wide_to);
                alu_fixture_register(&f, 1, wide_from);
                ASSERT_TRUE(alu_fixture_decode(&f));
                for (size_t lane = 0; lane < SIMT_LANES; lane++) {
                    alu_fixture_set_lane(&f, 1, lane, rng_u64(&rng));
                }
                f.instruction.run(&f.warp, &f.instruction);
                for (size_t lane = 0; lane < SIMT_LANES; lane++) {
                    const uint64_t s[4] = {alu_fixture_lane(&f, 1, lane)};
                    EXPECT_INT_EQ(convert(&c, s), alu_fixture_lane(&f, 0, lane));
                }
            }
        }
    }
}

C_TEST(convert, unknown_forms_are_refused) {
    static const char *const opcodes[] = {"cvt.f32.s32",     "cvt.rzi.f32.s32", "cvt.s32.f32",
                                          "cvt.rn.s32.f32",  "cvt.f16.f32",     "cvt.rn.f64.f32",
                                          "cvt.rna.f16.f32", "cvt.u32.e4m3",    "cvt.rn.f16x2.f64",
                                          "cvt.rn.u32.u64",  "cvt.b32.u32",     "cvt.pred.u32"};
    alu_check_refused(opcodes, COUNT(opcodes), 1);
}

#include <stdio.h>
#include <string.h>

#include "common/simt/alu/testing.h"
#include "common/testing/testing.h"

/* References work on 128-bit integers, or bit by bit as the ISA's pseudo code does. */
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

struct type {
    const char *name;
    unsigned bits;
    bool is_signed;
};

struct operation {
    const char *name;
    struct type type;
};

static const struct type types[] = {{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                                    {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

static uint64_t cut(uint64_t value, unsigned bits) {
    return bits == 64 ? value : value & (((uint64_t)1 << bits) - 1);
}

static wide value_of(uint64_t word, struct type type) {
    const uint64_t low = cut(word, type.bits);
    const bool negative = type.is_signed && low >> (type.bits - 1);

    return negative ? (wide)low - ((wide)1 << type.bits) : (wide)low;
}

static bool is(const struct operation *o, const char *name) {
    return strcmp(o->name, name) == 0;
}

static wide divide(const struct operation *o, wide x, wide y) {
    if (y == 0) {
        return -1;
    }
    return is(o, "div") ? x / y : x % y;
}

static uint64_t arithmetic(const void *context, const uint64_t s[4]) {
    const struct operation *o = context;
    const wide x = value_of(s[0], o->type);
    const wide y = value_of(s[1], o->type);
    const wide z = value_of(s[2], o->type);
    const uwide product = (uwide)x * (uwide)y;
    /* Shifts of signed products of 64 bits stay within 128. */
    const wide high = (wide)product >> o->type.bits;
    const uwide uhigh = product >> o->type.bits;
    const wide top = o->type.is_signed ? high : (wide)uhigh;
    const wide result = is(o, "add")      ? x + y
                        : is(o, "sub")    ? x - y
                        : is(o, "min")    ? (x < y ? x : y)
                        : is(o, "max")    ? (x > y ? x : y)
                        : is(o, "mul.lo") ? (wide)product
                        : is(o, "mul.hi") ? top
                        : is(o, "mad.lo") ? (wide)(product + (uwide)z)
                        : is(o, "mad.hi") ? top + z
                        : is(o, "sad")    ? (x < y ? y - x : x - y) + z
                                          : divide(o, x, y);

    return cut((uint64_t)result, o->type.bits);
}

C_TEST(alu_integer, arithmetic_wraps_like_128_bit_integers) {
    static const struct {
        const char *name;
        size_t sources;
    } operations[] = {{"add", 2},    {"sub", 2},    {"min", 2},    {"max", 2},
                      {"mul.lo", 2}, {"mul.hi", 2}, {"mad.lo", 3}, {"mad.hi", 3},
                      {"sad", 3},    {"div", 2},    {"rem", 2}};
    char opcode[32];

    for (size_t o = 0; o < COUNT(operations); o++) {
        for (size_t t = 0; t < COUNT(types); t++) {
            const struct operation operation = {operations[o].name, types[t]};

            snprintf(opcode, sizeof opcode, "%s.%s", operations[o].name, types[t].name);
            alu_check(opcode, operations[o].sources, alu_make_integer, arithmetic, &operation);
        }
    }
}

static uint64_t widening(const void *context, const uint64_t s[4]) {
    const struct operation *o = context;
    const wide product = value_of(s[0], o->type) * value_of(s[1], o->type);

    return cut((uint64_t)product + (is(o, "mad") ? s[2] : 0), 2 * o->type.bits);
}

C_TEST(alu_integer, wide_products) {
    char opcode[32];

    for (size_t t = 0; t < 4; t++) {
        const struct operation mul = {"mul", types[t]};
        const struct operation mad = {"mad", types[t]};

        snprintf(opcode, sizeof opcode, "mul.wide.%s", types[t].name);
        alu_check(opcode, 2, alu_make_integer, widening, &mul);
        snprintf(opcode, sizeof opcode, "mad.wide.%s", types[t].name);
        alu_check(opcode, 3, alu_make_integer, widening, &mad);
    }
}

/* detail of the saturating and 24-bit forms. */
static wide clamp_s32(wide value) {
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value;
}

static uint64_t saturating(const void *context, const uint64_t s[4]) {
    const char *name = context;
    const struct type s32 = types[3];
    const wide x = value_of(s[0], s32);
    const wide y = value_of(s[1], s32);
    const wide z = value_of(s[2], s32);

    return cut((uint64_t)clamp_s32(strcmp(name, "add") == 0   ? x + y
                                   : strcmp(name, "sub") == 0 ? x - y
                                                              : ((x * y) >> 32) + z),
               32);
}

C_TEST(alu_integer, saturation) {
    alu_check("add.sat.s32", 2, alu_make_integer, saturating, "add");
    alu_check("sub.sat.s32", 2, alu_make_integer, saturating, "sub");
    alu_check("mad.hi.sat.s32", 3, alu_make_integer, saturating, "mad");
}

static uint64_t product24(const void *context, const uint64_t s[4]) {
    const struct operation *o = context;
    const struct type low = {"", 24, o->type.is_signed};
    const wide product = value_of(s[0], low) * value_of(s[1], low);
    const wide half = strstr(o->name, "hi") != NULL ? product >> 16 : product;
    const wide sum = half + (strncmp(o->name, "mad", 3) == 0 ? (wide)s[2] : 0);
    const wide clamped = clamp_s32(value_of((uint64_t)half, types[3]) + value_of(s[2], types[3]));

    return cut((uint64_t)(strstr(o->name, "sat") != NULL ? clamped : sum), 32);
}

C_TEST(alu_integer, products_of_24_bits) {
    static const char *const names[] = {"mul24.lo", "mul24.hi", "mad24.lo", "mad24.hi"};
    char opcode[32];

    for (size_t n = 0; n < COUNT(names); n++) {
        for (size_t t = 2; t < 4; t++) {
            const struct operation operation = {names[n], types[t]};

            snprintf(opcode, sizeof opcode, "%s.%s", names[n], types[t].name);
            alu_check(opcode, names[n][1] == 'u' ? 2 : 3, alu_make_integer, product24, &operation);
        }
    }
    const struct operation saturated = {"mad24.hi.sat", types[3]};
    alu_check("mad24.hi.sat.s32", 3, alu_make_integer, product24, &saturated);
}

static uint64_t one_operand(const void *context, const uint64_t s[4]) {
    const struct operation *o = context;
    const wide x = value_of(s[0], o->type);

    return cut((uint64_t)(is(o, "abs")   ? (x < 0 ? -x : x)
                          : is(o, "neg") ? -x
                          : is(o, "not") ? -x - 1
                                         : (x == 0 ? 1 : 0)),
               o->type.bits);
}

static uint64_t bitwise(const void *context, const uint64_t s[4]) {
    const struct operation *o = context;
    uint64_t result = 0;

    for (unsigned bit = 0; bit < o->type.bits; bit++) {
        const int x = s[0] >> bit & 1;
        const int y = s[1] >> bit & 1;
        const int one = is(o, "and") ? x + y == 2 : is(o, "or") ? x + y > 0 : x + y == 1;
        result |= (uint64_t)one << bit;
    }
    return result;
}

static uint64_t shift(const void *context, const uint64_t s[4]) {
    const struct operation *o = context;
    wide x = value_of(s[0], o->type);

    for (uint64_t n = 0; n < s[1] && n < 70; n++) {
        x = is(o, "shl") ? (wide)((uwide)x * 2) : x >> 1;
        x = is(o, "shl") ? value_of((uint64_t)x, o->type) : x;
    }
    return cut((uint64_t)x, o->type.bits);
}

C_TEST(alu_integer, logic_and_shifts) {
    static const unsigned widths[] = {16, 32, 64};
    static const char *const ones[] = {"abs", "neg", "not", "cnot"};
    static const char *const twos[] = {"and", "or", "xor"};
    char opcode[32];

    for (size_t w = 0; w < COUNT(widths); w++) {
        for (size_t n = 0; n < COUNT(ones); n++) {
            const struct operation operation = {ones[n], {"", widths[w], n < 2}};

            snprintf(opcode, sizeof opcode, "%s.%c%u", ones[n], n < 2 ? 's' : 'b', widths[w]);
            alu_check(opcode, 1, alu_make_integer, one_operand, &operation);
        }
        for (size_t n = 0; n < COUNT(twos); n++) {
            const struct operation operation = {twos[n], {"", widths[w], false}};

            snprintf(opcode, sizeof opcode, "%s.b%u", twos[n], widths[w]);
            alu_check(opcode, 2, alu_make_integer, bitwise, &operation);
        }
        for (size_t n = 0; n < 4; n++) {
            const char kind = "bbus"[n];
            const struct operation operation = {n == 0 ? "shl" : "shr",
                                                {"", widths[w], kind == 's'}};

            snprintf(opcode, sizeof opcode, "%s.%c%u", operation.name, kind, widths[w]);
            alu_check(opcode, 2, alu_make_integer, shift, &operation);
        }
    }
}

static uint64_t halves(const void *context, const uint64_t s[4]) {
    const struct operation *o = context;
    uint64_t result = 0;

    for (unsigned half = 0; half < 32; half += 16) {
        const wide x = value_of(s[0] >> half, o->type);
        const wide y = value_of(s[1] >> half, o->type);
        wide r = strncmp(o->name, "add", 3) == 0   ? x + y
                 : strncmp(o->name, "sub", 3) == 0 ? x - y
                 : strncmp(o->name, "min", 3) == 0 ? (x < y ? x : y)
                                                   : (x > y ? x : y);
        r = strstr(o->name, "relu") != NULL && r < 0 ? 0 : r;
        result |= cut((uint64_t)r, 16) << half;
    }
    return result;
}

C_TEST(alu_integer, two_in_a_word) {
    static const char *const names[] = {"add", "sub", "min", "max", "min.relu", "max.relu"};
    struct alu_fixture f;

    for (size_t n = 0; n < COUNT(names); n++) {
        for (size_t t = n < 4 ? 0 : 1; t < 2; t++) {
            const struct operation operation = {names[n], types[t]};
            char opcode[32];

            /* u16x2 is no type of a register: the decoder sees 32 bits. */
            snprintf(opcode, sizeof opcode, "%s.%sx2", names[n], types[t].name);
            alu_fixture_create(&f, opcode, 2);
            for (size_t operand = 0; operand < 3; operand++) {
                alu_fixture_register(&f, operand, PTX_B32);
            }
            EXPECT_TRUE(alu_fixture_decode(&f));
            struct rng rng = rng_create(n);
            for (size_t lane = 0; lane < SIMT_LANES; lane++) {
                alu_fixture_set_lane(&f, 1, lane, rng_u64(&rng));
                alu_fixture_set_lane(&f, 2, lane, rng_u64(&rng));
            }
            f.instruction.run(&f.warp, &f.instruction);
            for (size_t lane = 0; lane < SIMT_LANES; lane++) {
                const uint64_t s[4] = {alu_fixture_lane(&f, 1, lane),
                                       alu_fixture_lane(&f, 2, lane)};
                EXPECT_INT_EQ(halves(&operation, s), alu_fixture_row(&f, 0)->u32[lane]);
            }
        }
    }
}

/* Numbers of 128 or 256 bits, a word at a time, against the whole sum. */
static void run(const char *opcode, struct simt_warp *warp, union simt_row *rows,
                const size_t operands[4], size_t sources) {
    struct alu_fixture f;

    alu_fixture_create(&f, opcode, sources);
    EXPECT_TRUE(alu_fixture_decode(&f));
    for (size_t n = 0; n <= sources; n++) {
        const uint32_t offset = (uint32_t)(operands[n] * sizeof(union simt_row));
        *(n == 0 ? &f.instruction.dst[0] : &f.instruction.src[n - 1]) = offset;
    }
    warp->rows = (unsigned char *)rows;
    f.instruction.run(warp, &f.instruction);
}

/** Adds or subtracts rows 0..3 and 4..7 into 8..11, words of 32 bits. */
static void long_sum(bool subtract, uint32_t mask) {
    static union simt_row rows[12];
    struct alu_fixture f;
    struct rng rng = rng_create(7);
    const char *first = subtract ? "sub.cc.u32" : "add.cc.u32";
    const char *middle = subtract ? "subc.cc.u32" : "addc.cc.u32";
    const char *last = subtract ? "subc.u32" : "addc.u32";

    alu_fixture_create(&f, first, 2);
    alu_fixture_mask(&f, mask);
    for (size_t n = 0; n < 12; n++) {
        for (size_t lane = 0; lane < SIMT_LANES; lane++) {
            rows[n].u32[lane] = n < 8 ? (uint32_t)alu_make_integer(&rng, 0, 32) : 77;
        }
    }
    f.warp.carry = 0x5a5a5a5a;
    for (size_t n = 0; n < 4; n++) {
        const size_t operands[4] = {8 + n, n, 4 + n};
        run(n == 0 ? first : n < 3 ? middle : last, &f.warp, rows, operands, 2);
    }
    EXPECT_INT_EQ(0x5a5a5a5a & ~mask, f.warp.carry & ~mask);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        uwide x = 0;
        uwide y = 0;
        for (size_t n = 4; n-- > 0;) {
            x = x << 32 | rows[n].u32[lane];
            y = y << 32 | rows[4 + n].u32[lane];
        }
        const uwide want = subtract ? x - y : x + y;
        for (size_t n = 0; n < 4; n++) {
            const bool active = mask >> lane & 1;
            EXPECT_INT_EQ(active ? (uint32_t)(want >> (32 * n)) : 77, rows[8 + n].u32[lane]);
        }
    }
}

C_TEST(alu_integer, carries_ripple_through_words) {
    long_sum(false, UINT32_MAX);
    long_sum(true, UINT32_MAX);
    long_sum(false, 0x0f3355aa);
    long_sum(true, 0x0f3355aa);
    long_sum(true, 0);
}

C_TEST(alu_integer, long_product_by_mad_with_carry) {
    static union simt_row rows[8];
    struct alu_fixture f;
    struct rng rng = rng_create(8);

    alu_fixture_create(&f, "mad.lo.cc.u64", 3);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        for (size_t n = 0; n < 4; n++) {
            rows[n].u64[lane] = alu_make_integer(&rng, 0, 64);
        }
    }
    /* {5,4} = {3,2} + rows 0 * 1, all of 128 bits. */
    const size_t low[4] = {4, 0, 1, 2};
    const size_t high[4] = {5, 0, 1, 3};
    run("mad.lo.cc.u64", &f.warp, rows, low, 3);
    run("madc.hi.u64", &f.warp, rows, high, 3);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        const uwide want = (uwide)rows[0].u64[lane] * rows[1].u64[lane] +
                           ((uwide)rows[3].u64[lane] << 64 | rows[2].u64[lane]);
        EXPECT_TRUE((uint64_t)want == rows[4].u64[lane]);
        EXPECT_TRUE((uint64_t)(want >> 64) == rows[5].u64[lane]);
    }
}

C_TEST(alu_integer, unknown_forms_are_refused) {
    static const char *const opcodes[] = {
        "add.f99", "add.sat.u32", "mul.wide.u64", "shl.u32",    "shl.b8",
        "abs.u32", "div.b32",     "addc.u16",     "add.cc.u16", "mad.wide.cc.u32",
        "neg.u32", "vadd.s32",    "add.rn.s32",   "min.ftz.s32"};
    struct alu_fixture f;

    alu_check_refused(opcodes, COUNT(opcodes), 2);
    /* A register of 8 bytes a lane where the type has 4. */
    alu_fixture_create(&f, "add.u32", 2);
    alu_fixture_register(&f, 1, PTX_U64);
    EXPECT_TRUE(!alu_fixture_decode(&f));
}

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/alu/exact_float.h"
#include "common/simt/alu/testing.h"
#include "common/testing/testing.h"

struct type {
    const char *name;
    int bits;
    int format; /**< of exact_float.h; 0: integer */
    char kind;  /**< s, u, b or f */
};

static const struct type types[] = {
    {"b16", 16, 0, 'b'},  {"u16", 16, 0, 'u'},    {"s16", 16, 0, 's'},    {"b32", 32, 0, 'b'},
    {"u32", 32, 0, 'u'},  {"s32", 32, 0, 's'},    {"b64", 64, 0, 'b'},    {"u64", 64, 0, 'u'},
    {"s64", 64, 0, 's'},  {"f16", 16, 16, 'f'},   {"bf16", 16, 17, 'f'},  {"f32", 32, 32, 'f'},
    {"f64", 64, 64, 'f'}, {"f16x2", 16, 16, 'f'}, {"bf16x2", 16, 17, 'f'}};

struct comparison {
    const char *name;    /**< "ltu" */
    const char *boolean; /**< "and", "" */
    struct type type;
    bool flush;
    uint64_t yes; /**< set: what true is */
};

/** -1, 0, 1, or 2 where the operands have no order. */
static int order(const struct comparison *c, uint64_t a, uint64_t b) {
    if (c->type.format != 0) {
        double x = exact_value(a, c->type.format);
        double y = exact_value(b, c->type.format);
        const double least = c->type.format == 16 ? 0x1p-14 : 0x1p-126;
        x = c->flush && fabs(x) < least ? 0 : x;
        y = c->flush && fabs(y) < least ? 0 : y;
        return isnan(x) || isnan(y) ? 2 : x < y ? -1 : x > y;
    }
    const uint64_t top = c->type.kind == 's' ? (uint64_t)1 << (c->type.bits - 1) : 0;
    return (a ^ top) < (b ^ top) ? -1 : (a ^ top) > (b ^ top);
}

/** By the name's letters: its first two say the relation, a third u that NaN is true. */
static bool holds(const struct comparison *c, uint64_t a, uint64_t b) {
    const int o = order(c, a, b);
    const bool or_unordered = strlen(c->name) == 3 && c->name[2] == 'u';

    if (strcmp(c->name, "num") == 0 || strcmp(c->name, "nan") == 0) {
        return (o == 2) == (c->name[1] == 'a');
    }
    if (o == 2) {
        return or_unordered;
    }
    return strncmp(c->name, "eq", 2) == 0   ? o == 0
           : strncmp(c->name, "ne", 2) == 0 ? o != 0
           : strncmp(c->name, "lt", 2) == 0 ? o < 0
           : strncmp(c->name, "lo", 2) == 0 ? o < 0
           : strncmp(c->name, "le", 2) == 0 ? o <= 0
           : strncmp(c->name, "ls", 2) == 0 ? o <= 0
           : strncmp(c->name, "gt", 2) == 0 ? o > 0
           : strncmp(c->name, "hi", 2) == 0 ? o > 0
                                            : o >= 0;
}

static bool combined(const struct comparison *c, bool first, bool second) {
    return strcmp(c->boolean, "and") == 0   ? first && second
           : strcmp(c->boolean, "or") == 0  ? first || second
           : strcmp(c->boolean, "xor") == 0 ? first != second
                                            : first;
}

static uint64_t predicate(const void *context, const uint64_t s[4]) {
    const struct comparison *c = context;

    return combined(c, holds(c, s[0], s[1]), s[2]);
}

static bool has(const char *name, struct type type) {
    static const char *const for_unsigned[] = {"lo", "ls", "hi", "hs"};
    const bool equality = strcmp(name, "eq") == 0 || strcmp(name, "ne") == 0;

    for (size_t n = 0; n < COUNT(for_unsigned); n++) {
        if (strcmp(name, for_unsigned[n]) == 0) {
            return type.kind == 'u';
        }
    }
    return strlen(name) == 3 ? type.kind == 'f' : type.kind != 'b' || equality;
}

static const char *const names[] = {"eq", "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
                                    "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
static const char *const booleans[] = {"", "and", "or", "xor"};

static alu_operand_maker *maker_of(struct type type) {
    return type.format == 0    ? alu_make_integer
           : type.format == 17 ? alu_make_bfloat
                               : alu_make_float;
}

static const char *opcode_of(char *text, size_t size, const char *base, const struct comparison *c,
                             const char *type) {
    snprintf(text, size, "%s.%s%s%s%s.%s", base, c->name, c->boolean[0] != '\0' ? "." : "",
             c->boolean, c->flush ? ".ftz" : "", type);
    return text;
}

C_TEST(compare, setp_of_every_type_and_relation) {
    char opcode[48];

    for (size_t n = 0; n < COUNT(names); n++) {
        for (size_t t = 0; t < 13; t++) {
            for (size_t b = 0; b < COUNT(booleans) && has(names[n], types[t]); b++) {
                for (int flush = 0; flush < (types[t].name[0] == 'f' && t < 12 ? 2 : 1); flush++) {
                    const struct comparison c = {names[n], booleans[b], types[t], flush, 0};
                    opcode_of(opcode, sizeof opcode, "setp", &c, types[t].name);
                    alu_check(opcode, b == 0 ? 2 : 3, maker_of(types[t]), predicate, &c);
                }
            }
        }
    }
}

C_TEST(compare, refused_relations) {
    char opcode[48];
    struct alu_fixture f;

    for (size_t n = 0; n < COUNT(names); n++) {
        for (size_t t = 0; t < COUNT(types); t++) {
            const struct comparison c = {names[n], "", types[t], false, 0};
            alu_fixture_create(&f, opcode_of(opcode, sizeof opcode, "setp", &c, types[t].name), 2);
            if (alu_fixture_decode(&f) != has(names[n], types[t])) {
                TEST_FAIL("%s", opcode);
            }
        }
    }
}

/** Fills a fixture with operands that are often equal. */
static void fill(struct alu_fixture *f, struct type type, uint64_t seed) {
    struct rng rng = rng_create(seed);
    const bool pairs = strstr(type.name, "x2") != NULL;

    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        for (size_t n = 1; n < 3; n++) {
            const uint64_t low = maker_of(type)(&rng, n, (size_t)type.bits);
            const uint64_t high = maker_of(type)(&rng, n, (size_t)type.bits);
            alu_fixture_set_lane(f, n, lane, pairs ? low | high << 16 : low);
        }
        if (rng_below(&rng, 3) == 0) {
            alu_fixture_set_lane(f, 2, lane, alu_fixture_lane(f, 1, lane));
        }
    }
    for (size_t n = 0; n < ALU_PREDICATES; n++) {
        f->predicates[n] = (uint32_t)rng_u64(&rng);
    }
}

/** p|q of a comparison: the second is of the inverse, or of the high halves. */
static void check_two(const struct comparison *c, bool negated, uint32_t mask) {
    const bool pairs = strstr(c->type.name, "x2") != NULL;
    struct alu_fixture f;
    char opcode[48];

    alu_fixture_create(&f, opcode_of(opcode, sizeof opcode, "setp", c, c->type.name), 3);
    ASSERT_TRUE(alu_fixture_decode(&f));
    f.instruction.src_negated[2] = negated;
    fill(&f, c->type, mask);
    alu_fixture_mask(&f, mask);
    const uint32_t before[2] = {f.predicates[0], f.predicates[8]};
    f.instruction.run(&f.warp, &f.instruction);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        const uint64_t a = alu_fixture_lane(&f, 1, lane);
        const uint64_t b = alu_fixture_lane(&f, 2, lane);
        const bool other = (f.predicates[3] >> lane & 1) != negated;
        const bool first = pairs ? holds(c, a & 0xffff, b & 0xffff) : holds(c, a, b);
        const bool second = pairs ? holds(c, a >> 16, b >> 16) : !first;
        const bool active = mask >> lane & 1;
        EXPECT_INT_EQ(active ? combined(c, first, other) : before[0] >> lane & 1,
                      f.predicates[0] >> lane & 1);
        EXPECT_INT_EQ(active ? combined(c, second, other) : before[1] >> lane & 1,
                      f.predicates[8] >> lane & 1);
    }
}

C_TEST(compare, two_predicates_and_a_negated_operand) {
    static const size_t chosen[] = {2, 5, 8, 9, 10, 11, 12, 13, 14};

    for (size_t n = 0; n < COUNT(chosen); n++) {
        for (size_t b = 1; b < COUNT(booleans); b++) {
            const struct comparison c = {"eq", booleans[b], types[chosen[n]], false, 0};
            check_two(&c, false, UINT32_MAX);
            check_two(&c, true, 0xf00ff0aa);
            check_two(&c, true, 0);
        }
    }
}

C_TEST(compare, the_same_predicate_as_source_and_destination) {
    struct alu_fixture f;

    alu_fixture_create(&f, "setp.lt.xor.s32", 3);
    ASSERT_TRUE(alu_fixture_decode(&f));
    fill(&f, types[5], 3);
    f.instruction.src[2] = 0;
    const uint32_t before = f.predicates[0];
    f.instruction.run(&f.warp, &f.instruction);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        const bool less = alu_fixture_row(&f, 1)->s32[lane] < alu_fixture_row(&f, 2)->s32[lane];
        EXPECT_INT_EQ(less != (before >> lane & 1), f.predicates[0] >> lane & 1);
    }
}

static uint64_t set_value(const void *context, const uint64_t s[4]) {
    const struct comparison *c = context;

    if (strstr(c->type.name, "x2") == NULL) {
        return predicate(context, s) ? c->yes : 0;
    }
    const bool low = combined(c, holds(c, s[0] & 0xffff, s[1] & 0xffff), s[2]);
    const bool high = combined(c, holds(c, s[0] >> 16, s[1] >> 16), s[2]);
    return (low ? c->yes & 0xffff : 0) | (high ? c->yes & 0xffff0000 : 0);
}

C_TEST(compare, set_writes_ones_or_one) {
    static const struct {
        const char *to;
        size_t from;
        uint64_t yes;
    } forms[] = {{"u32", 5, 0xffffffff},    {"s32", 11, 0xffffffff},    {"f32", 4, 0x3f800000},
                 {"f32", 12, 0x3f800000},   {"u32", 8, 0xffffffff},     {"u16", 9, 0xffff},
                 {"s16", 10, 0xffff},       {"f16", 9, 0x3c00},         {"bf16", 10, 0x3f80},
                 {"f16x2", 13, 0x3c003c00}, {"bf16x2", 14, 0x3f803f80}, {"u32", 13, 0xffffffff},
                 {"u32", 9, 0xffffffff},    {"u32", 2, 0xffffffff}};
    char opcode[48];
    char tail[24];

    for (size_t n = 0; n < COUNT(forms); n++) {
        for (size_t b = 0; b < COUNT(booleans); b++) {
            const struct type from = types[forms[n].from];
            const struct comparison c = {"ge", booleans[b], from, false, forms[n].yes};
            snprintf(tail, sizeof tail, "%s.%s", forms[n].to, from.name);
            opcode_of(opcode, sizeof opcode, "set", &c, tail);
            alu_check(opcode, b == 0 ? 2 : 3, maker_of(from), set_value, &c);
        }
    }
}

static uint64_t chosen(const void *context, const uint64_t s[4]) {
    const char *kind = context;
    const double c = exact_value(s[2], 32);
    const bool tiny = strcmp(kind, "ftz") == 0 && fabs(c) < 0x1p-126;
    const bool first = kind[0] == 'p'   ? s[2] != 0
                       : kind[0] == 's' ? s[2] < 0x80000000
                                        : tiny || c >= 0;

    return first ? s[0] : s[1];
}

C_TEST(compare, selp_and_slct) {
    static const char *const kinds[] = {"b16", "u16", "s16", "b32", "u32", "s32",
                                        "f32", "b64", "u64", "s64", "f64"};
    char opcode[48];

    for (size_t n = 0; n < COUNT(kinds); n++) {
        snprintf(opcode, sizeof opcode, "selp.%s", kinds[n]);
        alu_check(opcode, 3, alu_make_integer, chosen, "p");
        if (n >= 3) {
            snprintf(opcode, sizeof opcode, "slct.%s.s32", kinds[n]);
            alu_check(opcode, 3, alu_make_integer, chosen, "s");
            snprintf(opcode, sizeof opcode, "slct.%s.f32", kinds[n]);
            alu_check(opcode, 3, alu_make_float, chosen, "f");
            snprintf(opcode, sizeof opcode, "slct.ftz.%s.f32", kinds[n]);
            alu_check(opcode, 3, alu_make_float, chosen, "ftz");
        }
    }
}

static uint64_t logic(const void *context, const uint64_t s[4]) {
    const char *name = context;

    return strcmp(name, "and") == 0   ? s[0] & s[1]
           : strcmp(name, "or") == 0  ? s[0] | s[1]
           : strcmp(name, "xor") == 0 ? s[0] ^ s[1]
           : strcmp(name, "not") == 0 ? !s[0]
                                      : s[0];
}

C_TEST(compare, logic_of_predicates) {
    alu_check("and.pred", 2, alu_make_integer, logic, "and");
    alu_check("or.pred", 2, alu_make_integer, logic, "or");
    alu_check("xor.pred", 2, alu_make_integer, logic, "xor");
    alu_check("not.pred", 1, alu_make_integer, logic, "not");
    alu_check("mov.pred", 1, alu_make_integer, logic, "mov");
}

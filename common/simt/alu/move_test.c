#include <stdio.h>
#include <string.h>

#include "common/simt/alu/testing.h"
#include "common/testing/testing.h"

static uint64_t same(const void *context, const uint64_t s[4]) {
    (void)context;
    return s[0];
}

C_TEST(alu_move, scalars) {
    static const char *const names[] = {"b16", "u16", "s16", "b32", "u32", "s32",
                                        "f32", "b64", "u64", "s64", "f64", "f16"};
    char opcode[32];

    for (size_t n = 0; n < COUNT(names); n++) {
        snprintf(opcode, sizeof opcode, "mov.%s", names[n]);
        alu_check(opcode, 1, alu_make_integer, same, NULL);
    }
}

struct layout {
    const char *opcode;
    enum ptx_type whole, part;
    size_t count;
};

static const struct layout layouts[] = {
    {"mov.b16", PTX_B16, PTX_U8, 2},  {"mov.b32", PTX_B32, PTX_B16, 2},
    {"mov.b32", PTX_B32, PTX_U8, 4},  {"mov.b64", PTX_B64, PTX_B32, 2},
    {"mov.b64", PTX_B64, PTX_B16, 4}, {"mov.b128", PTX_B128, PTX_B64, 2}};

/** Rows: operand 0 is the whole register, operands 1 ... its parts. */
static void prepare(struct alu_fixture *f, const struct layout *l, bool packs) {
    alu_fixture_create(f, l->opcode, 1);
    for (size_t n = 0; n < l->count; n++) {
        f->registers[n + 1].type = l->part;
        f->elements[n] =
            (struct ptx_operand){.kind = PTX_OPERAND_REGISTER, .index = (uint32_t)n + 1};
    }
    f->registers[0].type = l->whole;
    const struct ptx_operand whole = {.kind = PTX_OPERAND_REGISTER, .index = 0};
    const struct ptx_operand vector = {
        .kind = PTX_OPERAND_VECTOR, .elements = f->elements, .element_count = l->count};
    f->operands[0] = packs ? whole : vector;
    f->operands[1] = packs ? vector : whole;
}

static void decode(struct alu_fixture *f, const struct layout *l, bool packs) {
    const struct simt_decoding decoding = {.source = &f->source, .function = &f->function};
    struct simt_instruction *in = &f->instruction;

    *in = (struct simt_instruction){.source = &f->source, .guard = -1, .pred_dst = {-1, -1}};
    in->dst_count = (uint8_t)(packs ? 1 : l->count);
    in->src_count = (uint8_t)(packs ? l->count : 1);
    for (size_t n = 0; n < l->count; n++) {
        *(packs ? &in->src[n] : &in->dst[n]) = (uint32_t)((n + 1) * 2 * sizeof(union simt_row));
    }
    EXPECT_TRUE(simt_decode_convert(&decoding, in));
}

/** Part @p n of the whole register's lane, read from the bytes of its rows. */
static uint64_t part_of(struct alu_fixture *f, const struct layout *l, size_t n, size_t lane) {
    const size_t bytes = ptx_type_size(l->part);
    const union simt_row *rows = alu_fixture_row(f, 0);
    uint64_t value = 0;

    if (bytes == 8) {
        return rows[n].u64[lane];
    }
    const uint64_t whole = ptx_type_size(l->whole) == 8 ? rows->u64[lane] : rows->u32[lane];
    memcpy(&value, (const unsigned char *)&whole + n * bytes, bytes);
    return value;
}

static void check(const struct layout *l, bool packs, uint32_t mask) {
    struct alu_fixture f;
    struct alu_fixture before;
    struct rng rng = rng_create(l->count);

    prepare(&f, l, packs);
    decode(&f, l, packs);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        for (size_t n = 0; n <= l->count; n++) {
            alu_fixture_set_lane(&f, n, lane, rng_u64(&rng));
        }
        f.rows[1].u64[lane] = rng_u64(&rng);
    }
    alu_fixture_mask(&f, mask);
    memcpy(&before, &f, sizeof f);
    f.instruction.run(&f.warp, &f.instruction);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        const bool active = mask >> lane & 1;
        for (size_t n = 0; n < l->count; n++) {
            struct alu_fixture *want_parts = active ? &f : &before;
            if (packs) {
                const uint64_t want =
                    active ? alu_fixture_lane(&f, n + 1, lane) : part_of(&before, l, n, lane);
                EXPECT_TRUE(want == part_of(&f, l, n, lane));
            } else {
                const uint64_t want = active ? part_of(want_parts, l, n, lane)
                                             : alu_fixture_lane(&before, n + 1, lane);
                EXPECT_TRUE(want == alu_fixture_lane(&f, n + 1, lane));
            }
        }
    }
}

C_TEST(alu_move, packing_and_unpacking) {
    for (size_t n = 0; n < COUNT(layouts); n++) {
        for (int packs = 0; packs < 2; packs++) {
            check(&layouts[n], packs, UINT32_MAX);
            check(&layouts[n], packs, 0x13579bdf);
            check(&layouts[n], packs, 0);
        }
    }
}

C_TEST(alu_move, a_discarded_element_is_not_written) {
    struct alu_fixture f;

    prepare(&f, &layouts[3], false);
    f.elements[0].kind = PTX_OPERAND_DISCARD;
    decode(&f, &layouts[3], false);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        alu_fixture_row(&f, 0)->u64[lane] = 0x1111111122222222 + lane;
        alu_fixture_row(&f, 1)->u32[lane] = 9;
    }
    f.instruction.run(&f.warp, &f.instruction);
    EXPECT_INT_EQ(9, alu_fixture_row(&f, 1)->u32[31]);
    EXPECT_INT_EQ(0x11111111, alu_fixture_row(&f, 2)->u32[31]);
}

/** A constant's row may have lanes of 8 bytes, as the instruction's type has. */
C_TEST(alu_move, constant_elements) {
    struct alu_fixture f;

    prepare(&f, &layouts[3], true);
    f.elements[0].kind = PTX_OPERAND_IMMEDIATE;
    decode(&f, &layouts[3], true);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        alu_fixture_row(&f, 1)->u64[lane] = 0x80000001;
        alu_fixture_row(&f, 2)->u32[lane] = (uint32_t)lane;
    }
    f.instruction.run(&f.warp, &f.instruction);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        EXPECT_TRUE(alu_fixture_row(&f, 0)->u64[lane] == ((uint64_t)lane << 32 | 0x80000001));
    }
}

C_TEST(alu_move, wrong_sizes_are_refused) {
    static const struct layout wrong[] = {{"mov.b32", PTX_B32, PTX_B32, 3},
                                          {"mov.b64", PTX_B32, PTX_B32, 2},
                                          {"mov.b128", PTX_B128, PTX_B32, 4}};

    for (size_t n = 0; n < COUNT(wrong); n++) {
        struct alu_fixture f;
        prepare(&f, &wrong[n], true);
        const struct simt_decoding decoding = {.source = &f.source, .function = &f.function};
        f.instruction = (struct simt_instruction){.dst_count = 1, .src_count = 3};
        EXPECT_TRUE(!simt_decode_convert(&decoding, &f.instruction));
    }
}

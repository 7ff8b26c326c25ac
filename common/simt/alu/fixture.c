#include "common/simt/alu/fixture.h"

#include <stdio.h>
#include <string.h>

enum { SECOND_PREDICATE = 8 };

static void split(struct alu_fixture *f, const char *opcode) {
    snprintf(f->text, sizeof f->text, "%s", opcode);
    snprintf(f->pieces, sizeof f->pieces, "%s", opcode);
    f->source.opcode = f->text;
    f->source.base = f->pieces;
    for (char *c = f->pieces; *c != '\0'; c++) {
        if (*c == '.') {
            *c = '\0';
            f->source.modifiers[f->source.modifier_count++] = c + 1;
        }
    }
}

void alu_fixture_create(struct alu_fixture *f, const char *opcode, size_t sources) {
    memset(f, 0, sizeof *f);
    split(f, opcode);
    f->source.operands = f->operands;
    f->source.operand_count = sources + 1;
    f->function.registers = f->registers;
    f->function.register_count = ALU_OPERANDS;
    for (size_t n = 0; n <= sources; n++) {
        f->operands[n] = (struct ptx_operand){.kind = PTX_OPERAND_REGISTER, .index = (uint32_t)n};
        f->registers[n].type = alu_operand_type(&f->source, n);
    }
    f->warp.rows = (unsigned char *)f->rows;
    f->warp.predicates = f->predicates;
    alu_fixture_mask(f, UINT32_MAX);
}

void alu_fixture_register(struct alu_fixture *f, size_t n, enum ptx_type type) {
    f->registers[n].type = type;
}

/** Resolves the operands as the decoder does. */
static void resolve(struct alu_fixture *f) {
    struct simt_instruction *in = &f->instruction;
    const bool predicate = f->registers[0].type == PTX_PRED;

    *in = (struct simt_instruction){.source = &f->source, .guard = -1, .pred_dst = {-1, -1}};
    if (predicate) {
        in->pred_dst[0] = 0;
        in->pred_dst[1] = strcmp(f->source.base, "setp") == 0 ? SECOND_PREDICATE : -1;
    } else {
        in->dst[in->dst_count++] = 0;
    }
    for (size_t n = 1; n < f->source.operand_count; n++) {
        in->src[in->src_count++] = f->registers[n].type == PTX_PRED
                                       ? (uint32_t)n
                                       : (uint32_t)(n * 2 * sizeof(union simt_row));
    }
}

bool alu_fixture_decode(struct alu_fixture *f) {
    static simt_decode_family *const families[] = {simt_decode_convert, simt_decode_compare,
                                                   simt_decode_integer, simt_decode_float,
                                                   simt_decode_half};
    const struct simt_decoding decoding = {.source = &f->source, .function = &f->function};

    for (size_t n = 0; n < COUNT(families); n++) {
        resolve(f);
        if (families[n](&decoding, &f->instruction)) {
            return true;
        }
    }
    return false;
}

void alu_fixture_mask(struct alu_fixture *f, uint32_t mask) {
    f->warp.mask = mask;
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        f->warp.lanes[lane] = 0 - (mask >> lane & 1);
    }
}

union simt_row *alu_fixture_row(struct alu_fixture *f, size_t n) {
    return &f->rows[2 * n];
}

static size_t register_bits(const struct alu_fixture *f, size_t n) {
    return 8 * ptx_type_size(f->registers[n].type);
}

uint64_t alu_fixture_lane(struct alu_fixture *f, size_t n, size_t lane) {
    const union simt_row *row = alu_fixture_row(f, n);

    if (f->registers[n].type == PTX_PRED) {
        return f->predicates[n] >> lane & 1;
    }
    return register_bits(f, n) > 32 ? row->u64[lane] : row->u32[lane];
}

void alu_fixture_set_lane(struct alu_fixture *f, size_t n, size_t lane, uint64_t value) {
    const size_t bits = register_bits(f, n);

    if (f->registers[n].type == PTX_PRED) {
        f->predicates[n] = (f->predicates[n] & ~(1u << lane)) | (uint32_t)(value & 1) << lane;
    } else if (bits > 32) {
        alu_fixture_row(f, n)->u64[lane] = value;
    } else {
        alu_fixture_row(f, n)->u32[lane] = (uint32_t)(value & (UINT32_MAX >> (32 - bits)));
    }
}

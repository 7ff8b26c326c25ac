/**
 * @file move.c
 * @brief mov of registers, and packing {a, b} into a wider register and back.
 */
#include "common/simt/alu/alu.h"
#include "common/simt/alu/row_ops.h"

ROW_OP1(move_16, uint16_t, u32, uint16_t, u32, x)
ROW_OP1(move_32, uint32_t, u32, uint32_t, u32, x)
ROW_OP1(move_64, uint64_t, u64, uint64_t, u64, x)

/** A 128-bit register is two rows of 8 bytes a lane, one behind the other. */
enum { UPPER_ROW = SIMT_LANES * 8 };

ROW_HANDLER(move_128) {
    for (uint32_t part = 0; part <= UPPER_ROW; part += UPPER_ROW) {
        row_commit64(warp, instruction->dst[0] + part,
                     simt_row(warp, instruction->src[0] + part)->u64);
    }
}

/* {a, b, ...} to and from a register of 16, 32 or 64 bits, the first element lowest.
 * detail[0]: bits of an element; detail[1]: elements; detail[2]: a bit for each element that is
 * `_` (unpacking) or a constant (packing), of which one lane says all, however wide its row. */
ROW_HANDLER(pack) {
    const uint32_t bits = instruction->detail[0];
    const uint32_t count = instruction->detail[1];
    uint64_t whole[SIMT_LANES] = {0};

    for (uint32_t n = 0; n < count; n++) {
        const union simt_row *part = simt_row(warp, instruction->src[n]);
        const uint32_t ones = UINT32_MAX >> (32 - bits);
        const size_t step = instruction->detail[2] >> n & 1 ? 0 : 1;

        ROW_EACH_LANE(i) {
            whole[i] |= (uint64_t)(part->u32[i * step] & ones) << (n * bits);
        }
    }
    if (bits * count == 64) {
        row_commit64(warp, instruction->dst[0], whole);
        return;
    }
    uint32_t narrow[SIMT_LANES];
    ROW_EACH_LANE(i) {
        narrow[i] = (uint32_t)whole[i];
    }
    row_commit32(warp, instruction->dst[0], narrow);
}

ROW_HANDLER(unpack) {
    const uint32_t bits = instruction->detail[0];
    const uint32_t count = instruction->detail[1];
    const union simt_row *source = simt_row(warp, instruction->src[0]);
    const bool wide = bits * count == 64;
    const uint32_t ones = UINT32_MAX >> (32 - bits);
    uint64_t whole[SIMT_LANES];

    /* A copy: the source may be one of the destinations. */
    ROW_EACH_LANE(i) {
        whole[i] = wide ? source->u64[i] : source->u32[i];
    }
    for (uint32_t n = 0; n < count; n++) {
        uint32_t part[SIMT_LANES];

        if (instruction->detail[2] >> n & 1) {
            continue;
        }
        ROW_EACH_LANE(i) {
            part[i] = (uint32_t)(whole[i] >> (n * bits)) & ones;
        }
        row_commit32(warp, instruction->dst[n], part);
    }
}

/* The frequent one: two words and a register of 64 bits. */
ROW_HANDLER(pack_words) {
    ROW_DESTINATION;
    ROW_SOURCE(a, 0);
    ROW_SOURCE(b, 1);
    ROW_STORE(uint64_t, u64, , a->u32[i] | (uint64_t)b->u32[i] << 32);
}

ROW_HANDLER(pack_128) {
    uint64_t low[SIMT_LANES];
    uint64_t high[SIMT_LANES];

    memcpy(low, simt_row(warp, instruction->src[0])->u64, sizeof low);
    memcpy(high, simt_row(warp, instruction->src[1])->u64, sizeof high);
    row_commit64(warp, instruction->dst[0], low);
    row_commit64(warp, instruction->dst[0] + UPPER_ROW, high);
}

ROW_HANDLER(unpack_128) {
    for (uint32_t n = 0; n < 2; n++) {
        if ((instruction->detail[2] >> n & 1) == 0) {
            row_commit64(warp, instruction->dst[n],
                         simt_row(warp, instruction->src[0] + n * UPPER_ROW)->u64);
        }
    }
}

/** @return a bit for every element of a kind. */
static uint32_t elements_of(const struct ptx_operand *vector, enum ptx_operand_kind kind) {
    uint32_t bits = 0;

    for (size_t n = 0; n < vector->element_count && n < 32; n++) {
        bits |= (uint32_t)(vector->elements[n].kind == kind) << n;
    }
    return bits;
}

/** Sets up a pack or unpack of @p count elements. @return false when the sizes make no register. */
static bool decode_vector(struct simt_instruction *out, size_t size, size_t count, bool packs) {
    if (count == 0 || size % count != 0 || size / count > 8 || (size / count == 8 && size != 16)) {
        return false;
    }
    out->detail[0] = (uint32_t)(8 * size / count);
    out->detail[1] = (uint32_t)count;
    if (size == 16) {
        out->run = packs ? pack_128 : unpack_128;
        return count == 2;
    }
    out->run = !packs ? unpack : size == 8 && count == 2 && out->detail[2] == 0 ? pack_words : pack;
    return count > 1;
}

static bool decode_scalar(struct simt_instruction *out, size_t size) {
    out->run = size == 16 ? move_128 : size == 8 ? move_64 : size == 4 ? move_32 : move_16;
    return size >= 2 && out->dst_count == 1 && out->src_count == 1;
}

/** @return true when the register's lanes are as wide as the type's. */
static bool scalar_fits(const struct simt_decoding *decoding, size_t operand, size_t size) {
    return (alu_register_bits(decoding, operand) > 32) == (size > 4);
}

bool alu_decode_move(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    const struct ptx_instruction *source = decoding->source;
    const size_t size = ptx_type_size(ptx_modifier_type(source, 0));

    if (strcmp(source->base, "mov") != 0 || source->modifier_count != 1 || size == 0 ||
        source->operand_count != 2) {
        return false;
    }
    const struct ptx_operand *to = &source->operands[0];
    const struct ptx_operand *from = &source->operands[1];
    instruction->op_class = SIMT_CLASS_MOVE;
    if (to->kind == PTX_OPERAND_VECTOR && from->kind != PTX_OPERAND_VECTOR) {
        instruction->detail[2] = elements_of(to, PTX_OPERAND_DISCARD);
        return scalar_fits(decoding, 1, size) &&
               decode_vector(instruction, size, to->element_count, false);
    }
    if (from->kind == PTX_OPERAND_VECTOR) {
        instruction->detail[2] = elements_of(from, PTX_OPERAND_IMMEDIATE);
        return to->kind != PTX_OPERAND_VECTOR && scalar_fits(decoding, 0, size) &&
               decode_vector(instruction, size, from->element_count, true);
    }
    return scalar_fits(decoding, 0, size) && scalar_fits(decoding, 1, size) &&
           decode_scalar(instruction, size);
}

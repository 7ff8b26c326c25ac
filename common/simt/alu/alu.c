/**
 * @file alu.c
 * @brief Finds the handler of an arithmetic opcode and the types of its operands.
 */
#include "common/simt/alu/alu.h"

#include <string.h>

struct rounding_name {
    const char *name;
    enum alu_rounding rounding;
    bool to_integer;
};

static const struct rounding_name rounding_names[] = {
    {"rn", ALU_NEAREST, false}, {"rm", ALU_DOWN, false},  {"rp", ALU_UP, false},
    {"rz", ALU_ZERO, false},    {"rna", ALU_AWAY, false}, {"rni", ALU_NEAREST, true},
    {"rmi", ALU_DOWN, true},    {"rpi", ALU_UP, true},    {"rzi", ALU_ZERO, true},
};

struct flag_name {
    const char *name;
    uint32_t flag;
};

static const struct flag_name flag_names[] = {
    {"ftz", ALU_FTZ},       {"sat", ALU_SAT},   {"relu", ALU_RELU},           {"NaN", ALU_NAN},
    {"approx", ALU_APPROX}, {"full", ALU_FULL}, {"satfinite", ALU_SATFINITE},
};

/** Takes a common modifier into the form. @return 1: taken; 0: none of them; -1: doubled. */
static int take_modifier(struct alu_form *form, const char *modifier) {
    for (size_t i = 0; i < COUNT(rounding_names); i++) {
        if (ptx_is_same(modifier, rounding_names[i].name)) {
            if (form->rounding != ALU_NO_ROUNDING) {
                return -1;
            }
            form->rounding = rounding_names[i].rounding;
            form->to_integer = rounding_names[i].to_integer;
            return 1;
        }
    }
    for (size_t i = 0; i < COUNT(flag_names); i++) {
        if (ptx_is_same(modifier, flag_names[i].name)) {
            if (form->flags & flag_names[i].flag) {
                return -1;
            }
            form->flags |= flag_names[i].flag;
            return 1;
        }
    }
    return 0;
}

/** Appends ".text" (or "text" to an empty key). @return false when it does not fit. */
static bool key_append(struct alu_form *form, const char *text) {
    const size_t used = strlen(form->key);
    const size_t length = strlen(text);
    const size_t dot = used > 0;

    if (used + dot + length >= sizeof form->key) {
        return false;
    }
    if (dot) {
        form->key[used] = '.';
    }
    memcpy(form->key + used + dot, text, length + 1);
    return true;
}

bool alu_form_parse(const struct ptx_instruction *source, struct alu_form *form) {
    form->key[0] = '\0';
    form->flags = 0;
    form->rounding = ALU_NO_ROUNDING;
    form->to_integer = false;
    if (!key_append(form, source->base)) {
        return false;
    }
    for (size_t i = 0; i < source->modifier_count; i++) {
        const char *modifier = source->modifiers[i];
        const bool xorsign = strcmp(modifier, "xorsign") == 0 && i + 1 < source->modifier_count &&
                             strcmp(source->modifiers[i + 1], "abs") == 0;
        const int taken = xorsign ? 1 : take_modifier(form, modifier);

        if (taken < 0 || (taken == 0 && !key_append(form, modifier))) {
            return false;
        }
        if (xorsign) {
            form->flags |= ALU_XORSIGN;
            i++;
        }
    }
    return true;
}

simt_handler *alu_find(const struct alu_entry *entries, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++) {
        if (ptx_is_same(entries[i].key, key)) {
            return entries[i].run;
        }
    }
    return NULL;
}

/** Operands that are 32 bits wide whatever the instruction's type: base, numbers of operands. */
struct narrow_operands {
    const char *base;
    uint32_t operands; /**< bit n: operand n */
};

static const struct narrow_operands narrow_operands[] = {
    {"shl", 1u << 2},  {"shr", 1u << 2},   {"bfe", 1u << 2 | 1u << 3}, {"bfi", 1u << 3 | 1u << 4},
    {"popc", 1u << 0}, {"clz", 1u << 0},   {"bfind", 1u << 0},         {"fns", 0xf},
    {"prmt", 0xf},     {"szext", 1u << 2},
};

/** @return the type twice as wide: of the product of mul.wide. */
static enum ptx_type doubled(enum ptx_type type) {
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    default:
        return PTX_S64;
    }
}

/** Types of operands where an instruction names two: destination's first. */
static enum ptx_type two_types(const struct ptx_instruction *source, size_t operand) {
    const enum ptx_type first = ptx_modifier_type(source, 0);
    const enum ptx_type second = ptx_modifier_type(source, 1);

    if (strcmp(source->base, "slct") == 0) {
        return operand == 3 ? second : first;
    }
    if (strcmp(source->base, "cvt") == 0 && source->modifier_count > 0 &&
        strcmp(source->modifiers[0], "pack") == 0) {
        return operand == 0 || operand == 3 ? PTX_B32 : second;
    }
    if (strcmp(source->base, "set") == 0 || strcmp(source->base, "cvt") == 0) {
        return operand == 0 ? first : operand == 3 ? PTX_PRED : second;
    }
    return first;
}

enum ptx_type alu_operand_type(const struct ptx_instruction *source, size_t operand) {
    const enum ptx_type type = ptx_modifier_type(source, 0);

    for (size_t i = 0; i < COUNT(narrow_operands); i++) {
        if (strcmp(source->base, narrow_operands[i].base) == 0 && operand < 32 &&
            (narrow_operands[i].operands >> operand & 1)) {
            return PTX_U32;
        }
    }
    if ((strcmp(source->base, "mul") == 0 || strcmp(source->base, "mad") == 0) &&
        ptx_has_modifier(source, "wide")) {
        return operand == 0 || operand == 3 ? doubled(type) : type;
    }
    if (strcmp(source->base, "lop3") == 0 || strcmp(source->base, "shf") == 0) {
        return operand == 5 ? PTX_PRED : PTX_B32;
    }
    if (ptx_modifier_type(source, 1) != PTX_NO_TYPE) {
        return two_types(source, operand);
    }
    if ((strcmp(source->base, "setp") == 0 && (operand == 0 || operand == 3)) ||
        (strcmp(source->base, "testp") == 0 && operand == 0) ||
        (strcmp(source->base, "selp") == 0 && operand == 3)) {
        return PTX_PRED;
    }
    return type;
}

static const struct ptx_register *operand_register(const struct simt_decoding *decoding,
                                                   const struct ptx_operand *operand) {
    if (operand->kind != PTX_OPERAND_REGISTER || decoding->function == NULL ||
        operand->index >= decoding->function->register_count) {
        return NULL;
    }
    return &decoding->function->registers[operand->index];
}

/** @return true when the operand's register has lanes as wide as @p type asks for. */
static bool operand_fits(const struct simt_decoding *decoding, const struct ptx_operand *operand,
                         enum ptx_type type) {
    const struct ptx_register *reg = operand_register(decoding, operand);

    if (reg == NULL) {
        return true;
    }
    if (reg->type == PTX_PRED || type == PTX_PRED) {
        return reg->type == type;
    }
    return (ptx_type_size(reg->type) > 4) == (ptx_type_size(type) > 4);
}

bool alu_operands_fit(const struct simt_decoding *decoding) {
    const struct ptx_instruction *source = decoding->source;

    for (size_t n = 0; n < source->operand_count; n++) {
        const struct ptx_operand *operand = &source->operands[n];
        const enum ptx_type type = alu_operand_type(source, n);

        if (operand->kind != PTX_OPERAND_PAIR) {
            if (!operand_fits(decoding, operand, type)) {
                return false;
            }
        } else if (operand->element_count > 0 &&
                   !operand_fits(decoding, &operand->elements[0], type)) {
            return false;
        }
    }
    return true;
}

size_t alu_register_bits(const struct simt_decoding *decoding, size_t operand) {
    const struct ptx_instruction *source = decoding->source;
    const struct ptx_register *reg = operand < source->operand_count
                                         ? operand_register(decoding, &source->operands[operand])
                                         : NULL;

    return 8 * ptx_type_size(reg != NULL ? reg->type : alu_operand_type(source, operand));
}

bool simt_decode_integer(const struct simt_decoding *decoding,
                         struct simt_instruction *instruction) {
    return alu_decode_arithmetic(decoding, instruction) ||
           alu_decode_carry(decoding, instruction) || alu_decode_bits(decoding, instruction);
}

bool simt_decode_float(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    return alu_decode_f32(decoding, instruction) || alu_decode_f64(decoding, instruction) ||
           alu_decode_special(decoding, instruction);
}

bool simt_decode_convert(const struct simt_decoding *decoding,
                         struct simt_instruction *instruction) {
    return alu_decode_cvt(decoding, instruction) || alu_decode_move(decoding, instruction);
}

bool alu_decode_entry(const struct alu_entry *entries, size_t count, enum simt_class op_class,
                      const struct simt_decoding *decoding, struct simt_instruction *out) {
    simt_handler *run = alu_find(entries, count, decoding->source->opcode);

    if (run == NULL || !alu_operands_fit(decoding)) {
        return false;
    }
    out->run = run;
    out->op_class = op_class;
    return true;
}

static bool allows_rounding(enum alu_rounding_rule rule, const struct alu_form *form) {
    const bool rounds = form->rounding <= ALU_ZERO && !form->to_integer;
    const bool nearest = form->rounding == ALU_NEAREST && !form->to_integer;
    const bool none = form->rounding == ALU_NO_ROUNDING;

    switch (rule) {
    case ALU_ROUNDING_OPTIONAL:
        return rounds || none;
    case ALU_ROUNDING_REQUIRED:
        return rounds;
    case ALU_NEAREST_OPTIONAL:
        return nearest || none;
    case ALU_NEAREST_REQUIRED:
        return nearest;
    default:
        return none;
    }
}

static bool entry_matches(const struct alu_float_entry *entry, const struct alu_form *form) {
    return strcmp(entry->key, form->key) == 0 && (form->flags & ~entry->allowed) == 0 &&
           (form->flags & entry->required) == entry->required &&
           allows_rounding(entry->rounding, form);
}

static void choose_handler(const struct alu_float_entry *entry, const struct alu_form *form,
                           struct simt_instruction *out) {
    const uint32_t special = form->flags & (ALU_SAT | ALU_RELU | ALU_NAN | ALU_XORSIGN);
    const bool directed = form->rounding != ALU_NEAREST && form->rounding != ALU_NO_ROUNDING;

    out->detail[0] = form->flags;
    out->detail[1] = directed ? form->rounding : ALU_NEAREST;
    out->run = special || directed       ? entry->general
               : (form->flags & ALU_FTZ) ? entry->ftz
                                         : entry->plain;
    out->op_class = entry->op_class;
    out->flops = entry->flops;
}

bool alu_decode_float(const struct alu_float_entry *entries, size_t count,
                      const struct simt_decoding *decoding, struct simt_instruction *out) {
    struct alu_form form;

    if (!alu_form_parse(decoding->source, &form) || !alu_operands_fit(decoding)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (entry_matches(&entries[i], &form)) {
            choose_handler(&entries[i], &form, out);
            return true;
        }
    }
    return false;
}

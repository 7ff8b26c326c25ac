/*
 * Which variable the address of an access was computed from.
 *
 * A register is a number, an address in a variable, or anything: the kind on which
 * all instructions that write it agree. A variable's address plus a number stays
 * an address in that variable; any other operation on an address gives anything,
 * and accesses through such a register are not checked.
 */
#include <stdlib.h>

#include "common/simt/core/decode/decode_internal.h"

enum kind { UNSEEN, NUMBER, ADDRESS, ANYTHING };

struct value {
    enum kind kind;
    const struct ptx_variable *variable; /* ADDRESS */
};

struct analysis {
    const struct ptx_module *module;
    const struct ptx_function *function;
    struct value *registers;
    bool changed;
};

static const struct value number = {.kind = NUMBER};
static const struct value anything = {.kind = ANYTHING};

static struct value value_of_symbol(const struct analysis *a, const struct ptx_operand *operand) {
    const struct ptx_variable *variable = ptx_operand_variable(a->module, a->function, operand);
    if (variable == NULL || (variable->space != PTX_SHARED && variable->space != PTX_LOCAL)) {
        return number;
    }
    return (struct value){.kind = ADDRESS, .variable = variable};
}

static struct value value_of(const struct analysis *a, const struct ptx_operand *operand) {
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        return operand->negated || operand->special != NULL ? anything
                                                            : a->registers[operand->index];
    case PTX_OPERAND_IMMEDIATE:
    case PTX_OPERAND_SPECIAL:
        return number;
    case PTX_OPERAND_SYMBOL:
        return value_of_symbol(a, operand);
    default:
        return anything;
    }
}

/* What two values have in common. */
static struct value join(struct value x, struct value y) {
    if (x.kind == UNSEEN || y.kind == UNSEEN) {
        return x.kind == UNSEEN ? y : x;
    }
    return x.kind != y.kind || x.variable != y.variable ? anything : x;
}

static struct value sum(struct value x, struct value y) {
    if (x.kind == UNSEEN || y.kind == UNSEEN) {
        return (struct value){.kind = UNSEEN};
    }
    struct value address = x.kind == ADDRESS ? x : y, other = x.kind == ADDRESS ? y : x;
    return other.kind != NUMBER || address.kind == ANYTHING ? anything : address;
}

static bool is(const struct ptx_instruction *in, const char *base) {
    return ptx_is_same(in->base, base);
}

/* The result of an instruction of which nothing is known but its sources. */
static struct value result_of_any(const struct analysis *a, const struct ptx_instruction *in) {
    struct value result = number;
    for (size_t n = 1; n < in->operand_count; n++) {
        struct value source = value_of(a, &in->operands[n]);
        bool vector = in->operands[n].kind == PTX_OPERAND_VECTOR;
        for (size_t e = 0; vector && e < in->operands[n].element_count; e++) {
            struct value element = value_of(a, &in->operands[n].elements[e]);
            source = e == 0 ? element : element.kind == NUMBER ? source : element;
        }
        if (source.kind == UNSEEN && result.kind == NUMBER) {
            result = source;
        } else if (source.kind != NUMBER && source.kind != UNSEEN) {
            return anything;
        }
    }
    return result;
}

static struct value result_of(const struct analysis *a, const struct ptx_instruction *in) {
    const struct ptx_operand *o = in->operands;
    bool loads = is(in, "ld") || is(in, "ldu") || is(in, "atom") || is(in, "call");
    if (loads || o[0].kind != PTX_OPERAND_REGISTER) {
        return loads ? number : anything;
    }
    if (in->operand_count == 2 && (is(in, "mov") || is(in, "cvta") || is(in, "cvt")) &&
        o[1].kind != PTX_OPERAND_VECTOR) {
        return value_of(a, &o[1]);
    }
    if (in->operand_count == 3 && is(in, "add")) {
        return sum(value_of(a, &o[1]), value_of(a, &o[2]));
    }
    if (in->operand_count == 3 && is(in, "sub") && value_of(a, &o[2]).kind == NUMBER) {
        return value_of(a, &o[1]);
    }
    if (in->operand_count == 4 && is(in, "mad") && !ptx_has_modifier(in, "hi")) {
        struct value product = sum(value_of(a, &o[1]), value_of(a, &o[2]));
        return sum(product.kind == ADDRESS ? anything : product, value_of(a, &o[3]));
    }
    if (in->operand_count == 4 && is(in, "selp")) {
        return join(value_of(a, &o[1]), value_of(a, &o[2]));
    }
    return result_of_any(a, in);
}

static void write_register(struct analysis *a, const struct ptx_operand *operand,
                           struct value value) {
    if (operand->kind == PTX_OPERAND_REGISTER) {
        struct value *old = &a->registers[operand->index];
        struct value new = join(*old, value);
        a->changed = a->changed || new.kind != old->kind;
        *old = new;
    }
    for (size_t n = 0; n < operand->element_count; n++) {
        write_register(a, &operand->elements[n], value);
    }
}

/* Values only grow, from UNSEEN to ANYTHING, so this ends. */
static void analyse(struct analysis *a) {
    do {
        a->changed = false;
        for (size_t n = 0; n < a->function->instruction_count; n++) {
            const struct ptx_instruction *in = &a->function->instructions[n];
            if (in->operand_count > 0 && decode_has_destination(in)) {
                write_register(a, &in->operands[0], result_of(a, in));
            } else if (is(in, "call")) {
                write_register(a, &in->operands[0], number);
            }
        }
    } while (a->changed);
}

/* The address of ld, st, atom or red. */
static const struct ptx_operand *address_of(const struct ptx_instruction *in) {
    bool first = is(in, "st") || is(in, "red");
    bool second = is(in, "ld") || is(in, "ldu") || is(in, "atom");
    size_t n = first ? 0 : 1;
    if ((!first && !second) || in->operand_count <= n ||
        in->operands[n].kind != PTX_OPERAND_ADDRESS) {
        return NULL;
    }
    return &in->operands[n];
}

static struct value value_of_address(const struct analysis *a, const struct ptx_operand *address) {
    return address->has_register ? a->registers[address->index] : value_of_symbol(a, address);
}

static enum status keep_origins(struct decoder *d, const struct analysis *a) {
    struct simt_code *code = d->code;
    code->origins = calloc(a->function->instruction_count + 1, sizeof *code->origins);
    if (code->origins == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < a->function->instruction_count; n++) {
        const struct ptx_operand *address = address_of(&a->function->instructions[n]);
        struct value value = address != NULL ? value_of_address(a, address) : number;
        struct simt_origin *origin = &code->origins[n];
        uint64_t offset = 0;
        if (value.kind != ADDRESS || !decode_variable_offset(d, value.variable->name, &offset)) {
            continue;
        }
        bool shared = value.variable->space == PTX_SHARED;
        bool open = !shared || value.variable->external;
        *origin = (struct simt_origin){.variable = value.variable,
                                       .begin = shared ? offset : 0,
                                       .end = open ? UINT64_MAX : offset + value.variable->bytes};
        code->instructions[n].origin = origin;
    }
    return STATUS_OK;
}

enum status decode_origins(struct decoder *d, const struct ptx_module *module) {
    struct analysis a = {.module = module, .function = d->function};
    a.registers = calloc(d->function->register_count + 1, sizeof *a.registers);
    if (a.registers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    analyse(&a);
    enum status status = keep_origins(d, &a);
    free(a.registers);
    return status;
}

/* Instructions: guard, opcode with its modifiers, operands. */
#include <string.h>

#include "common/simt/ptx/parser.h"

/* @%p, @!%p */
static bool parse_guard(struct ptx_parser *parser, struct ptx_instruction *instruction) {
    struct ptx_operand operand = {0};
    uint32_t line = parser->token.line;
    PTX_TRY(ptx_advance(parser) && ptx_parse_simple(parser, &operand));
    const struct ptx_register *guard = operand.kind == PTX_OPERAND_REGISTER
                                           ? ptx_list_at(&parser->body.registers, operand.index)
                                           : NULL;
    if (guard == NULL || guard->type != PTX_PRED) {
        return ptx_fail_at(parser, line, STATUS_BAD_FORMAT, "a guard that is no predicate");
    }
    instruction->guarded = true;
    instruction->guard_negated = operand.negated;
    instruction->guard = operand.index;
    return true;
}

static bool add_modifier(struct ptx_parser *parser, struct ptx_instruction *instruction) {
    if (instruction->modifier_count == PTX_MAX_MODIFIERS) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "an instruction of more than %d modifiers",
                        PTX_MAX_MODIFIERS);
    }
    const char *modifier =
        ptx_names_keep(&parser->names, parser->token.text + 1, parser->token.length - 1);
    if (modifier == NULL) {
        return ptx_fail_memory(parser);
    }
    instruction->modifiers[instruction->modifier_count++] = modifier;
    return true;
}

/* ld.global.v4.f32, whether or not there is space before the dots */
static bool parse_opcode(struct ptx_parser *parser, struct ptx_instruction *instruction) {
    char opcode[PTX_MAX_OPCODE];
    size_t length = 0;
    bool dotted = false;
    if (parser->token.kind != PTX_TOKEN_NAME) {
        return ptx_fail_expected(parser, "an instruction");
    }
    do {
        if (parser->token.length > sizeof opcode - length) {
            return ptx_fail(parser, STATUS_UNSUPPORTED, "an opcode of more than %d characters",
                            PTX_MAX_OPCODE);
        }
        memcpy(opcode + length, parser->token.text, parser->token.length);
        length += parser->token.length;
        if (dotted) {
            PTX_TRY(add_modifier(parser, instruction));
        } else {
            instruction->base = ptx_names_keep(&parser->names, opcode, length);
        }
        PTX_TRY(ptx_advance(parser));
        dotted = parser->token.kind == PTX_TOKEN_DOTTED;
    } while (dotted);
    instruction->opcode = ptx_names_keep(&parser->names, opcode, length);
    return (instruction->base != NULL && instruction->opcode != NULL) || ptx_fail_memory(parser);
}

/* Puts the operand at the end of the scratch list. */
static bool parse_one(struct ptx_parser *parser) {
    if (parser->operands.count == PTX_MAX_OPERANDS) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "an instruction of more than %d operands",
                        PTX_MAX_OPERANDS);
    }
    struct ptx_operand *operand = ptx_list_add(&parser->operands);
    return operand != NULL ? ptx_parse_operand(parser, operand) : ptx_fail_memory(parser);
}

static bool parse_operands(struct ptx_parser *parser) {
    bool more = !ptx_at_mark(parser, ';');
    while (more) {
        PTX_TRY(parse_one(parser) && ptx_skip_mark(parser, ',', &more));
    }
    return true;
}

bool ptx_parse_instruction(struct ptx_parser *parser) {
    struct ptx_instruction instruction = {.text_line = parser->token.line};
    const struct ptx_location *location = parser->body.location;
    parser->operands.count = 0;
    if (ptx_at_mark(parser, '@') && !parse_guard(parser, &instruction)) {
        return false;
    }
    PTX_TRY(parse_opcode(parser, &instruction));
    bool call = strcmp(instruction.base, "call") == 0;
    void *operands;
    if (!(call ? ptx_parse_call(parser) : parse_operands(parser)) ||
        !ptx_expect_mark(parser, ';') ||
        !ptx_keep_list(parser, &parser->operands, 0, &operands, &instruction.operand_count)) {
        return false;
    }
    instruction.operands = operands;
    instruction.location = location;
    if (location != NULL) {
        instruction.file = location->file;
        instruction.line = location->line;
    }
    struct ptx_instruction *added = ptx_list_add(&parser->body.instructions);
    if (added == NULL) {
        return ptx_fail_memory(parser);
    }
    *added = instruction;
    return true;
}

/* Calls: `call.uni (results), function, (arguments), prototype;` */

/* Puts an operand of a call at the end of the scratch list. */
static bool add_operand(struct ptx_parser *parser, const struct ptx_operand *operand) {
    struct ptx_operand *added = ptx_list_add(&parser->operands);
    if (added == NULL) {
        return ptx_fail_memory(parser);
    }
    *added = *operand;
    return true;
}

/* (a, b, ...), or an empty list when there is no parenthesis. */
static bool parse_list(struct ptx_parser *parser, bool *found) {
    struct ptx_operand list = {.kind = PTX_OPERAND_VECTOR};
    if (!ptx_skip_mark(parser, '(', found) || (*found && !ptx_parse_elements(parser, ')', &list))) {
        return false;
    }
    return add_operand(parser, &list);
}

/* The name of a function or a prototype; a function's name in a register. */
static bool parse_callee(struct ptx_parser *parser) {
    struct ptx_operand callee = {0};
    uint32_t line = parser->token.line;
    PTX_TRY(ptx_parse_simple(parser, &callee));
    if (callee.kind != PTX_OPERAND_LABEL && callee.kind != PTX_OPERAND_REGISTER) {
        return ptx_fail_at(parser, line, STATUS_BAD_FORMAT, "a call of what is no function");
    }
    return add_operand(parser, &callee);
}

bool ptx_parse_call(struct ptx_parser *parser) {
    bool results, arguments, more;
    if (!parse_list(parser, &results) || (results && !ptx_expect_mark(parser, ',')) ||
        !parse_callee(parser) || !ptx_skip_mark(parser, ',', &more)) {
        return false;
    }
    if (!more) {
        return add_operand(parser, &(struct ptx_operand){.kind = PTX_OPERAND_VECTOR});
    }
    PTX_TRY(parse_list(parser, &arguments));
    if (arguments && !ptx_skip_mark(parser, ',', &more)) {
        return false;
    }
    return !more || parse_callee(parser);
}

/* Calls: `call.uni (results), function, (arguments), prototype;` */
#include "common/simt/ptx/parser.h"

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
    if (!ptx_parse_simple(parser, &callee)) {
        return false;
    }
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
    if (!parse_list(parser, &arguments)) {
        return false;
    }
    if (arguments && !ptx_skip_mark(parser, ',', &more)) {
        return false;
    }
    return !more || parse_callee(parser);
}

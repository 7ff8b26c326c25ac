/* Declarations of registers. */
#include <stdio.h>
#include <string.h>

#include "common/simt/ptx/parser.h"

static bool add_register(struct ptx_parser *parser, char *name, enum ptx_type type) {
    if (parser->registers_left == 0) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "more registers than the text can use");
    }
    parser->registers_left--;
    size_t index = parser->body.registers.count;
    struct ptx_register *added = ptx_list_add(&parser->body.registers);
    if (added == NULL) {
        return ptx_fail_memory(parser);
    }
    *added = (struct ptx_register){name, type};
    return ptx_check_declared(parser, ptx_scopes_bind(&parser->scopes, name, PTX_IN_NONE, index),
                              name);
}

/* %r<23>: %r0 .. %r22 */
static bool add_range(struct ptx_parser *parser, const char *stem, uint64_t count,
                      enum ptx_type type) {
    char name[PTX_MAX_RANGE_NAME];
    if (count > parser->registers_left) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "more registers than the text can use");
    }
    for (uint64_t i = 0; i < count; i++) {
        int length = snprintf(name, sizeof name, "%s%llu", stem, (unsigned long long)i);
        if (length < 0 || (size_t)length >= sizeof name) {
            return ptx_fail(parser, STATUS_UNSUPPORTED, "the name of a register is too long");
        }
        char *kept = ptx_names_keep(&parser->names, name, (size_t)length);
        if (kept == NULL) {
            return ptx_fail_memory(parser);
        }
        if (!add_register(parser, kept, type)) {
            return false;
        }
    }
    return true;
}

static bool parse_name(struct ptx_parser *parser, enum ptx_type type) {
    char *name;
    bool range;
    uint64_t count;
    if (!ptx_read_name(parser, &name) || !ptx_skip_mark(parser, '<', &range)) {
        return false;
    }
    if (!range) {
        return add_register(parser, name, type);
    }
    return ptx_read_integer(parser, UINT32_MAX, &count) && ptx_expect_mark(parser, '>') &&
           add_range(parser, name, count, type);
}

bool ptx_parse_registers(struct ptx_parser *parser) {
    if (!ptx_advance(parser)) {
        return false;
    }
    struct ptx_token token = parser->token;
    if (ptx_at_word(parser, ".v2") || ptx_at_word(parser, ".v4")) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "registers that are vectors");
    }
    enum ptx_type type = token.kind == PTX_TOKEN_DOTTED
                             ? ptx_type_find(token.text + 1, token.length - 1)
                             : PTX_NO_TYPE;
    if (type == PTX_NO_TYPE) {
        return ptx_fail_expected(parser, "the type of a register");
    }
    bool more = true;
    if (!ptx_advance(parser)) {
        return false;
    }
    while (more) {
        if (!parse_name(parser, type) || !ptx_skip_mark(parser, ',', &more)) {
            return false;
        }
    }
    return ptx_expect_mark(parser, ';');
}

/* Statements of a function's body: scopes, declarations, labels, instructions. */
#include <string.h>

#include "common/simt/ptx/parser.h"

/* Directives before which nothing needs to be known: skipped up to the semicolon. */
static bool is_skipped(const struct ptx_parser *parser) {
    return ptx_at_word(parser, ".pragma") || ptx_at_word(parser, ".callprototype") ||
           ptx_at_word(parser, ".calltargets");
}

/* `A, B, ...;` behind `label: .branchtargets` */
static bool parse_targets(struct ptx_parser *parser, const char *table) {
    size_t first = parser->targets.count;
    bool more = true;
    while (more) {
        char *name;
        PTX_TRY(ptx_read_name(parser, &name) && ptx_skip_mark(parser, ',', &more));
        char **target = ptx_list_add(&parser->targets);
        if (target == NULL) {
            return ptx_fail_memory(parser);
        }
        *target = name;
    }
    struct ptx_label *label = ptx_scopes_label_here(&parser->scopes, table);
    label->has_table = true;
    label->first_target = first;
    label->target_count = parser->targets.count - first;
    return ptx_expect_mark(parser, ';');
}

static bool parse_label(struct ptx_parser *parser) {
    char *name;
    PTX_TRY(ptx_read_name(parser, &name) && ptx_expect_mark(parser, ':'));
    enum ptx_declared outcome =
        ptx_scopes_label(&parser->scopes, name, parser->body.instructions.count);
    PTX_TRY(ptx_check_declared(parser, outcome, name));
    return !ptx_at_word(parser, ".branchtargets") ||
           (ptx_advance(parser) && parse_targets(parser, name));
}

static bool parse_directive(struct ptx_parser *parser) {
    if (ptx_at_word(parser, ".reg")) {
        return ptx_parse_registers(parser);
    }
    if (ptx_at_space(parser)) {
        return ptx_parse_variables(parser, PTX_LINKAGE_LOCAL);
    }
    if (ptx_at_word(parser, ".extern")) {
        return ptx_advance(parser) && ptx_parse_variables(parser, PTX_LINKAGE_EXTERN);
    }
    if (ptx_at_word(parser, ".loc")) {
        return ptx_advance(parser) && ptx_parse_loc(parser);
    }
    return is_skipped(parser) ? ptx_skip_statement(parser)
                              : ptx_fail_expected(parser, "a directive of a function's body");
}

static bool open_scope(struct ptx_parser *parser) {
    if (parser->scopes.depth == PTX_MAX_DEPTH) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "braces more than %d deep", PTX_MAX_DEPTH);
    }
    return ptx_scopes_open(&parser->scopes) ? ptx_advance(parser) : ptx_fail_memory(parser);
}

static bool parse_statement(struct ptx_parser *parser) {
    if (parser->token.kind == PTX_TOKEN_DOTTED) {
        return parse_directive(parser);
    }
    if (parser->token.kind == PTX_TOKEN_NAME) {
        struct ptx_token next = ptx_peek(parser);
        return ptx_token_is_mark(&next, ':') ? parse_label(parser) : ptx_parse_instruction(parser);
    }
    if (ptx_at_mark(parser, '@')) {
        return ptx_parse_instruction(parser);
    }
    return ptx_at_mark(parser, ';') ? ptx_advance(parser)
                                    : ptx_fail_expected(parser, "a statement");
}

static bool parse_statements(struct ptx_parser *parser) {
    uint32_t outside = parser->scopes.depth;
    do {
        bool parsed;
        if (ptx_at_mark(parser, '{')) {
            parsed = open_scope(parser);
        } else if (ptx_at_mark(parser, '}')) {
            ptx_scopes_close(&parser->scopes);
            parsed = ptx_advance(parser);
        } else {
            parsed = parse_statement(parser);
        }
        if (!parsed) {
            return false;
        }
    } while (parser->scopes.depth > outside);
    return true;
}

/* The lists become the function's. */
static bool keep_body(struct ptx_parser *parser, struct ptx_function *function) {
    struct ptx_body *body = &parser->body;
    void *registers, *locals, *instructions;
    PTX_TRY(
        ptx_keep_list(parser, &body->registers, 0, &registers, &function->register_count) &&
        ptx_keep_list(parser, &body->locals, 0, &locals, &function->local_count) &&
        ptx_keep_list(parser, &body->instructions, 0, &instructions, &function->instruction_count));
    function->registers = registers;
    function->locals = locals;
    function->instructions = instructions;
    return true;
}

bool ptx_parse_body(struct ptx_parser *parser, struct ptx_function *function) {
    if (!ptx_at_mark(parser, '{')) {
        return ptx_fail_expected(parser, "'{'");
    }
    parser->body.location = NULL;
    parser->body.number++;
    return parse_statements(parser) && keep_body(parser, function) &&
           ptx_resolve_labels(parser, function);
}

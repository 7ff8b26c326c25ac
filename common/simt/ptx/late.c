/* Bodies of functions that are read when they are first asked for. */
#include "common/simt/ptx/parser.h"

/* What the parser has at the brace that opens a body, and what is declared before it. */
struct ptx_unread {
    struct ptx_lexer lexer;
    struct ptx_token token;
    size_t bindings, functions;
};

bool ptx_defer_body(struct ptx_parser *parser, struct ptx_function *function, bool *deferred) {
    struct ptx_lexer lexer = parser->lexer;
    *deferred = ptx_at_mark(parser, '{') && ptx_lexer_skip_body(&lexer);
    if (!*deferred) { /* reading it now says what is wrong */
        return true;
    }
    struct ptx_unread *unread = ptx_memory_take(parser->memory, 1, sizeof *unread);
    if (unread == NULL) {
        return ptx_fail_memory(parser);
    }
    *unread = (struct ptx_unread){parser->lexer, parser->token, parser->scopes.bindings.count,
                                  parser->functions.count};
    function->unread = unread;
    parser->lexer = lexer;
    return ptx_advance(parser);
}

/* What a body that was refused has left behind; another one may be good. */
static void forget_refused(struct ptx_parser *parser) {
    struct ptx_list *const lists[] = {
        &parser->body.registers, &parser->body.locals, &parser->body.instructions,
        &parser->parameters,     &parser->operands,    &parser->elements,
        &parser->relocations,
    };
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++) {
        lists[n]->count = 0;
    }
    while (parser->scopes.depth > 1) {
        ptx_scopes_close(&parser->scopes);
    }
    parser->status = STATUS_OK;
}

/* Puts the parser back to where the body begins. */
static void go_back(struct ptx_parser *parser, const struct ptx_unread *unread) {
    parser->lexer = unread->lexer;
    parser->token = unread->token;
    parser->scopes.visible = unread->bindings;
    parser->visible_functions = unread->functions;
}

/* The function and its aliases get the body. */
static void set_body(struct ptx_module *module, const struct ptx_unread *unread,
                     const struct ptx_function *whole) {
    for (size_t n = 0; n < module->function_count; n++) {
        struct ptx_function *function = &module->functions[n];
        if (function->unread == unread) {
            char *name = function->name;
            *function = *whole;
            function->name = name;
        }
    }
}

enum status ptx_read_body(struct ptx_module *module, const struct ptx_function *function,
                          struct error *error) {
    struct ptx_parser *parser = module->parser;
    const struct ptx_unread *unread = function->unread;
    struct ptx_function whole = *function;
    if (unread == NULL) {
        return STATUS_OK;
    }
    whole.unread = NULL;
    parser->error = error;
    go_back(parser, unread);
    if (ptx_define_function(parser, &whole)) {
        set_body(module, unread, &whole);
        return STATUS_OK;
    }
    enum status status = parser->status;
    forget_refused(parser);
    return status;
}

/* Bodies of functions that are read when they are first asked for. */
#include "common/simt/ptx/parser.h"

/* What the parser has at the brace that opens a body. */
struct ptx_unread {
    struct ptx_lexer lexer;
    struct ptx_token token;
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
    *unread = (struct ptx_unread){parser->lexer, parser->token};
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

enum status ptx_read_body(struct ptx_module *module, const struct ptx_function *function,
                          struct error *error) {
    struct ptx_parser *parser = module->parser;
    struct ptx_function whole = *function;
    if (function->unread == NULL) {
        return STATUS_OK;
    }
    whole.unread = NULL;
    parser->lexer = function->unread->lexer;
    parser->token = function->unread->token;
    parser->error = error;
    if (ptx_define_function(parser, &whole)) {
        module->functions[function - module->functions] = whole;
        return STATUS_OK;
    }
    enum status status = parser->status;
    forget_refused(parser);
    return status;
}

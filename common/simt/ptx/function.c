/* Functions: everything before the body. */
#include "common/base/checked.h"
#include "common/simt/ptx/parser.h"

/* Moves the scratch list of parameters to its place, each at its offset in the block. */
static bool place_parameters(struct ptx_parser *parser, struct ptx_variable **parameters,
                             size_t *count, size_t *bytes) {
    void *items;
    PTX_TRY(ptx_keep_list(parser, &parser->parameters, 0, &items, count));
    *parameters = items;
    *bytes = 0;
    for (size_t i = 0; i < *count; i++) {
        struct ptx_variable *parameter = &(*parameters)[i];
        parameter->offset = ceil_div(*bytes, parameter->alignment) * parameter->alignment;
        if (!checked_add(parameter->offset, parameter->bytes, bytes) ||
            *bytes > PTX_MAX_VARIABLE_BYTES) {
            return ptx_fail(parser, STATUS_BAD_FORMAT, "parameters larger than any memory");
        }
    }
    return true;
}

/* Binds the parameters' names in the scope at hand. */
static bool bind_parameters(struct ptx_parser *parser, const struct ptx_variable *parameters,
                            size_t count, enum ptx_table table) {
    for (size_t i = 0; i < count; i++) {
        const char *name = parameters[i].name;
        PTX_TRY(ptx_check_declared(parser, ptx_scopes_bind(&parser->scopes, name, table, i), name));
    }
    return true;
}

/* N [, N [, N]] */
static bool read_numbers(struct ptx_parser *parser, uint32_t *numbers, size_t limit) {
    bool more = true;
    for (size_t i = 0; more; i++) {
        uint64_t value;
        if (i == limit) {
            return ptx_fail(parser, STATUS_BAD_FORMAT, "more than %zu numbers", limit);
        }
        PTX_TRY(ptx_read_integer(parser, UINT32_MAX, &value) && ptx_skip_mark(parser, ',', &more));
        numbers[i] = (uint32_t)value;
    }
    return true;
}

/* One size stands for (size, 1, 1). */
static bool read_extent(struct ptx_parser *parser, uint32_t extent[3]) {
    extent[1] = extent[2] = 1;
    return read_numbers(parser, extent, 3);
}

/* A directive between the parameters and the body; the current token is behind the word. */
static bool parse_directive(struct ptx_parser *parser, const struct ptx_token *word,
                            struct ptx_function *function) {
    uint32_t ignored;
    if (ptx_token_is(word, ".maxntid")) {
        return read_extent(parser, function->max_threads);
    }
    if (ptx_token_is(word, ".reqntid")) {
        return read_extent(parser, function->required_threads);
    }
    if (ptx_token_is(word, ".reqnctapercluster")) {
        return read_extent(parser, function->cluster);
    }
    if (ptx_token_is(word, ".minnctapersm")) {
        return read_numbers(parser, &function->min_blocks, 1);
    }
    if (ptx_token_is(word, ".maxnreg")) {
        return read_numbers(parser, &function->max_registers, 1);
    }
    if (ptx_token_is(word, ".maxnctapersm") || ptx_token_is(word, ".maxclusterrank") ||
        ptx_token_is(word, ".abi_preserve") || ptx_token_is(word, ".abi_preserve_control")) {
        return read_numbers(parser, &ignored, 1);
    }
    if (ptx_token_is(word, ".explicitcluster") || ptx_token_is(word, ".blocksareclusters") ||
        ptx_token_is(word, ".noreturn") || ptx_token_is(word, ".unified")) {
        return true;
    }
    if (ptx_token_is(word, ".pragma")) {
        return ptx_skip_statement(parser);
    }
    return ptx_fail_at(parser, word->line, STATUS_UNSUPPORTED, "'%.*s' before a function's body",
                       (int)(word->length < 40 ? word->length : 40), word->text);
}

static bool parse_directives(struct ptx_parser *parser, struct ptx_function *function) {
    while (parser->token.kind == PTX_TOKEN_DOTTED) {
        struct ptx_token word = parser->token;
        PTX_TRY(ptx_advance(parser) && parse_directive(parser, &word, function));
    }
    return true;
}

/* (results) name (parameters) directives */
static bool parse_header(struct ptx_parser *parser, struct ptx_function *function) {
    size_t ignored;
    function->entry = ptx_at_word(parser, ".entry");
    PTX_TRY(ptx_advance(parser));
    if (!function->entry && ptx_at_mark(parser, '(') &&
        !(ptx_parse_parameters(parser) &&
          place_parameters(parser, &function->results, &function->result_count, &ignored))) {
        return false;
    }
    PTX_TRY(ptx_read_name(parser, &function->name));
    if (ptx_at_mark(parser, '(') &&
        !(ptx_parse_parameters(parser) &&
          place_parameters(parser, &function->parameters, &function->parameter_count,
                           &function->parameter_bytes))) {
        return false;
    }
    return parse_directives(parser, function);
}

/* Adds the function, or finds its declaration; functions call themselves, so before the body. */
static bool add_function(struct ptx_parser *parser, const struct ptx_function *function,
                         size_t *index) {
    uint64_t key = (uint64_t)(uintptr_t)function->name;
    const uint32_t *known = ptx_map_find(&parser->function_names, key, 0);
    if (known != NULL) {
        struct ptx_function *earlier = ptx_list_at(&parser->functions, *known);
        if (!earlier->external && !function->external) {
            return ptx_check_declared(parser, PTX_DECLARED_TWICE, function->name);
        }
        if (!function->external) {
            *earlier = *function;
        }
        *index = *known;
        return true;
    }
    *index = parser->functions.count;
    struct ptx_function *added = ptx_list_add(&parser->functions);
    if (added == NULL || !ptx_map_add(&parser->function_names, key, 0, (uint32_t)*index)) {
        return ptx_fail_memory(parser);
    }
    *added = *function;
    return true;
}

bool ptx_define_function(struct ptx_parser *parser, struct ptx_function *function) {
    if (!ptx_scopes_open(&parser->scopes)) {
        return ptx_fail_memory(parser);
    }
    PTX_TRY(bind_parameters(parser, function->results, function->result_count, PTX_IN_RESULTS) &&
            bind_parameters(parser, function->parameters, function->parameter_count,
                            PTX_IN_PARAMETERS) &&
            ptx_parse_body(parser, function));
    ptx_scopes_close(&parser->scopes);
    return true;
}

static bool define_or_defer(struct ptx_parser *parser, struct ptx_function *function) {
    bool deferred = false;
    PTX_TRY(!parser->late || ptx_defer_body(parser, function, &deferred));
    return deferred || ptx_define_function(parser, function);
}

bool ptx_parse_function(struct ptx_parser *parser, enum ptx_linkage linkage) {
    struct ptx_function function = {.linkage = linkage};
    size_t index;
    bool declared_only;
    PTX_TRY(parse_header(parser, &function) && ptx_skip_mark(parser, ';', &declared_only));
    function.external = declared_only;
    PTX_TRY(add_function(parser, &function, &index));
    if (declared_only) {
        return true;
    }
    PTX_TRY(define_or_defer(parser, &function));
    *(struct ptx_function *)ptx_list_at(&parser->functions, index) = function;
    return true;
}

bool ptx_parse_alias(struct ptx_parser *parser) {
    char *name, *aliasee;
    size_t index;
    PTX_TRY(ptx_read_name(parser, &name) && ptx_expect_mark(parser, ',') &&
            ptx_read_name(parser, &aliasee));
    const uint32_t *known = ptx_map_find(&parser->function_names, (uint64_t)(uintptr_t)aliasee, 0);
    const struct ptx_function *target =
        known != NULL ? ptx_list_at(&parser->functions, *known) : NULL;
    if (target == NULL || target->external) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "function '%.100s' is not defined", aliasee);
    }
    struct ptx_function copy = *target;
    copy.name = name;
    return add_function(parser, &copy, &index) && ptx_expect_mark(parser, ';');
}

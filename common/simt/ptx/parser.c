#include "common/simt/ptx/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool ptx_fail_at(struct ptx_parser *parser, uint32_t line, enum status status, const char *format,
                 ...) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "PTX line %u", (unsigned)line);
    va_list args;
    va_start(args, format);
    error_set_va(parser->error, status, format, args);
    va_end(args);
    parser->status = status;
    if (parser->error != NULL) {
        error_prefix(parser->error, status, prefix);
    }
    return false;
}

bool ptx_fail(struct ptx_parser *parser, enum status status, const char *format, ...) {
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return ptx_fail_at(parser, parser->token.line, status, "%s", message);
}

bool ptx_fail_memory(struct ptx_parser *parser) {
    return ptx_fail(parser, STATUS_OUT_OF_MEMORY, "out of memory");
}

/* The token as a message shows it: short, and ASCII only. */
static void show_token(const struct ptx_token *token, char *text, size_t size) {
    if (token->kind == PTX_TOKEN_END) {
        snprintf(text, size, "the end of the text");
        return;
    }
    size_t length = token->length < size - 3 ? token->length : size - 3;
    size_t used = 0;
    text[used++] = '\'';
    for (size_t i = 0; i < length; i++) {
        char c = token->text[i];
        text[used++] = c >= ' ' && c <= '~' ? c : '?';
    }
    text[used++] = '\'';
    text[used] = '\0';
}

bool ptx_fail_expected(struct ptx_parser *parser, const char *what) {
    char found[48];
    show_token(&parser->token, found, sizeof found);
    return ptx_fail(parser, STATUS_BAD_FORMAT, "expected %s, found %s", what, found);
}

bool ptx_advance(struct ptx_parser *parser) {
    parser->token = ptx_lexer_next(&parser->lexer);
    if (parser->token.kind == PTX_TOKEN_BAD) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "%s", parser->token.problem);
    }
    return true;
}

struct ptx_token ptx_peek(const struct ptx_parser *parser) {
    struct ptx_lexer lexer = parser->lexer;
    return ptx_lexer_next(&lexer);
}

bool ptx_at_mark(const struct ptx_parser *parser, char mark) {
    return ptx_token_is_mark(&parser->token, mark);
}

bool ptx_at_word(const struct ptx_parser *parser, const char *word) {
    return parser->token.kind == PTX_TOKEN_DOTTED && ptx_token_is(&parser->token, word);
}

bool ptx_skip_mark(struct ptx_parser *parser, char mark, bool *found) {
    *found = ptx_at_mark(parser, mark);
    return !*found || ptx_advance(parser);
}

bool ptx_expect_mark(struct ptx_parser *parser, char mark) {
    if (!ptx_at_mark(parser, mark)) {
        char what[4] = {'\'', mark, '\'', '\0'};
        return ptx_fail_expected(parser, what);
    }
    return ptx_advance(parser);
}

bool ptx_read_name(struct ptx_parser *parser, char **name) {
    if (parser->token.kind != PTX_TOKEN_NAME) {
        return ptx_fail_expected(parser, "a name");
    }
    *name = ptx_names_keep(&parser->names, parser->token.text, parser->token.length);
    return *name != NULL ? ptx_advance(parser) : ptx_fail_memory(parser);
}

bool ptx_read_integer(struct ptx_parser *parser, uint64_t limit, uint64_t *value) {
    struct ptx_number number;
    if (parser->token.kind != PTX_TOKEN_NUMBER ||
        !ptx_number_read(parser->token.text, parser->token.length, &number) ||
        number.type != PTX_IMMEDIATE_INTEGER) {
        return ptx_fail_expected(parser, "an integer");
    }
    if (number.bits > limit) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "%llu is more than %llu, the most allowed here",
                        (unsigned long long)number.bits, (unsigned long long)limit);
    }
    *value = number.bits;
    return ptx_advance(parser);
}

bool ptx_read_offset(struct ptx_parser *parser, int64_t *offset) {
    *offset = 0;
    while (ptx_at_mark(parser, '+') || ptx_at_mark(parser, '-')) {
        bool negative = false;
        while (ptx_at_mark(parser, '+') || ptx_at_mark(parser, '-')) {
            negative ^= ptx_at_mark(parser, '-');
            PTX_TRY(ptx_advance(parser));
        }
        uint64_t term;
        PTX_TRY(ptx_read_integer(parser, INT64_MAX, &term));
        int64_t signed_term = negative ? -(int64_t)term : (int64_t)term;
        if (__builtin_add_overflow(*offset, signed_term, offset)) {
            return ptx_fail(parser, STATUS_BAD_FORMAT, "an offset of more than 64 bits");
        }
    }
    return true;
}

bool ptx_skip_statement(struct ptx_parser *parser) {
    while (!ptx_at_mark(parser, ';')) {
        bool brace = ptx_at_mark(parser, '{') || ptx_at_mark(parser, '}');
        if (brace || parser->token.kind == PTX_TOKEN_END) {
            return ptx_fail_expected(parser, "';'");
        }
        PTX_TRY(ptx_advance(parser));
    }
    return ptx_advance(parser);
}

bool ptx_check_declared(struct ptx_parser *parser, enum ptx_declared outcome, const char *name) {
    if (outcome == PTX_DECLARED_TWICE) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "'%.100s' is declared twice", name);
    }
    return outcome == PTX_DECLARED || ptx_fail_memory(parser);
}

bool ptx_keep_list(struct ptx_parser *parser, struct ptx_list *list, size_t first, void **items,
                   size_t *count) {
    *items = ptx_list_move(list, first, parser->memory, count);
    return *items != NULL || *count == 0 || ptx_fail_memory(parser);
}

static bool setup(struct ptx_parser *parser, const char *text, size_t size) {
    parser->names.memory = parser->memory;
    parser->names.list.item_size = sizeof(char *);
    parser->lexer = (struct ptx_lexer){text, text + size, 1};
    parser->body.registers.item_size = sizeof(struct ptx_register);
    parser->body.locals.item_size = sizeof(struct ptx_variable);
    parser->body.instructions.item_size = sizeof(struct ptx_instruction);
    parser->variables.item_size = sizeof(struct ptx_variable);
    parser->functions.item_size = sizeof(struct ptx_function);
    parser->files.item_size = sizeof(char *);
    parser->targets.item_size = sizeof(char *);
    parser->locations.item_size = sizeof(const struct ptx_location *);
    parser->parameters.item_size = sizeof(struct ptx_variable);
    parser->operands.item_size = sizeof(struct ptx_operand);
    parser->elements.item_size = sizeof(struct ptx_operand);
    parser->relocations.item_size = sizeof(struct ptx_relocation);
    /* Every register takes at least one character to use. */
    parser->registers_left = size + PTX_SPARE_REGISTERS;
    parser->data_left = PTX_MAX_DATA_BYTES;
    parser->visible_functions = SIZE_MAX;
    parser->module = ptx_memory_take(parser->memory, 1, sizeof *parser->module);
    if (parser->module == NULL || !ptx_scopes_create(&parser->scopes)) {
        return ptx_fail_memory(parser);
    }
    parser->module->memory = parser->memory;
    return true;
}

static void free_lists(struct ptx_parser *parser) {
    struct ptx_list *lists[] = {
        &parser->body.registers, &parser->body.locals, &parser->body.instructions,
        &parser->variables,      &parser->functions,   &parser->files,
        &parser->targets,        &parser->locations,   &parser->parameters,
        &parser->operands,       &parser->elements,    &parser->relocations,
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ptx_list_free(lists[i]);
    }
    ptx_names_free(&parser->names);
    ptx_scopes_free(&parser->scopes);
    ptx_map_free(&parser->function_names);
    ptx_map_free(&parser->location_map);
}

static bool keep_module(struct ptx_parser *parser) {
    struct ptx_module *module = parser->module;
    void *variables, *functions, *files;
    PTX_TRY(ptx_keep_list(parser, &parser->variables, 0, &variables, &module->variable_count) &&
            ptx_keep_list(parser, &parser->functions, 0, &functions, &module->function_count) &&
            ptx_keep_list(parser, &parser->files, 0, &files, &module->file_count));
    module->variables = variables;
    module->functions = functions;
    module->files = files;
    return true;
}

static void free_parser(struct ptx_parser *parser) {
    free_lists(parser);
    free(parser);
}

static enum status parse(struct ptx_module **module, const char *text, size_t size, bool late,
                         struct error *error) {
    *module = NULL;
    if (size > UINT32_MAX / 2) {
        return error_set(error, STATUS_UNSUPPORTED, "PTX of %zu bytes is too long", size);
    }
    struct ptx_parser *parser = calloc(1, sizeof *parser);
    struct ptx_memory *memory = calloc(1, sizeof *memory);
    if (parser == NULL || memory == NULL) {
        free(parser);
        free(memory);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for PTX");
    }
    *parser = (struct ptx_parser){.error = error, .memory = memory, .late = late};
    if (setup(parser, text, size) && ptx_parse_module(parser) && keep_module(parser)) {
        *module = parser->module;
    } else {
        ptx_memory_free(memory);
        free(memory);
    }
    enum status status = parser->status;
    if (*module != NULL && late) {
        (*module)->parser = parser;
    } else {
        free_parser(parser);
    }
    return status;
}

enum status ptx_parse(struct ptx_module **module, const char *text, size_t size,
                      struct error *error) {
    return parse(module, text, size, false, error);
}

enum status ptx_parse_late(struct ptx_module **module, const char *text, size_t size,
                           struct error *error) {
    return parse(module, text, size, true, error);
}

void ptx_free(struct ptx_module *module) {
    if (module != NULL) {
        struct ptx_memory *memory = module->memory; /* holds the module itself */
        if (module->parser != NULL) {
            free_parser(module->parser);
        }
        free(module->text);
        ptx_memory_free(memory);
        free(memory);
    }
}

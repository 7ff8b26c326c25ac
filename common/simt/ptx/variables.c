/* Variables and parameters: `.global .align 4 .b8 a[4] = {...};`, `.param .u64 .ptr p`. */
#include <stdio.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/ptx/parser.h"

struct space_row {
    const char *word;
    enum ptx_space space;
};

static const struct space_row spaces[] = {
    {".const", PTX_CONST}, {".global", PTX_GLOBAL}, {".local", PTX_LOCAL},
    {".param", PTX_PARAM}, {".shared", PTX_SHARED},
};

static const struct space_row *find_space(const struct ptx_parser *parser) {
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (ptx_at_word(parser, spaces[i].word)) {
            return &spaces[i];
        }
    }
    return NULL;
}

bool ptx_at_space(const struct ptx_parser *parser) {
    return find_space(parser) != NULL;
}

/* What stands before the names: space, alignment, type. */
struct declaration {
    struct ptx_variable variable;
    size_t lanes; /* .v2, .v4: elements of each vector; else 1 */
};

/* (.managed), (.unified(1, 2)) */
static bool parse_attributes(struct ptx_parser *parser, struct ptx_variable *variable) {
    PTX_TRY(ptx_expect_mark(parser, '('));
    size_t depth = 1;
    while (depth > 0) {
        if (parser->token.kind == PTX_TOKEN_END) {
            return ptx_fail_expected(parser, "')'");
        }
        variable->managed |= ptx_at_word(parser, ".managed");
        depth += ptx_at_mark(parser, '(');
        depth -= ptx_at_mark(parser, ')');
        PTX_TRY(ptx_advance(parser));
    }
    return true;
}

static bool read_alignment(struct ptx_parser *parser, size_t *alignment) {
    uint64_t value;
    PTX_TRY(ptx_read_integer(parser, PTX_MAX_ALIGNMENT, &value));
    if (value == 0 || (value & (value - 1)) != 0) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "alignment %u is not a power of two",
                        (unsigned)value);
    }
    *alignment = value;
    return true;
}

/* .ptr [.space] [.align N]: the target of a pointer parameter; it is not used. */
static bool skip_pointee(struct ptx_parser *parser) {
    size_t alignment;
    if (ptx_at_space(parser) && !ptx_advance(parser)) {
        return false;
    }
    return !ptx_at_word(parser, ".align") ||
           (ptx_advance(parser) && read_alignment(parser, &alignment));
}

/* One word of a declaration; the current token is behind it. */
static bool parse_word(struct ptx_parser *parser, const struct ptx_token *word,
                       struct declaration *declaration) {
    struct ptx_variable *variable = &declaration->variable;
    if (ptx_token_is(word, ".align")) {
        return read_alignment(parser, &variable->alignment);
    }
    if (ptx_token_is(word, ".attribute")) {
        return parse_attributes(parser, variable);
    }
    if (ptx_token_is(word, ".ptr")) {
        return skip_pointee(parser);
    }
    if (ptx_token_is(word, ".v2") || ptx_token_is(word, ".v4")) {
        declaration->lanes = (size_t)(word->text[2] - '0');
        return true;
    }
    variable->type = ptx_type_find(word->text + 1, word->length - 1);
    if (ptx_type_size(variable->type) == 0) {
        return ptx_fail_at(parser, word->line, STATUS_UNSUPPORTED,
                           "a variable of type '%.*s' is not supported",
                           (int)(word->length < 32 ? word->length : 32), word->text);
    }
    return true;
}

/* Everything up to the first name. */
static bool parse_declaration(struct ptx_parser *parser, struct declaration *declaration) {
    const struct space_row *row = find_space(parser);
    if (row == NULL) {
        return ptx_fail_expected(parser, "a state space");
    }
    *declaration = (struct declaration){.variable.space = row->space, .lanes = 1};
    PTX_TRY(ptx_advance(parser));
    while (parser->token.kind == PTX_TOKEN_DOTTED) {
        struct ptx_token word = parser->token;
        PTX_TRY(ptx_advance(parser) && parse_word(parser, &word, declaration));
    }
    struct ptx_variable *variable = &declaration->variable;
    if (variable->type == PTX_NO_TYPE) {
        return ptx_fail_expected(parser, "a type");
    }
    if (variable->alignment == 0) {
        variable->alignment = ptx_type_size(variable->type) * declaration->lanes;
    }
    return true;
}

/* [4][8]; [] counts as 0. */
static bool read_extents(struct ptx_parser *parser, size_t *extents, size_t *dimensions) {
    while (ptx_at_mark(parser, '[')) {
        uint64_t extent = 0;
        if (*dimensions == PTX_MAX_DIMENSIONS) {
            return ptx_fail(parser, STATUS_UNSUPPORTED, "an array of more than %d dimensions",
                            PTX_MAX_DIMENSIONS);
        }
        PTX_TRY(ptx_advance(parser));
        if (!ptx_at_mark(parser, ']') &&
            !ptx_read_integer(parser, PTX_MAX_VARIABLE_BYTES, &extent)) {
            return false;
        }
        extents[(*dimensions)++] = extent;
        PTX_TRY(ptx_expect_mark(parser, ']'));
    }
    return true;
}

static bool set_size(struct ptx_parser *parser, struct ptx_variable *variable,
                     const size_t *extents, size_t dimensions) {
    variable->elements = 1;
    bool fits = true;
    for (size_t i = 0; i < dimensions; i++) {
        fits = fits && checked_multiply(variable->elements, extents[i], &variable->elements);
    }
    fits = fits &&
           checked_multiply(variable->elements, ptx_type_size(variable->type), &variable->bytes);
    if (!fits || variable->bytes > PTX_MAX_VARIABLE_BYTES) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "'%.100s' is larger than any memory",
                        variable->name);
    }
    return true;
}

/* Name, extents and initial value of one variable; extents of a vector include its lanes. */
static bool parse_one(struct ptx_parser *parser, const struct declaration *declaration,
                      struct ptx_variable *variable) {
    size_t extents[PTX_MAX_DIMENSIONS + 1];
    size_t dimensions = 0;
    bool initialised;
    *variable = declaration->variable;
    PTX_TRY(ptx_read_name(parser, &variable->name) && read_extents(parser, extents, &dimensions));
    if (declaration->lanes > 1) {
        extents[dimensions++] = declaration->lanes;
    }
    PTX_TRY(set_size(parser, variable, extents, dimensions) &&
            ptx_skip_mark(parser, '=', &initialised));
    if (!initialised) {
        return true;
    }
    if (variable->space != PTX_GLOBAL && variable->space != PTX_CONST) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "'%.100s' cannot have an initial value",
                        variable->name);
    }
    return ptx_parse_initialiser(parser, variable, extents, dimensions);
}

/* Where a variable of this place and space is kept. */
static struct ptx_list *home_of(struct ptx_parser *parser, enum ptx_space space,
                                enum ptx_table *table) {
    bool in_body = parser->scopes.depth > 1;
    bool local = in_body && space != PTX_GLOBAL && space != PTX_CONST;
    *table = local ? PTX_IN_LOCALS : PTX_IN_MODULE;
    return local ? &parser->body.locals : &parser->variables;
}

static bool add_variable(struct ptx_parser *parser, const struct ptx_variable *variable) {
    enum ptx_table table;
    struct ptx_list *home = home_of(parser, variable->space, &table);
    size_t index = home->count;
    struct ptx_variable *added = ptx_list_add(home);
    if (added == NULL) {
        return ptx_fail_memory(parser);
    }
    *added = *variable;
    return ptx_check_declared(
        parser, ptx_scopes_bind(&parser->scopes, variable->name, table, index), variable->name);
}

/* An array without extent gets its size from outside: from the launch, or from another module. */
static bool check_extent(struct ptx_parser *parser, const struct ptx_variable *variable) {
    return variable->elements > 0 || variable->external ||
           ptx_fail(parser, STATUS_BAD_FORMAT, "'%.100s' has no size", variable->name);
}

bool ptx_parse_variables(struct ptx_parser *parser, enum ptx_linkage linkage) {
    struct declaration declaration;
    PTX_TRY(parse_declaration(parser, &declaration));
    declaration.variable.external = linkage == PTX_LINKAGE_EXTERN;
    declaration.variable.linkage = linkage;
    bool more = true;
    while (more) {
        struct ptx_variable variable;
        PTX_TRY(parse_one(parser, &declaration, &variable) && check_extent(parser, &variable) &&
                add_variable(parser, &variable) && ptx_skip_mark(parser, ',', &more));
    }
    return ptx_expect_mark(parser, ';');
}

static bool parse_parameter(struct ptx_parser *parser) {
    struct declaration declaration;
    struct ptx_variable variable;
    if (!ptx_at_word(parser, ".param")) {
        return ptx_at_word(parser, ".reg")
                   ? ptx_fail(parser, STATUS_UNSUPPORTED, "parameters in registers")
                   : ptx_fail_expected(parser, "'.param'");
    }
    PTX_TRY(parse_declaration(parser, &declaration) && parse_one(parser, &declaration, &variable));
    struct ptx_variable *added = ptx_list_add(&parser->parameters);
    if (added == NULL) {
        return ptx_fail_memory(parser);
    }
    *added = variable;
    return true;
}

bool ptx_parse_parameters(struct ptx_parser *parser) {
    bool more;
    parser->parameters.count = 0;
    PTX_TRY(ptx_expect_mark(parser, '('));
    if (ptx_at_mark(parser, ')')) {
        return ptx_advance(parser);
    }
    do {
        PTX_TRY(parse_parameter(parser) && ptx_skip_mark(parser, ',', &more));
    } while (more);
    return ptx_expect_mark(parser, ')');
}

/* Declarations of registers. */

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
    *added = (struct ptx_register){.name = name, .type = type};
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
        PTX_TRY(add_register(parser, kept, type));
    }
    return true;
}

/* .v2 and .v4: registers side by side, of which the first one has the name. */
static bool add_vector(struct ptx_parser *parser, char *name, enum ptx_type type, uint32_t count) {
    size_t first = parser->body.registers.count;
    PTX_TRY(add_register(parser, name, type));
    for (uint32_t n = 1; n < count; n++) {
        struct ptx_register *added = ptx_list_add(&parser->body.registers);
        if (added == NULL) {
            return ptx_fail_memory(parser);
        }
        *added = (struct ptx_register){.name = name, .type = type};
    }
    struct ptx_register *named = ptx_list_at(&parser->body.registers, first);
    named->vector = count;
    return true;
}

/* @param vector elements of each register; 0: it is none */
static bool parse_name(struct ptx_parser *parser, enum ptx_type type, uint32_t vector) {
    char *name;
    bool range;
    uint64_t count;
    PTX_TRY(ptx_read_name(parser, &name) && ptx_skip_mark(parser, '<', &range));
    if (!range) {
        return vector > 0 ? add_vector(parser, name, type, vector)
                          : add_register(parser, name, type);
    }
    if (vector > 0) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "a range of registers that are vectors");
    }
    return ptx_read_integer(parser, UINT32_MAX, &count) && ptx_expect_mark(parser, '>') &&
           add_range(parser, name, count, type);
}

bool ptx_parse_registers(struct ptx_parser *parser) {
    PTX_TRY(ptx_advance(parser));
    uint32_t vector = ptx_at_word(parser, ".v2") ? 2 : ptx_at_word(parser, ".v4") ? 4 : 0;
    PTX_TRY(vector == 0 || ptx_advance(parser));
    struct ptx_token token = parser->token;
    enum ptx_type type = token.kind == PTX_TOKEN_DOTTED
                             ? ptx_type_find(token.text + 1, token.length - 1)
                             : PTX_NO_TYPE;
    if (type == PTX_NO_TYPE) {
        return ptx_fail_expected(parser, "the type of a register");
    }
    bool more = true;
    PTX_TRY(ptx_advance(parser));
    while (more) {
        PTX_TRY(parse_name(parser, type, vector) && ptx_skip_mark(parser, ',', &more));
    }
    return ptx_expect_mark(parser, ';');
}

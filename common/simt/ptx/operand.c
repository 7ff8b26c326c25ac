/* Operands: registers, immediates, special registers, symbols, addresses, vectors, pairs. */
#include <string.h>

#include "common/simt/ptx/parser.h"

/* Special registers without what follows a dot or a number: "envreg" stands for envreg0 .. 31. */
static const char *const specials[] = {
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "laneid",
    "warpid",
    "nwarpid",
    "smid",
    "nsmid",
    "gridid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
    "cluster_ctarank",
    "cluster_nctarank",
    "is_explicit_cluster",
    "lanemask_eq",
    "lanemask_le",
    "lanemask_lt",
    "lanemask_ge",
    "lanemask_gt",
    "clock",
    "clock_hi",
    "globaltimer",
    "globaltimer_lo",
    "globaltimer_hi",
    "total_smem_size",
    "aggr_smem_size",
    "dynamic_smem_size",
    "current_graph_exec",
    "reserved_smem_offset_begin",
    "reserved_smem_offset_end",
    "reserved_smem_offset_cap",
    "reserved_smem_offset_",
    "envreg",
    "pm",
};

/* name: behind the %; a number may follow the names above. */
static bool is_special(const char *name) {
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') {
        length--;
    }
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        if (strlen(specials[i]) == length && memcmp(specials[i], name, length) == 0) {
            return true;
        }
    }
    return strcmp(name, "clock64") == 0 || strcmp(name, "pm0_64") == 0;
}

/* "tid" and ".x": the name with the part behind the dot, if there is one. */
static bool read_special(struct ptx_parser *parser, const char *name, struct ptx_operand *operand) {
    char whole[PTX_MAX_OPCODE];
    size_t length = strlen(name);
    operand->kind = PTX_OPERAND_SPECIAL;
    if (length + parser->token.length > sizeof whole) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "the name of a special register is too long");
    }
    memcpy(whole, name, length);
    if (parser->token.kind == PTX_TOKEN_DOTTED) {
        memcpy(whole + length, parser->token.text, parser->token.length);
        length += parser->token.length;
        PTX_TRY(ptx_advance(parser));
    }
    operand->special = ptx_names_keep(&parser->names, whole, length);
    return operand->special != NULL || ptx_fail_memory(parser);
}

/* Adds an element to the scratch list; its address holds until the next one is added. */
static bool add_element(struct ptx_parser *parser, const struct ptx_operand *element) {
    if (parser->elements.count == PTX_MAX_ELEMENTS) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "a vector of more than %d elements",
                        PTX_MAX_ELEMENTS);
    }
    struct ptx_operand *added = ptx_list_add(&parser->elements);
    if (added == NULL) {
        return ptx_fail_memory(parser);
    }
    *added = *element;
    return true;
}

/* The elements from `first` on become the operand's. */
static bool keep_elements(struct ptx_parser *parser, size_t first, struct ptx_operand *operand) {
    void *elements;
    PTX_TRY(ptx_keep_list(parser, &parser->elements, first, &elements, &operand->element_count));
    operand->elements = elements;
    return true;
}

/* v.x, v.r: an element; @return its number, or `count`: that is none */
static uint32_t element_of(const struct ptx_token *part, uint32_t count) {
    static const char letters[] = "xyzwrgba";
    const char *found = part->length == 2 ? strchr(letters, part->text[1]) : NULL;
    uint32_t number = found != NULL ? (uint32_t)(found - letters) % 4 : count;
    return number < count ? number : count;
}

/* A register that is a vector: one of its elements, or all of them. */
static bool read_vector_register(struct ptx_parser *parser, uint32_t index, uint32_t count,
                                 struct ptx_operand *operand) {
    size_t first = parser->elements.count;
    operand->index = index;
    if (parser->token.kind == PTX_TOKEN_DOTTED) {
        uint32_t number = element_of(&parser->token, count);
        operand->index += number;
        return number < count ? ptx_advance(parser)
                              : ptx_fail_expected(parser, "an element of a vector");
    }
    operand->kind = PTX_OPERAND_VECTOR;
    for (uint32_t n = 0; n < count; n++) {
        const struct ptx_operand element = {.kind = PTX_OPERAND_REGISTER, .index = index + n};
        PTX_TRY(add_element(parser, &element));
    }
    return keep_elements(parser, first, operand);
}

/* %r1, or a part of it: %r1.b0, %r1.h1 */
static bool read_register(struct ptx_parser *parser, const struct ptx_binding *binding,
                          struct ptx_operand *operand) {
    const struct ptx_register *named = ptx_list_at(&parser->body.registers, binding->index);
    operand->kind = PTX_OPERAND_REGISTER;
    operand->index = binding->index;
    if (named->vector > 0) {
        return read_vector_register(parser, binding->index, named->vector, operand);
    }
    if (parser->token.kind != PTX_TOKEN_DOTTED) {
        return true;
    }
    const struct ptx_token *part = &parser->token;
    if (part->length != 3 || (part->text[1] != 'b' && part->text[1] != 'h')) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "a part of a register that is neither b nor h");
    }
    operand->special = ptx_names_keep(&parser->names, part->text + 1, part->length - 1);
    return operand->special != NULL ? ptx_advance(parser) : ptx_fail_memory(parser);
}

static bool read_variable(struct ptx_parser *parser, char *name, const struct ptx_binding *binding,
                          struct ptx_operand *operand) {
    operand->kind = PTX_OPERAND_SYMBOL;
    operand->symbol = name;
    operand->table = binding->table;
    operand->variable = binding->index;
    return ptx_read_offset(parser, &operand->offset);
}

static bool read_named(struct ptx_parser *parser, struct ptx_operand *operand) {
    char *name;
    PTX_TRY(ptx_read_name(parser, &name));
    const struct ptx_binding *binding = ptx_scopes_find(&parser->scopes, name);
    if (binding != NULL) {
        return binding->table == PTX_IN_NONE ? read_register(parser, binding, operand)
                                             : read_variable(parser, name, binding, operand);
    }
    if (strcmp(name, "_") == 0) {
        operand->kind = PTX_OPERAND_DISCARD;
        return true;
    }
    if (strcmp(name, "WARP_SZ") == 0) {
        return read_special(parser, name, operand);
    }
    if (name[0] == '%') {
        return is_special(name + 1)
                   ? read_special(parser, name + 1, operand)
                   : ptx_fail(parser, STATUS_BAD_FORMAT, "register '%.100s' is not declared", name);
    }
    operand->kind = PTX_OPERAND_LABEL; /* or a function: see ptx_resolve_labels() */
    operand->symbol = name;
    operand->index = ptx_scopes_current(&parser->scopes);
    return true;
}

static bool read_immediate(struct ptx_parser *parser, struct ptx_operand *operand) {
    struct ptx_number number;
    if (!ptx_number_read(parser->token.text, parser->token.length, &number)) {
        return ptx_fail_expected(parser, "a number of at most 64 bits");
    }
    operand->kind = PTX_OPERAND_IMMEDIATE;
    operand->bits = number.bits;
    operand->immediate_type = number.type;
    return ptx_advance(parser);
}

/* What a sign does to the operand behind it. */
static bool apply_sign(struct ptx_parser *parser, char sign, struct ptx_operand *operand) {
    if (operand->kind == PTX_OPERAND_REGISTER && (sign == '!' || sign == '-')) {
        operand->negated = true;
        return true;
    }
    struct ptx_number number = {operand->bits, operand->immediate_type};
    if (operand->kind != PTX_OPERAND_IMMEDIATE ||
        (sign != '-' && number.type != PTX_IMMEDIATE_INTEGER)) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "'%c' before what it does not apply to", sign);
    }
    operand->bits = sign == '-'   ? ptx_number_negate(number).bits
                    : sign == '~' ? ~number.bits
                                  : number.bits == 0;
    return true;
}

bool ptx_parse_simple(struct ptx_parser *parser, struct ptx_operand *operand) {
    char sign = '\0';
    if (ptx_at_mark(parser, '!') || ptx_at_mark(parser, '-') || ptx_at_mark(parser, '~')) {
        sign = *parser->token.text;
        PTX_TRY(ptx_advance(parser));
    }
    bool read;
    if (parser->token.kind == PTX_TOKEN_NUMBER) {
        read = read_immediate(parser, operand);
    } else if (parser->token.kind == PTX_TOKEN_NAME) {
        read = read_named(parser, operand);
    } else {
        read = ptx_fail_expected(parser, "an operand");
    }
    return read && (sign == '\0' || apply_sign(parser, sign, operand));
}

bool ptx_parse_elements(struct ptx_parser *parser, char close, struct ptx_operand *operand) {
    size_t first = parser->elements.count;
    bool more = !ptx_at_mark(parser, close);
    operand->kind = PTX_OPERAND_VECTOR;
    while (more) {
        struct ptx_operand element = {0};
        PTX_TRY(ptx_parse_simple(parser, &element) && add_element(parser, &element) &&
                ptx_skip_mark(parser, ',', &more));
    }
    return ptx_expect_mark(parser, close) && keep_elements(parser, first, operand);
}

static bool parse_vector(struct ptx_parser *parser, struct ptx_operand *operand) {
    return ptx_advance(parser) && ptx_parse_elements(parser, '}', operand);
}

/* What follows commas inside the brackets: [tensor, {x, y}]. */
static bool parse_coordinates(struct ptx_parser *parser, struct ptx_operand *operand) {
    size_t first = parser->elements.count;
    bool more = true;
    while (more) {
        struct ptx_operand element = {0};
        bool parsed = ptx_at_mark(parser, '{') ? parse_vector(parser, &element)
                                               : ptx_parse_simple(parser, &element);
        if (!parsed || !add_element(parser, &element) || !ptx_skip_mark(parser, ',', &more)) {
            return false;
        }
    }
    return keep_elements(parser, first, operand);
}

/* The base has been read as an operand of its own: makes an address of it. */
static bool read_base(struct ptx_parser *parser, struct ptx_operand *operand) {
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        operand->has_register = true;
        break;
    case PTX_OPERAND_IMMEDIATE:
        operand->offset = (int64_t)operand->bits;
        operand->bits = 0;
        break;
    case PTX_OPERAND_SYMBOL:
        break;
    case PTX_OPERAND_LABEL:
        return ptx_fail(parser, STATUS_BAD_FORMAT, "'%.100s' is not declared", operand->symbol);
    default:
        return ptx_fail(parser, STATUS_BAD_FORMAT,
                        "an address that is neither register nor symbol");
    }
    int64_t offset;
    if (operand->negated || operand->special != NULL) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "an address cannot be computed from this");
    }
    PTX_TRY(ptx_read_offset(parser, &offset));
    operand->kind = PTX_OPERAND_ADDRESS;
    operand->offset = (int64_t)((uint64_t)operand->offset + (uint64_t)offset);
    return true;
}

static bool parse_address(struct ptx_parser *parser, struct ptx_operand *operand) {
    bool more;
    PTX_TRY(ptx_advance(parser) && ptx_parse_simple(parser, operand) &&
            read_base(parser, operand) && ptx_skip_mark(parser, ',', &more));
    return (!more || parse_coordinates(parser, operand)) && ptx_expect_mark(parser, ']');
}

/* d|p, or only d */
static bool parse_pair(struct ptx_parser *parser, struct ptx_operand *operand) {
    size_t first = parser->elements.count;
    struct ptx_operand second = {0};
    bool pair;
    PTX_TRY(ptx_parse_simple(parser, operand) && ptx_skip_mark(parser, '|', &pair));
    if (!pair) {
        return true;
    }
    PTX_TRY(add_element(parser, operand) && ptx_parse_simple(parser, &second) &&
            add_element(parser, &second));
    *operand = (struct ptx_operand){.kind = PTX_OPERAND_PAIR};
    return keep_elements(parser, first, operand);
}

bool ptx_parse_operand(struct ptx_parser *parser, struct ptx_operand *operand) {
    if (ptx_at_mark(parser, '[')) {
        return parse_address(parser, operand);
    }
    if (ptx_at_mark(parser, '{')) {
        return parse_vector(parser, operand);
    }
    return parse_pair(parser, operand);
}

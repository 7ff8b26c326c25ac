/* Initial values of variables: numbers, and addresses that are known only when the module is
 * loaded. */
#include <string.h>

#include "common/simt/ptx/parser.h"

enum { ADDRESS_BYTES = 8 };

/*
 * Where the next value goes. An address in an array of bytes is written as
 * eight values, 0xFF(symbol), 0xFF00(symbol), ...: `byte` of them are there.
 */
struct writer {
    struct ptx_variable *variable;
    size_t position; /* in elements */
    size_t byte;
};

static size_t offset_of(const struct writer *writer) {
    return writer->position * ptx_type_size(writer->variable->type);
}

/* Takes the place of the next value; false when the variable is full. */
static bool check_room(struct ptx_parser *parser, const struct writer *writer) {
    return writer->position < writer->variable->elements ||
           ptx_fail(parser, STATUS_BAD_FORMAT, "'%.100s' has %zu elements and more values",
                    writer->variable->name, writer->variable->elements);
}

/* symbol + N, or generic(symbol) + N. */
static bool read_address(struct ptx_parser *parser, struct ptx_relocation *relocation) {
    relocation->generic = ptx_token_is(&parser->token, "generic");
    if (relocation->generic && (!ptx_advance(parser) || !ptx_expect_mark(parser, '('))) {
        return false;
    }
    PTX_TRY(ptx_read_name(parser, &relocation->symbol));
    if (relocation->generic && !ptx_expect_mark(parser, ')')) {
        return false;
    }
    return ptx_read_offset(parser, &relocation->addend);
}

static bool add_relocation(struct ptx_parser *parser, const struct ptx_relocation *relocation) {
    struct ptx_relocation *added = ptx_list_add(&parser->relocations);
    if (added == NULL) {
        return ptx_fail_memory(parser);
    }
    *added = *relocation;
    return true;
}

static bool store_address(struct ptx_parser *parser, struct writer *writer) {
    struct ptx_relocation relocation = {.offset = offset_of(writer)};
    if (ptx_type_size(writer->variable->type) != ADDRESS_BYTES) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "'%.100s' holds addresses of %zu bytes, not %d",
                        writer->variable->name, ptx_type_size(writer->variable->type),
                        ADDRESS_BYTES);
    }
    return read_address(parser, &relocation) && add_relocation(parser, &relocation);
}

/* Does this byte continue the address whose first bytes have been read? */
static bool continues(struct ptx_parser *parser, const struct writer *writer,
                      const struct ptx_relocation *relocation) {
    const struct ptx_relocation *last =
        ptx_list_at(&parser->relocations, parser->relocations.count - 1);
    return last->offset + writer->byte == relocation->offset &&
           last->symbol == relocation->symbol && last->addend == relocation->addend &&
           last->generic == relocation->generic;
}

/* (symbol + N) behind the mask 0xFF << 8 * byte. */
static bool store_address_byte(struct ptx_parser *parser, struct writer *writer, uint64_t mask) {
    struct ptx_relocation relocation = {.offset = offset_of(writer)};
    PTX_TRY(ptx_expect_mark(parser, '(') && read_address(parser, &relocation) &&
            ptx_expect_mark(parser, ')'));
    if (ptx_type_size(writer->variable->type) != 1 ||
        mask != UINT64_C(0xff) << (8 * writer->byte) ||
        (writer->byte > 0 && !continues(parser, writer, &relocation))) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "'%.100s' holds parts of addresses",
                        writer->variable->name);
    }
    if (writer->byte == 0 && !add_relocation(parser, &relocation)) {
        return false;
    }
    writer->byte = (writer->byte + 1) % ADDRESS_BYTES;
    return true;
}

/* An address that began must be complete before anything else comes. */
static bool check_complete(struct ptx_parser *parser, const struct writer *writer) {
    return writer->byte == 0 ||
           ptx_fail(parser, STATUS_UNSUPPORTED, "'%.100s' holds parts of addresses",
                    writer->variable->name);
}

static bool store_number(struct ptx_parser *parser, struct writer *writer) {
    bool negative;
    struct ptx_number number;
    PTX_TRY(ptx_skip_mark(parser, '-', &negative));
    if (parser->token.kind != PTX_TOKEN_NUMBER ||
        !ptx_number_read(parser->token.text, parser->token.length, &number)) {
        return ptx_fail_expected(parser, "a number");
    }
    PTX_TRY(ptx_advance(parser));
    if (ptx_at_mark(parser, '(')) {
        return store_address_byte(parser, writer, number.bits);
    }
    if (!ptx_number_fits(number, writer->variable->type)) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "an initial value that '%.100s' cannot hold",
                        writer->variable->name);
    }
    number = negative ? ptx_number_negate(number) : number;
    ptx_number_store(number, writer->variable->type, writer->variable->data + offset_of(writer));
    return check_complete(parser, writer);
}

static bool store_value(struct ptx_parser *parser, struct writer *writer) {
    PTX_TRY(check_room(parser, writer));
    bool stored = parser->token.kind == PTX_TOKEN_NAME
                      ? check_complete(parser, writer) && store_address(parser, writer)
                      : store_number(parser, writer);
    writer->position++;
    return stored;
}

/* Behind the brace that closes a row: what the row does not name are zeros. */
static bool close_row(struct ptx_parser *parser, struct writer *writer, size_t begin, size_t row) {
    if (writer->position > begin + row) {
        return ptx_fail(parser, STATUS_BAD_FORMAT, "a row has more values than elements");
    }
    writer->position = begin + row;
    return check_complete(parser, writer) && ptx_advance(parser);
}

/* Braces, one inside the other for each dimension; rows[i] elements are in those of depth i. */
static bool store_list(struct ptx_parser *parser, struct writer *writer, const size_t *rows,
                       size_t dimensions) {
    size_t begins[PTX_MAX_DIMENSIONS + 1];
    size_t depth = 0;
    bool expected = true; /* a value or a brace that opens */
    do {
        if (ptx_at_mark(parser, '}')) {
            depth--;
            PTX_TRY(close_row(parser, writer, begins[depth], rows[depth]));
            expected = false;
        } else if (!expected) {
            return ptx_fail_expected(parser, "',' or '}'");
        } else if (ptx_at_mark(parser, '{') && depth < dimensions) {
            begins[depth++] = writer->position;
            PTX_TRY(ptx_advance(parser));
            continue;
        } else if (!store_value(parser, writer)) {
            return false;
        }
        if (depth > 0 && !ptx_skip_mark(parser, ',', &expected)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

static bool take_data(struct ptx_parser *parser, struct ptx_variable *variable) {
    if (variable->bytes > parser->data_left) {
        return ptx_fail(parser, STATUS_UNSUPPORTED, "more than %zu bytes of initial values",
                        PTX_MAX_DATA_BYTES);
    }
    parser->data_left -= variable->bytes;
    variable->data = ptx_memory_take(parser->memory, variable->bytes, 1);
    return variable->data != NULL || ptx_fail_memory(parser);
}

static bool store_array(struct ptx_parser *parser, struct writer *writer, const size_t *extents,
                        size_t dimensions) {
    size_t rows[PTX_MAX_DIMENSIONS + 1];
    size_t row = 1;
    for (size_t i = dimensions; i > 0; i--) {
        row *= extents[i - 1]; /* no more than the elements, which are counted already */
        rows[i - 1] = row;
    }
    return ptx_at_mark(parser, '{') ? store_list(parser, writer, rows, dimensions)
                                    : ptx_fail_expected(parser, "'{'");
}

bool ptx_parse_initialiser(struct ptx_parser *parser, struct ptx_variable *variable,
                           const size_t *extents, size_t dimensions) {
    struct writer writer = {variable, 0, 0};
    parser->relocations.count = 0;
    PTX_TRY(take_data(parser, variable));
    bool stored = dimensions > 0 ? store_array(parser, &writer, extents, dimensions)
                                 : store_value(parser, &writer) && check_complete(parser, &writer);
    void *relocations;
    if (!stored || !ptx_keep_list(parser, &parser->relocations, 0, &relocations,
                                  &variable->relocation_count)) {
        return false;
    }
    variable->relocations = relocations;
    return true;
}

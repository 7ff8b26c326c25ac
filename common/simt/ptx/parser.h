/**
 * @file parser.h
 * @brief State of the parser, and the parts it is made of.
 *
 * A parsing function reads from the current token on and leaves the current
 * token behind what it has read. It returns false after it has recorded an
 * error; nothing is read after that. What it builds belongs to the module's
 * memory or to a list of the parser, so nobody cleans up on the way out.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_PARSER_H_
#define WARPBOOK_COMMON_SIMT_PTX_PARSER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/ptx/map.h"
#include "common/simt/ptx/memory.h"
#include "common/simt/ptx/ptx.h"
#include "common/simt/ptx/scope.h"

/* Cuts PTX text into tokens. */

enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_NAME,   /**< ld, %r1, $L__BB0_2, _ */
    PTX_TOKEN_DOTTED, /**< .global, .v4, .L1::no_allocate; the dot is part of the text */
    PTX_TOKEN_NUMBER, /**< not checked yet, see ptx_number_read() */
    PTX_TOKEN_STRING, /**< the text between the quotes */
    PTX_TOKEN_MARK,   /**< one character of punctuation */
    PTX_TOKEN_BAD     /**< `problem` describes the error */
};

struct ptx_token {
    enum ptx_token_kind kind;
    const char *text; /**< inside the PTX text, not NUL-terminated */
    size_t length;
    uint32_t line; /**< from 1 */
    const char *problem;
};

/** Position of the reader; a copy restores it. */
struct ptx_lexer {
    const char *at, *end;
    uint32_t line;
};

/** @return the next token; PTX_TOKEN_END again and again at the end. */
struct ptx_token ptx_lexer_next(struct ptx_lexer *lexer);

/**
 * @brief Steps over the rest of a body, with the brace that closes it.
 * @return false: it does not end, or declares something of the module; where the lexer stands then
 *         is not said
 */
bool ptx_lexer_skip_body(struct ptx_lexer *lexer);

/** @return true when the token is the punctuation character @p mark. */
bool ptx_token_is_mark(const struct ptx_token *token, char mark);

/** @return true when the token's text is @p text. */
bool ptx_token_is(const struct ptx_token *token, const char *text);

enum {
    PTX_MAX_OPERANDS = 64,       /* of one instruction */
    PTX_MAX_ELEMENTS = 1024,     /* of one vector or argument list */
    PTX_MAX_OPCODE = 256,        /* characters */
    PTX_MAX_RANGE_NAME = 256,    /* characters of %r<23> */
    PTX_MAX_DIMENSIONS = 8,      /* of an array */
    PTX_MAX_ALIGNMENT = 1 << 16, /* bytes */
    PTX_MAX_FILE = 1 << 16,      /* number in .file */
    PTX_SPARE_REGISTERS = 1 << 16
};

/** Most bytes of one variable, and of all initial values together. */
#define PTX_MAX_VARIABLE_BYTES ((size_t)1 << 40)
#define PTX_MAX_DATA_BYTES ((size_t)1 << 28)

/** The function whose body is being read. */
struct ptx_body {
    struct ptx_list registers;    /**< of struct ptx_register */
    struct ptx_list locals;       /**< of struct ptx_variable */
    struct ptx_list instructions; /**< of struct ptx_instruction */
    const struct ptx_location *location;
    uint32_t number; /**< sets the places of one function apart from another's */
};

struct ptx_parser {
    struct ptx_memory *memory; /**< becomes the module's */
    struct ptx_module *module;
    struct ptx_names names;
    struct ptx_lexer lexer;
    struct ptx_token token; /**< the current one */
    struct ptx_scopes scopes;
    struct ptx_body body;
    struct ptx_list variables;        /**< of struct ptx_variable: the module's */
    struct ptx_list functions;        /**< of struct ptx_function */
    struct ptx_map function_names;    /**< name -> index in functions */
    struct ptx_list files;            /**< of char * */
    struct ptx_list targets;          /**< of char *: labels of all branch tables */
    struct ptx_list locations;        /**< of const struct ptx_location * */
    struct ptx_map location_map;      /**< place -> index in locations */
    struct ptx_list parameters;       /**< scratch, of struct ptx_variable */
    struct ptx_list operands;         /**< scratch, of struct ptx_operand */
    struct ptx_list elements;         /**< scratch, of struct ptx_operand */
    struct ptx_list relocations;      /**< scratch, of struct ptx_relocation */
    size_t registers_left, data_left; /**< how many more the module may have */
    size_t visible_functions;         /**< how many the body at hand can call */
    bool late;                        /**< bodies are read when they are asked for */
    struct error *error;
    enum status status;
};

/** Ends a parsing function with false when a step of it has failed. */
#define PTX_TRY(step)     \
    do {                  \
        if (!(step)) {    \
            return false; \
        }                 \
    } while (0)

/* parser.c: tokens, errors */

/** Records "PTX line N: ..." for the line of the current token. @return false */
bool ptx_fail(struct ptx_parser *parser, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** As ptx_fail(), for a line read earlier. */
bool ptx_fail_at(struct ptx_parser *parser, uint32_t line, enum status status, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/** Records "PTX line N: expected WHAT, found TOKEN". @return false */
bool ptx_fail_expected(struct ptx_parser *parser, const char *what);

/** Records that memory has run out. @return false */
bool ptx_fail_memory(struct ptx_parser *parser);

/** Goes to the next token; false when it is none. */
bool ptx_advance(struct ptx_parser *parser);

/** @return the token behind the current one. */
struct ptx_token ptx_peek(const struct ptx_parser *parser);

bool ptx_at_mark(const struct ptx_parser *parser, char mark);

/** @return true when the current token is the dotted word @p word (".align"). */
bool ptx_at_word(const struct ptx_parser *parser, const char *word);

/** Steps over the punctuation character if it is there, and says so in @p found. */
bool ptx_skip_mark(struct ptx_parser *parser, char mark, bool *found);

/** Steps over a punctuation character that must be there. */
bool ptx_expect_mark(struct ptx_parser *parser, char mark);

/** Reads a name, kept once. */
bool ptx_read_name(struct ptx_parser *parser, char **name);

/** Reads an integer of at most @p limit. */
bool ptx_read_integer(struct ptx_parser *parser, uint64_t limit, uint64_t *value);

/** Reads (+ N | - N)*, as after a symbol or a register; 0 when there is nothing. */
bool ptx_read_offset(struct ptx_parser *parser, int64_t *offset);

/** Steps over everything up to and with the next semicolon. */
bool ptx_skip_statement(struct ptx_parser *parser);

/** Turns the outcome of a declaration of @p name into an error if it is one. */
bool ptx_check_declared(struct ptx_parser *parser, enum ptx_declared outcome, const char *name);

/** Moves a whole list into the module's memory. */
bool ptx_keep_list(struct ptx_parser *parser, struct ptx_list *list, size_t first, void **items,
                   size_t *count);

/* module.c */

/** Reads the whole text. */
bool ptx_parse_module(struct ptx_parser *parser);

/* locations.c: .file and .loc, from behind the word on */

bool ptx_parse_file(struct ptx_parser *parser);
bool ptx_parse_loc(struct ptx_parser *parser);

/* variables.c, initialiser.c */

/** @return true when the current token is the name of a state space of variables. */
bool ptx_at_space(const struct ptx_parser *parser);

/** Reads `.global .align 4 .b8 a[4] = {...}, b;` and binds the names. */
bool ptx_parse_variables(struct ptx_parser *parser, enum ptx_linkage linkage);

/** Reads `(.param .b32 a, ...)` into the scratch list `parameters`, in order. */
bool ptx_parse_parameters(struct ptx_parser *parser);

/** Reads what follows the `=`; @p extents are those of the array, outermost first. */
bool ptx_parse_initialiser(struct ptx_parser *parser, struct ptx_variable *variable,
                           const size_t *extents, size_t dimensions);

/** Reads `.reg .b32 %r<23>, x;`. */
bool ptx_parse_registers(struct ptx_parser *parser);

/* function.c, body.c */

/** Reads from .entry or .func to the end of the body or of the declaration. */
bool ptx_parse_function(struct ptx_parser *parser, enum ptx_linkage linkage);

/** Reads the body behind a header, with the parameters' names. */
bool ptx_define_function(struct ptx_parser *parser, struct ptx_function *function);

/** Reads `name, aliasee;`, behind .alias. */
bool ptx_parse_alias(struct ptx_parser *parser);

/** Reads `{ ... }`; the scope of the parameters is open. */
bool ptx_parse_body(struct ptx_parser *parser, struct ptx_function *function);

/* late.c */

/** Steps over a body that can be read later; @p deferred says whether it can. */
bool ptx_defer_body(struct ptx_parser *parser, struct ptx_function *function, bool *deferred);

/* instruction.c, operand.c, labels.c */

/** Reads an instruction with its guard and semicolon. */
bool ptx_parse_instruction(struct ptx_parser *parser);

/** Reads any operand but a parenthesised list. */
bool ptx_parse_operand(struct ptx_parser *parser, struct ptx_operand *operand);

/**
 * @brief Reads one register, immediate, special register, symbol or label.
 *
 * A name that is not declared becomes a label with the scope's number as its
 * index, until ptx_resolve_labels() finds out what it is.
 */
bool ptx_parse_simple(struct ptx_parser *parser, struct ptx_operand *operand);

/** Reads `a, b, ... CLOSE` as the elements of a vector; @p close is the mark that ends it. */
bool ptx_parse_elements(struct ptx_parser *parser, char close, struct ptx_operand *operand);

/** Reads the operands of a call into the scratch list `operands`. */
bool ptx_parse_call(struct ptx_parser *parser);

/** Finds the instructions that the labels of the function stand before. */
bool ptx_resolve_labels(struct ptx_parser *parser, struct ptx_function *function);

/* Numbers as PTX writes them: 12, 017, 0x1fU, 0b101, 1.5e-3, 0f3F800000, 0d3FF0000000000000. */

struct ptx_number {
    uint64_t bits; /**< of the integer, or of the float or double */
    enum ptx_immediate_type type;
};

/** @return false when @p text is no number, or an integer of more than 64 bits. */
bool ptx_number_read(const char *text, size_t length, struct ptx_number *number);

/** @return the number with its sign changed: two's complement, or the sign bit of a float. */
struct ptx_number ptx_number_negate(struct ptx_number number);

/** @return true when an element of that type can hold the number (integers may be cut). */
bool ptx_number_fits(struct ptx_number number, enum ptx_type type);

/**
 * @brief Writes the number, which fits, as one element of memory.
 * @param type  of the element; a double is rounded to float, an integer is cut
 * @param bytes receives ptx_type_size(type) bytes, at most 8
 */
void ptx_number_store(struct ptx_number number, enum ptx_type type, unsigned char *bytes);

#endif

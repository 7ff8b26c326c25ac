/**
 * @file lexer.h
 * @brief Cuts PTX text into tokens.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_LEXER_H_
#define WARPBOOK_COMMON_SIMT_PTX_LEXER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_NAME,   /**< ld, %r1, $L__BB0_2, _ */
    PTX_TOKEN_DOTTED, /**< .global, .v4, .L1::no_allocate; the dot is part of the text */
    PTX_TOKEN_NUMBER, /**< not checked yet, see ptx_number.h */
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

/** @return true when the token is the punctuation character @p mark. */
bool ptx_token_is_mark(const struct ptx_token *token, char mark);

/** @return true when the token's text is @p text. */
bool ptx_token_is(const struct ptx_token *token, const char *text);

#endif

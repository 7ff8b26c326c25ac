#include "common/simt/ptx/parser.h"

#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* May stand inside a name. */
static bool is_inner(char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

static bool starts_name(char c) {
    return is_letter(c) || c == '_' || c == '$' || c == '%';
}

/* The character at a distance; 0 behind the end. */
static char peek(const struct ptx_lexer *lexer, size_t distance) {
    return (size_t)(lexer->end - lexer->at) > distance ? lexer->at[distance] : '\0';
}

static void skip_line(struct ptx_lexer *lexer) {
    while (lexer->at < lexer->end && *lexer->at != '\n') {
        lexer->at++;
    }
}

/* Behind the end of a comment that began here; false when it does not end. */
static bool skip_block_comment(struct ptx_lexer *lexer) {
    uint32_t begin = lexer->line;
    lexer->at += 2;
    while (lexer->at < lexer->end) {
        if (peek(lexer, 0) == '*' && peek(lexer, 1) == '/') {
            lexer->at += 2;
            return true;
        }
        lexer->line += *lexer->at == '\n';
        lexer->at++;
    }
    lexer->line = begin; /* where the mistake is */
    return false;
}

/* Skips white space and comments; false when a comment does not end. */
static bool skip_space(struct ptx_lexer *lexer) {
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') {
            lexer->line++;
            lexer->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '/') {
            skip_line(lexer);
        } else if (c == '/' && peek(lexer, 1) == '*') {
            if (!skip_block_comment(lexer)) {
                return false;
            }
        } else {
            return true;
        }
    }
    return true;
}

static void take_inner(struct ptx_lexer *lexer) {
    while (is_inner(peek(lexer, 0))) {
        lexer->at++;
    }
}

static void take_name(struct ptx_lexer *lexer) {
    lexer->at++;
    take_inner(lexer);
}

static void take_dotted(struct ptx_lexer *lexer) {
    lexer->at++;
    take_inner(lexer);
    while (peek(lexer, 0) == ':' && peek(lexer, 1) == ':' && is_inner(peek(lexer, 2))) {
        lexer->at += 2;
        take_inner(lexer);
    }
}

/* Digits and letters, a fraction, and the sign of a decimal exponent. */
static void take_number(struct ptx_lexer *lexer) {
    char second = peek(lexer, 1);
    bool decimal = !is_letter(second) || second == 'e' || second == 'E' || second == 'U';
    while (is_inner(peek(lexer, 0)) || (decimal && peek(lexer, 0) == '.')) {
        char c = *lexer->at++;
        char sign = peek(lexer, 0);
        if (decimal && (c == 'e' || c == 'E') && (sign == '+' || sign == '-')) {
            lexer->at++;
        }
    }
}

static const char *take_string(struct ptx_lexer *lexer) {
    lexer->at++;
    while (peek(lexer, 0) != '"') {
        if (lexer->at == lexer->end || *lexer->at == '\n') {
            return "a string that does not end";
        }
        lexer->at += peek(lexer, 0) == '\\' && peek(lexer, 1) != '\n' && peek(lexer, 1) != '\0';
        lexer->at++;
    }
    lexer->at++;
    return NULL;
}

/* Takes the token that starts here; its text is set by the caller. */
static void take_token(struct ptx_lexer *lexer, struct ptx_token *token) {
    char c = *lexer->at;
    if (starts_name(c)) {
        token->kind = PTX_TOKEN_NAME;
        take_name(lexer);
    } else if (is_digit(c)) {
        token->kind = PTX_TOKEN_NUMBER;
        take_number(lexer);
    } else if (c == '.' && is_inner(peek(lexer, 1))) {
        token->kind = PTX_TOKEN_DOTTED;
        take_dotted(lexer);
    } else if (c == '"') {
        token->kind = PTX_TOKEN_STRING;
        token->problem = take_string(lexer);
    } else {
        token->kind = PTX_TOKEN_MARK;
        if (c == '\0' || strchr(",;:[](){}<>+-!~@|=", c) == NULL) {
            token->problem = "a character that PTX does not have";
        }
        lexer->at++;
    }
}

struct ptx_token ptx_lexer_next(struct ptx_lexer *lexer) {
    struct ptx_token token = {PTX_TOKEN_END, lexer->at, 0, lexer->line, NULL};
    bool comments_end = skip_space(lexer);
    token.text = lexer->at;
    token.line = lexer->line;
    if (!comments_end) {
        token.problem = "a comment that does not end";
    } else if (lexer->at < lexer->end) {
        take_token(lexer, &token);
    }
    token.length = (size_t)(lexer->at - token.text);
    if (token.problem != NULL) {
        token.kind = PTX_TOKEN_BAD;
        lexer->at = lexer->end;
    } else if (token.kind == PTX_TOKEN_STRING) {
        token.text++;
        token.length -= 2;
    }
    return token;
}

/* The dot belongs to a name: ld.global; behind a number a statement may begin: .loc 1 2 0x3.global
 */
static bool continues_name(const char *dot) {
    const char *first = dot;
    while (is_inner(first[-1])) { /* a brace stands before all */
        first--;
    }
    return first < dot && !is_digit(*first);
}

/* A declaration that begins here belongs to the module, wherever it stands. */
static bool declares_for_module(const struct ptx_lexer *lexer) {
    static const char *const words[] = {".extern", ".global", ".const"};
    bool found = false;
    for (size_t n = 0; n < sizeof words / sizeof *words && !continues_name(lexer->at); n++) {
        size_t length = strlen(words[n]);
        found = found || ((size_t)(lexer->end - lexer->at) > length &&
                          memcmp(lexer->at, words[n], length) == 0);
    }
    return found;
}

/* Steps over a comment, a string or one character; false when it does not end. */
static bool skip_piece(struct ptx_lexer *lexer) {
    char c = *lexer->at, next = peek(lexer, 1);
    if (c == '/' && next == '/') {
        skip_line(lexer);
        return true;
    }
    if (c == '/' && next == '*') {
        return skip_block_comment(lexer);
    }
    if (c == '"') {
        return take_string(lexer) == NULL;
    }
    lexer->line += c == '\n';
    lexer->at++;
    return true;
}

bool ptx_lexer_skip_body(struct ptx_lexer *lexer) {
    static const bool marks[256] = {
        ['{'] = true, ['}'] = true, ['/'] = true, ['"'] = true, ['.'] = true, ['\n'] = true};
    size_t depth = 1;
    while (depth > 0 && lexer->at < lexer->end) {
        char c = *lexer->at;
        if (!marks[(unsigned char)c]) {
            lexer->at++;
            continue;
        }
        if (c == '.' && declares_for_module(lexer)) {
            return false;
        }
        depth += c == '{';
        depth -= c == '}';
        if (!skip_piece(lexer)) {
            return false;
        }
    }
    return depth == 0;
}

bool ptx_token_is_mark(const struct ptx_token *token, char mark) {
    return token->kind == PTX_TOKEN_MARK && *token->text == mark;
}

bool ptx_token_is(const struct ptx_token *token, const char *text) {
    return strlen(text) == token->length && memcmp(text, token->text, token->length) == 0;
}

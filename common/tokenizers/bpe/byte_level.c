#include "common/tokenizers/bpe/byte_level.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/grow.h"
#include "common/base/utf8.h"
#include "common/tokenizers/bpe/pretokenizer.h"

static bool is_printable(int32_t code) {
    return (code >= '!' && code <= '~') || (code >= 0xa1 && code <= 0xac) ||
           (code >= 0xae && code <= 0xff);
}

/* The byte that a character stands for, or -1. From U+0100 on: 0 to 32, 127 to 160, 173. */
static int byte_of(int32_t character) {
    int32_t rank = character - 0x100;
    if (rank < 0) {
        return is_printable(character) ? (int)character : -1;
    }
    return rank <= 32 ? (int)rank : rank <= 66 ? (int)rank + 94 : rank == 67 ? 173 : -1;
}

bool byte_level_decode(char *bytes, const char *text, size_t length, size_t *count) {
    *count = 0;
    for (size_t offset = 0; offset < length;) {
        int32_t character;
        if (utf8_next(text, length, &offset, &character, NULL) != STATUS_OK ||
            byte_of(character) < 0) {
            return false;
        }
        bytes[(*count)++] = (char)byte_of(character);
    }
    return true;
}

enum status bpe_tokens_reserve(struct bpe_tokens *tokens, size_t more, struct error *error) {
    size_t wanted;
    return checked_add(tokens->count, more, &wanted) &&
                   array_grow(&tokens->ids, &tokens->capacity, wanted, sizeof *tokens->ids)
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "no memory for %zu tokens", wanted);
}

/* Encoding of one text. */
struct encoding {
    const struct bpe *bpe;
    struct bpe_tokens *tokens;
    struct error *error;
};

/* Encodes a piece: a token for each byte, then merges. */
static enum status encode_piece(void *context, const char *piece, size_t length) {
    const struct encoding *e = context;
    const struct bpe *bpe = e->bpe;
    TRY(bpe_tokens_reserve(e->tokens, length, e->error));
    int32_t *out = e->tokens->ids + e->tokens->count;
    int32_t whole = bpe->ignore_merges ? bpe_find(bpe, piece, length) : -1;
    size_t count = whole >= 0 ? 1 : length;
    for (size_t i = 0; i < count; i++) {
        out[i] = whole >= 0 ? whole : bpe_find(bpe, piece + i, 1); /* there is one for each byte */
    }
    enum status status = bpe_merge(bpe, out, &count);
    if (status != STATUS_OK) {
        return error_set(e->error, status, "no memory to encode %zu bytes of text", length);
    }
    e->tokens->count += count;
    return STATUS_OK;
}

/* Encodes the pieces of a text that is in its final form. */
static enum status encode_pieces(struct encoding *e, const char *text, size_t length) {
    return pretokenizer_split(e->bpe->pretokenizer, text, length, encode_piece, e, e->error);
}

/* Puts a blank before a text, if the file says so, and encodes it. */
static enum status encode_normal(struct encoding *e, const char *text, size_t length) {
    if (!e->bpe->prefix_space || length == 0 || text[0] == ' ') {
        return encode_pieces(e, text, length);
    }
    size_t size;
    char *prefixed = checked_add(length, 1, &size) ? malloc(size) : NULL;
    if (prefixed == NULL) {
        return error_set(e->error, STATUS_OUT_OF_MEMORY, "no memory to encode %zu bytes of text",
                         length);
    }
    prefixed[0] = ' ';
    memcpy(prefixed + 1, text, length);
    enum status status = encode_pieces(e, prefixed, size);
    free(prefixed);
    return status;
}

/* Brings a text to NFC and encodes it. */
static enum status encode_composed(struct encoding *e, const char *text, size_t length) {
    utf8proc_uint8_t *composed = NULL;
    utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length,
                                         &composed, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (size < 0) {
        free(composed);
        return error_set(e->error, STATUS_OUT_OF_MEMORY, "cannot compose %zu bytes of text: %s",
                         length, utf8proc_errmsg(size));
    }
    enum status status = encode_normal(e, (const char *)composed, (size_t)size);
    free(composed);
    return status;
}

enum status byte_level_encode(const struct bpe *bpe, const char *text, size_t length,
                              struct bpe_tokens *tokens, struct error *error) {
    struct encoding e = {bpe, tokens, error};
    TRY(utf8_check(text, length, error));
    return bpe->compose ? encode_composed(&e, text, length) : encode_normal(&e, text, length);
}

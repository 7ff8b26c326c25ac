#include "common/tokenizers/bpe/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/utf8.h"
#include "common/tokenizers/bpe/bpe_vocabulary.h"

enum { BYTE_TOKENS_END = BPE_FIRST_BYTE + 256 };

/* Appends the token of a code point, whose spelling has size bytes; or a token for each byte. */
static enum status append_code_point(const struct bpe *bpe, const char *bytes, size_t size,
                                     int32_t code_point, size_t offset, int32_t *tokens,
                                     size_t *count, struct error *error) {
    int32_t token = bpe_find(bpe, bytes, size);
    if (token >= 0) {
        tokens[(*count)++] = token;
        return STATUS_OK;
    }
    if (bpe->count < BYTE_TOKENS_END) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "U+%04X at byte %zu is not in the vocabulary, and with only %zu tokens "
                         "the vocabulary has no tokens for the %d single bytes",
                         (unsigned)code_point, offset, bpe->count, 256);
    }
    for (size_t i = 0; i < size; i++) {
        tokens[(*count)++] = BPE_FIRST_BYTE + (unsigned char)bytes[i];
    }
    return STATUS_OK;
}

static enum status append_text(const struct bpe *bpe, const char *text, size_t length,
                               int32_t *tokens, size_t *count, struct error *error) {
    for (size_t offset = 0; offset < length;) {
        size_t start = offset;
        int32_t code_point;
        TRY(utf8_next(text, length, &offset, &code_point, error));
        const char *spelling = code_point == ' ' ? bpe->blank : text + start;
        size_t size = code_point == ' ' ? strlen(bpe->blank) : offset - start;
        TRY(append_code_point(bpe, spelling, size, code_point, start, tokens, count, error));
    }
    return STATUS_OK;
}

static bool begins_with(const char *text, size_t length, const char *beginning) {
    size_t size = strlen(beginning);
    return length >= size && memcmp(text, beginning, size) == 0;
}

static bool needs_prefix(const struct bpe *bpe, const char *text, size_t length) {
    if (bpe->prefix == BPE_PREFIX_UNLESS_BLANK) {
        return !begins_with(text, length, " ") && !begins_with(text, length, bpe->blank);
    }
    return bpe->prefix == BPE_PREFIX_ALWAYS;
}

/* Fills `tokens`, which has room for one token per byte and three more: BOS, prefix, EOS. */
static enum status encode_into(const struct bpe *bpe, const char *text, size_t length, bool bos,
                               bool eos, int32_t *tokens, size_t *count, struct error *error) {
    if (bos) {
        tokens[(*count)++] = BPE_BOS;
    }
    if (length > 0 && needs_prefix(bpe, text, length)) {
        TRY(append_code_point(bpe, bpe->blank, strlen(bpe->blank), ' ', 0, tokens, count, error));
    }
    TRY(append_text(bpe, text, length, tokens, count, error));
    /* In llama2.c BOS may merge with the text; with merge rules it takes no part. */
    size_t outside = bos && bpe->rules != NULL ? 1 : 0;
    *count -= outside;
    enum status status = bpe_merge(bpe, tokens + outside, count);
    *count += outside;
    if (status != STATUS_OK) {
        return error_set(error, status, "no memory to encode %zu bytes of text", length);
    }
    if (eos) {
        tokens[(*count)++] = BPE_EOS;
    }
    return STATUS_OK;
}

enum status bpe_encode(const struct bpe *bpe, const char *text, size_t length, bool bos, bool eos,
                       int32_t **tokens, size_t *count, struct error *error) {
    enum { ADDED = 3 }; /* BOS, the dummy prefix, EOS */
    *tokens = NULL;
    *count = 0;
    size_t capacity, size;
    if (!checked_add(length, ADDED, &capacity) ||
        !checked_multiply(capacity, sizeof **tokens, &size)) {
        return error_set(error, STATUS_OVERFLOW, "text of %zu bytes is too long", length);
    }
    int32_t *memory = malloc(size);
    if (memory == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory to encode %zu bytes of text",
                         length);
    }
    size_t filled = 0;
    enum status status = encode_into(bpe, text, length, bos, eos, memory, &filled, error);
    if (status != STATUS_OK) {
        free(memory);
        return status;
    }
    *tokens = memory;
    *count = filled;
    return STATUS_OK;
}

static int hexadecimal(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'A' && digit <= 'F') {
        return digit - 'A' + 10;
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The byte that "<0xNN>" stands for, or -1. */
static int raw_byte(const char *piece, size_t length) {
    if (length != strlen("<0xNN>") || memcmp(piece, "<0x", 3) != 0 || piece[5] != '>') {
        return -1;
    }
    int high = hexadecimal(piece[3]);
    int low = hexadecimal(piece[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

const char *bpe_decode(const struct bpe *bpe, int32_t previous, int32_t token, size_t *length) {
    *length = 0;
    if (token < 0 || (size_t)token >= bpe->count) {
        return "";
    }
    const char *piece = bpe->shown[token].text;
    size_t size = bpe->shown[token].length;
    if (previous == BPE_BOS && piece[0] == ' ') {
        piece++;
        size--;
    }
    int byte = raw_byte(piece, size);
    *length = byte >= 0 ? 1 : size;
    return byte >= 0 ? &bpe->bytes[2 * byte] : piece;
}

#include "common/tokenizers/bpe/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/utf8.h"
#include "common/tokenizers/bpe/bpe_vocabulary.h"
#include "common/tokenizers/bpe/byte_level.h"

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

/* Encodes a text without added tokens behind the `*count` tokens that are there; there is room for
   one token per byte and one more. @param first it begins the whole text */
static enum status encode_text(const struct bpe *bpe, const char *text, size_t length, bool first,
                               int32_t *tokens, size_t *count, struct error *error) {
    /* In llama2.c BOS may merge with the text; with merge rules it takes no part. */
    size_t outside = bpe->rules != NULL ? *count : 0;
    if (length > 0 && (first || !bpe->prefix_first) && needs_prefix(bpe, text, length)) {
        TRY(append_code_point(bpe, bpe->blank, strlen(bpe->blank), ' ', 0, tokens, count, error));
    }
    TRY(append_text(bpe, text, length, tokens, count, error));
    *count -= outside;
    enum status status = bpe_merge(bpe, tokens + outside, count);
    *count += outside;
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "no memory to encode %zu bytes of text", length);
}

/* Encoding of parts. */
struct encoder {
    const struct bpe *bpe;
    struct bpe_tokens out;
    char *text; /* what came since the last added token */
    size_t length;
    bool begun; /* a text was encoded, or an added token came */
    struct error *error;
};

/* Encodes the text that is waiting. */
static enum status flush(struct encoder *e) {
    if (e->length == 0 && e->begun) {
        return STATUS_OK;
    }
    bool first = !e->begun;
    size_t length = e->length;
    e->begun = true;
    e->length = 0;
    if (e->bpe->pretokenizer != NULL) {
        return byte_level_encode(e->bpe, e->text, length, &e->out, e->error);
    }
    TRY(bpe_tokens_reserve(&e->out, length + 1, e->error));
    return encode_text(e->bpe, e->text, length, first, e->out.ids, &e->out.count, e->error);
}

static enum status add_token(struct encoder *e, int32_t token) {
    TRY(flush(e));
    TRY(bpe_tokens_reserve(&e->out, 1, e->error));
    e->out.ids[e->out.count++] = token;
    return STATUS_OK;
}

/* The longest added token at the beginning of a text, or NULL. @param marked also of those that are
   not recognised in all text */
static const struct bpe_added *added_at(const struct bpe *bpe, const char *text, size_t length,
                                        bool marked) {
    for (size_t i = 0; i < bpe->added_count; i++) {
        const struct bpe_added *added = &bpe->added[i];
        if ((marked || added->always) && added->text[0] == text[0] && added->length <= length &&
            memcmp(added->text, text, added->length) == 0) {
            return added;
        }
    }
    return NULL;
}

static enum status take_part(struct encoder *e, const struct bpe_part *part) {
    bool searched = part->marked || e->bpe->adds_always;
    for (size_t i = 0; i < part->length;) {
        const struct bpe_added *added =
            searched ? added_at(e->bpe, part->text + i, part->length - i, part->marked) : NULL;
        size_t plain = searched ? 1 : part->length;
        if (added != NULL) {
            e->begun = e->begun || e->length == 0;
            TRY(add_token(e, added->id));
        } else {
            memcpy(e->text + e->length, part->text + i, plain);
            e->length += plain;
        }
        i += added != NULL ? added->length : plain;
    }
    return STATUS_OK;
}

static enum status encode_parts(struct encoder *e, const struct bpe_part *parts, size_t part_count,
                                bool bos, bool eos) {
    const struct bpe *bpe = e->bpe;
    if (bos && bpe->bos >= 0) {
        e->out.ids[e->out.count++] = bpe->bos;
    }
    for (size_t i = 0; i < part_count; i++) {
        TRY(take_part(e, &parts[i]));
    }
    TRY(flush(e));
    return eos && bpe->eos >= 0 ? add_token(e, bpe->eos) : STATUS_OK;
}

/* Allocates room for the text of all parts, and for a token per byte and three more: BOS, the dummy
   prefix, EOS. */
static enum status allocate(struct encoder *e, const struct bpe_part *parts, size_t part_count) {
    enum { ADDED = 3 };
    size_t length = 0, capacity, size;
    for (size_t i = 0; i < part_count; i++) {
        if (!checked_add(length, parts[i].length, &length)) {
            return error_set(e->error, STATUS_OVERFLOW, "text is too long");
        }
    }
    if (!checked_add(length, ADDED, &capacity) ||
        !checked_multiply(capacity, sizeof *e->out.ids, &size)) {
        return error_set(e->error, STATUS_OVERFLOW, "text of %zu bytes is too long", length);
    }
    e->out.ids = malloc(size);
    e->out.capacity = capacity;
    e->text = malloc(capacity);
    return e->out.ids != NULL && e->text != NULL
               ? STATUS_OK
               : error_set(e->error, STATUS_OUT_OF_MEMORY, "no memory to encode %zu bytes of text",
                           length);
}

static enum status encode(const struct bpe *bpe, const struct bpe_part *parts, size_t part_count,
                          bool bos, bool eos, int32_t **tokens, size_t *count,
                          struct error *error) {
    struct encoder e = {.bpe = bpe, .error = error};
    *tokens = NULL;
    *count = 0;
    enum status status = allocate(&e, parts, part_count);
    if (status == STATUS_OK) {
        status = encode_parts(&e, parts, part_count, bos, eos);
    }
    free(e.text);
    if (status != STATUS_OK) {
        free(e.out.ids);
        return status;
    }
    *tokens = e.out.ids;
    *count = e.out.count;
    return STATUS_OK;
}

enum status bpe_encode(const struct bpe *bpe, const char *text, size_t length, bool bos, bool eos,
                       int32_t **tokens, size_t *count, struct error *error) {
    const struct bpe_part part = {.text = text, .length = length};
    return encode(bpe, &part, 1, bos, eos, tokens, count, error);
}

enum status bpe_encode_parts(const struct bpe *bpe, const struct bpe_part *parts, size_t part_count,
                             bool bos, int32_t **tokens, size_t *count, struct error *error) {
    return encode(bpe, parts, part_count, bos, false, tokens, count, error);
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
    if (bpe->pretokenizer != NULL) {
        *length = size;
        return piece;
    }
    if (previous == BPE_BOS && piece[0] == ' ') {
        piece++;
        size--;
    }
    int byte = raw_byte(piece, size);
    *length = byte >= 0 ? 1 : size;
    return byte >= 0 ? &bpe->bytes[2 * byte] : piece;
}

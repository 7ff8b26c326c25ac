/* Reads, checks, indexes and writes llama2.c's tokenizer files. */
#include "common/tokenizers/bpe/bpe_vocabulary.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/file.h"
#include "common/tokenizers/bpe/pretokenizer.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read as they lie in memory");

enum {
    HEADER_BYTES = 4, /* int32 longest piece */
    RECORD_BYTES = 8, /* fp32 score, int32 length; the text follows */
    SPECIAL_TOKENS = 3
};

/* A file while it is read. */
struct reader {
    const unsigned char *data;
    size_t size;
    size_t offset;
    int32_t longest; /* as the header says */
};

static int32_t read_int32(const unsigned char *data) {
    int32_t value;
    memcpy(&value, data, sizeof value);
    return value;
}

static float read_float(const unsigned char *data) {
    float value;
    memcpy(&value, data, sizeof value);
    return value;
}

static enum status read_header(struct reader *reader, struct error *error) {
    if (reader->size < HEADER_BYTES) {
        return error_set(error, STATUS_TRUNCATED,
                         "tokenizer ends after %zu bytes, its header has %d", reader->size,
                         HEADER_BYTES);
    }
    reader->longest = read_int32(reader->data);
    reader->offset = HEADER_BYTES;
    if (reader->longest <= 0) {
        return error_set(error, STATUS_BAD_FORMAT, "longest piece of the tokenizer is %d bytes",
                         reader->longest);
    }
    return STATUS_OK;
}

/* Reads record number `id`; piece->text points into the file, without a NUL. */
static enum status read_record(struct reader *reader, size_t id, struct bpe_piece *piece,
                               struct error *error) {
    size_t left = reader->size - reader->offset;
    if (left < RECORD_BYTES) {
        return error_set(error, STATUS_TRUNCATED,
                         "tokenizer ends within score and length of token %zu, at byte %zu", id,
                         reader->size);
    }
    const unsigned char *record = reader->data + reader->offset;
    float score = read_float(record);
    int32_t length = read_int32(record + 4);
    if (isnan(score)) {
        return error_set(error, STATUS_BAD_FORMAT, "score of token %zu is not a number", id);
    }
    if (length < 0 || length > reader->longest) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "length of token %zu is %d, outside 0..%d (the longest piece)", id, length,
                         reader->longest);
    }
    left -= RECORD_BYTES;
    if ((size_t)length > left) {
        return error_set(error, STATUS_TRUNCATED,
                         "token %zu has %d bytes, but only %zu are left in the tokenizer", id,
                         length, left);
    }
    *piece = (struct bpe_piece){(const char *)record + RECORD_BYTES, (uint32_t)length, score};
    if (length > 0 && memchr(piece->text, '\0', (size_t)length) != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "token %zu has a NUL byte in its text", id);
    }
    reader->offset += RECORD_BYTES + (size_t)length;
    return STATUS_OK;
}

/* Checks every record and counts tokens and bytes of text, NULs included. */
static enum status measure(struct reader reader, size_t *count, size_t *text_bytes,
                           struct error *error) {
    *count = 0;
    *text_bytes = 0;
    while (reader.offset < reader.size) {
        struct bpe_piece piece;
        if (*count == INT32_MAX) {
            return error_set(error, STATUS_OVERFLOW, "tokenizer has more than %d tokens",
                             INT32_MAX);
        }
        TRY(read_record(&reader, *count, &piece, error));
        (*count)++;
        *text_bytes += piece.length + (size_t)1; /* no more than the size of the file */
    }
    return STATUS_OK;
}

enum status bpe_check_count(size_t count, size_t expected, struct error *error) {
    if (expected != 0 && count != expected) {
        return error_set(error, STATUS_MISMATCH, "tokenizer has %zu tokens, the model %zu", count,
                         expected);
    }
    if (count < SPECIAL_TOKENS) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "tokenizer has %zu tokens, too few for <unk>, <s> and </s>", count);
    }
    return STATUS_OK;
}

/* Reads all records again and copies their texts. */
static enum status copy_pieces(struct bpe *bpe, struct reader reader, struct error *error) {
    char *text = bpe->text;
    for (size_t id = 0; id < bpe->count; id++) {
        struct bpe_piece *piece = &bpe->pieces[id];
        TRY(read_record(&reader, id, piece, error));
        memcpy(text, piece->text, piece->length);
        text[piece->length] = '\0';
        piece->text = text;
        text += piece->length + (size_t)1;
        bpe->longest = piece->length > bpe->longest ? piece->length : bpe->longest;
        bpe_index_add(bpe, (int32_t)id);
    }
    return STATUS_OK;
}

enum status bpe_create(struct bpe **out, size_t count, size_t text_bytes, struct error *error) {
    *out = NULL;
    struct bpe *bpe = calloc(1, sizeof *bpe);
    if (bpe == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for a tokenizer");
    }
    bpe->count = count;
    bpe->pieces = calloc(count, sizeof *bpe->pieces);
    bpe->shown = bpe->pieces;
    bpe->text = malloc(text_bytes);
    bpe->blank = " ";
    bpe->bos = BPE_BOS;
    bpe->eos = BPE_EOS;
    for (int byte = 0; byte < 256; byte++) {
        bpe->bytes[2 * byte] = (char)byte;
    }
    if (bpe->pieces == NULL || bpe->text == NULL || bpe_index_create(bpe) != STATUS_OK) {
        bpe_free(bpe);
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for a tokenizer of %zu tokens",
                         count);
    }
    *out = bpe;
    return STATUS_OK;
}

static enum status create(struct bpe **out, struct reader reader, size_t count, size_t text_bytes,
                          struct error *error) {
    struct bpe *bpe;
    TRY(bpe_create(&bpe, count, text_bytes, error));
    enum status status = copy_pieces(bpe, reader, error);
    if (status != STATUS_OK) {
        bpe_free(bpe);
        return status;
    }
    *out = bpe;
    return STATUS_OK;
}

enum status bpe_parse(struct bpe **bpe, const void *data, size_t size, size_t expected_tokens,
                      struct error *error) {
    *bpe = NULL;
    struct reader reader = {.data = data, .size = size};
    size_t count = 0, text_bytes = 0;
    TRY(read_header(&reader, error));
    TRY(measure(reader, &count, &text_bytes, error));
    TRY(bpe_check_count(count, expected_tokens, error));
    return create(bpe, reader, count, text_bytes, error);
}

enum status bpe_open(struct bpe **bpe, const char *path, size_t expected_tokens,
                     struct error *error) {
    *bpe = NULL;
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    enum status status = bpe_parse(bpe, view.data, view.size, expected_tokens, error);
    file_view_close(&view);
    return status == STATUS_OK ? status : error_prefix(error, status, path);
}

void bpe_free(struct bpe *bpe) {
    if (bpe != NULL) {
        if (bpe->shown != bpe->pieces) {
            free(bpe->shown);
        }
        free(bpe->pieces);
        free(bpe->index);
        free(bpe->text);
        free(bpe->rules);
        free(bpe->added);
        pretokenizer_free(bpe->pretokenizer);
        free(bpe);
    }
}

size_t bpe_size(const struct bpe *bpe) {
    return bpe->count;
}

int32_t bpe_bos(const struct bpe *bpe) {
    return bpe->bos;
}

int32_t bpe_eos(const struct bpe *bpe) {
    return bpe->eos;
}

int32_t bpe_added(const struct bpe *bpe, const char *spelling) {
    for (size_t i = 0; i < bpe->added_count; i++) {
        if (strcmp(bpe->added[i].text, spelling) == 0) {
            return bpe->added[i].id;
        }
    }
    return -1;
}

/* Bytes of the file and of its longest piece; false if a length overflows. */
static bool serialized_size(const char *const *pieces, size_t count, size_t *size,
                            int32_t *longest) {
    *size = HEADER_BYTES;
    *longest = 1; /* readers require a positive number */
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(pieces[i]);
        if (length > INT32_MAX || !checked_add(*size, RECORD_BYTES + length, size)) {
            return false;
        }
        *longest = (int32_t)length > *longest ? (int32_t)length : *longest;
    }
    return true;
}

enum status bpe_serialize(const char *const *pieces, const float *scores, size_t count,
                          unsigned char **data, size_t *size) {
    *data = NULL;
    *size = 0;
    size_t bytes;
    int32_t longest;
    if (!serialized_size(pieces, count, &bytes, &longest)) {
        return STATUS_OVERFLOW;
    }
    unsigned char *out = malloc(bytes);
    if (out == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memcpy(out, &longest, sizeof longest);
    unsigned char *next = out + HEADER_BYTES;
    for (size_t i = 0; i < count; i++) {
        int32_t length = (int32_t)strlen(pieces[i]);
        memcpy(next, &scores[i], sizeof scores[i]);
        memcpy(next + 4, &length, sizeof length);
        memcpy(next + RECORD_BYTES, pieces[i], (size_t)length);
        next += RECORD_BYTES + (size_t)length;
    }
    *data = out;
    *size = bytes;
    return STATUS_OK;
}

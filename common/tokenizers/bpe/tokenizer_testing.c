#include "common/tokenizers/bpe/tokenizer_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/tokenizers/bpe/bpe_vocabulary.h"

enum { FIRST_PIECE = BPE_FIRST_BYTE + 256 };

static const char BLANK[] = "\xe2\x96\x81";

/* Writes <unk>, <s>, </s> and the bytes. */
static void write_first(FILE *out) {
    fputs("\"<unk>\":0,\"<s>\":1,\"</s>\":2", out);
    for (unsigned byte = 0; byte < 256; byte++) {
        fprintf(out, ",\"<0x%02X>\":%u", byte, BPE_FIRST_BYTE + byte);
    }
}

/* Closes @p out. @return its text, or NULL after a failure */
static char *close_stream(FILE *out, char **text) {
    bool written = !ferror(out);
    if (fclose(out) != 0 || !written) {
        free(*text);
        return NULL;
    }
    return *text;
}

char *tokenizer_testing_json(const char *settings, const char *model, const char *pieces,
                             const char *merges, const char *added) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fprintf(out, "{\"version\":\"1.0\",\"added_tokens\":[%s],%s,\"model\":{%s,\"vocab\":{", added,
            settings, model);
    write_first(out);
    fprintf(out, "%s%s},\"merges\":[%s]}}", pieces[0] != '\0' ? "," : "", pieces, merges);
    return close_stream(out, &text);
}

/* Writes the 256 bytes as byte_level.h spells them. */
static void write_bytes(FILE *out) {
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
        fprintf(out, "%s\"\\u%04x\":%u", byte > 0 ? "," : "", printable ? byte : next, byte);
        next += !printable;
    }
}

char *tokenizer_testing_byte_level(const char *settings, const char *pieces, const char *merges,
                                   const char *added) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fprintf(out,
            "{\"added_tokens\":[%s],%s,\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,"
            "\"vocab\":{",
            added, settings);
    write_bytes(out);
    fprintf(out, "%s%s},\"merges\":[%s]}}", pieces[0] != '\0' ? "," : "", pieces, merges);
    return close_stream(out, &text);
}

/* Writes a piece inside a string, with U+2581 for blanks. */
static void write_piece(FILE *out, const struct bpe_piece *piece, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
        unsigned char byte = (unsigned char)piece->text[i];
        if (byte == ' ') {
            fputs(BLANK, out);
        } else if (byte < 0x20) {
            fprintf(out, "\\u%04x", byte);
        } else {
            fprintf(out, "%s%c", byte == '"' || byte == '\\' ? "\\" : "", byte);
        }
    }
}

static void write_vocabulary(FILE *out, const struct bpe *bpe) {
    write_first(out);
    for (size_t id = FIRST_PIECE; id < bpe->count; id++) {
        fputs(",\"", out);
        write_piece(out, &bpe->pieces[id], 0, bpe->pieces[id].length);
        fprintf(out, "\":%zu", id);
    }
}

struct split {
    float score;
    int32_t left, right, whole;
    size_t cut;
};

static int by_rank(const void *a, const void *b) {
    const struct split *x = a, *y = b;
    if (x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }
    return x->left != y->left ? (x->left > y->left) - (x->left < y->left)
                              : (x->right > y->right) - (x->right < y->right);
}

/* Counts all splits of pieces into two pieces; writes them to @p splits unless it is NULL. */
static size_t find_splits(const struct bpe *bpe, struct split *splits) {
    size_t count = 0;
    for (size_t id = FIRST_PIECE; id < bpe->count; id++) {
        const struct bpe_piece *piece = &bpe->pieces[id];
        for (size_t cut = 1; cut < piece->length; cut++) {
            int32_t left = bpe_find(bpe, piece->text, cut);
            int32_t right = bpe_find(bpe, piece->text + cut, piece->length - cut);
            if (left < FIRST_PIECE || right < FIRST_PIECE) {
                continue;
            }
            if (splits != NULL) {
                splits[count] = (struct split){piece->score, left, right, (int32_t)id, cut};
            }
            count++;
        }
    }
    return count;
}

static bool write_merges(FILE *out, const struct bpe *bpe, bool pairs) {
    size_t count = find_splits(bpe, NULL);
    struct split *splits = calloc(count > 0 ? count : 1, sizeof *splits);
    if (splits == NULL) {
        return false;
    }
    find_splits(bpe, splits);
    qsort(splits, count, sizeof *splits, by_rank);
    for (size_t i = 0; i < count; i++) {
        const struct bpe_piece *piece = &bpe->pieces[splits[i].whole];
        fprintf(out, "%s%s\"", i > 0 ? "," : "", pairs ? "[" : "");
        write_piece(out, piece, 0, splits[i].cut);
        fputs(pairs ? "\",\"" : " ", out);
        write_piece(out, piece, splits[i].cut, piece->length);
        fputs(pairs ? "\"]" : "\"", out);
    }
    free(splits);
    return true;
}

char *tokenizer_testing_convert(const struct bpe *bpe, const char *settings, bool pairs) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fprintf(out,
            "{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true}],%s,"
            "\"model\":{" TOKENIZER_TESTING_MODEL ",\"vocab\":{",
            settings);
    write_vocabulary(out, bpe);
    fputs("},\"merges\":[", out);
    bool written = write_merges(out, bpe, pairs);
    fputs("]}}", out);
    char *complete = close_stream(out, &text);
    if (!written) {
        free(complete);
        return NULL;
    }
    return complete;
}

enum status tokenizer_testing_write_bytes(const char *path) {
    enum { TOKENS = FIRST_PIECE };
    char texts[TOKENS][8] = {"<unk>", "<s>", "</s>"};
    const char *pieces[TOKENS];
    float scores[TOKENS] = {0};
    unsigned char *data;
    size_t size;
    for (int i = 0; i < TOKENS; i++) {
        if (i >= BPE_FIRST_BYTE) {
            snprintf(texts[i], sizeof texts[i], "<0x%02X>", (unsigned)(i - BPE_FIRST_BYTE) & 255u);
        }
        pieces[i] = texts[i];
    }
    TRY(bpe_serialize(pieces, scores, TOKENS, &data, &size));
    enum status status = file_write(path, data, size, NULL);
    free(data);
    return status;
}

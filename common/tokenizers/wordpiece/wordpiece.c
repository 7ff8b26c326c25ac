/* Encodes text: finds special pieces, splits the rest into words, and words into pieces. */
#include "common/tokenizers/wordpiece/wordpiece.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "common/tokenizers/wordpiece/wordpiece_internal.h"

enum { LONGEST_WORD = WORDPIECE_LONGEST_WORD, CONTINUED = 2 /* bytes of "##" */ };

/* One word as UTF-8, with room for "##" before it. */
struct word {
    char bytes[CONTINUED + 4 * LONGEST_WORD];
    size_t starts[LONGEST_WORD + 1]; /* byte of each code point, then the end */
    size_t length;                   /* code points */
};

static void spell(struct word *word, const int32_t *code_points, size_t count) {
    word->length = count;
    word->starts[0] = CONTINUED;
    for (size_t i = 0; i < count; i++) {
        utf8proc_uint8_t *out = (utf8proc_uint8_t *)word->bytes + word->starts[i];
        word->starts[i + 1] = word->starts[i] + (size_t)utf8proc_encode_char(code_points[i], out);
    }
}

/*
 * Finds the longest piece that matches the word at code point `start`; -1 if there is none.
 * Inside the word, "##" overwrites the two bytes before `start`.
 */
static int32_t longest_piece(const struct wordpiece *wordpiece, struct word *word, size_t start,
                             size_t *end) {
    size_t begin = word->starts[start];
    if (start > 0) {
        begin -= CONTINUED;
        memcpy(word->bytes + begin, "##", CONTINUED);
    }
    for (*end = word->length; *end > start; (*end)--) {
        size_t length = word->starts[*end] - begin;
        int32_t id = length <= wordpiece->longest
                         ? wordpiece_lookup(wordpiece, word->bytes + begin, length)
                         : -1;
        if (id >= 0) {
            return id;
        }
    }
    return -1;
}

/* Appends the pieces of one word, or [UNK] for all of it. */
static bool push_word(const struct wordpiece *wordpiece, const int32_t *code_points, size_t count,
                      struct list *ids) {
    if (count > LONGEST_WORD) {
        return list_push(ids, wordpiece->special.unk);
    }
    struct word word;
    spell(&word, code_points, count);
    size_t before = ids->count;
    for (size_t start = 0, end; start < count; start = end) {
        int32_t id = longest_piece(wordpiece, &word, start, &end);
        if (id < 0) {
            ids->count = before;
            return list_push(ids, wordpiece->special.unk);
        }
        if (!list_push(ids, id)) {
            return false;
        }
    }
    return true;
}

/* Appends the pieces of all words, until there are `enough` ids. */
static bool push_words(const struct wordpiece *wordpiece, const struct list *text, size_t enough,
                       struct list *ids) {
    size_t start, end = 0;
    while (ids->count < enough && wordpiece_next_word(text, &start, &end)) {
        if (!push_word(wordpiece, &text->items[start], end - start, ids)) {
            return false;
        }
    }
    return true;
}

/* Finds the next special piece spelt out in the text. @return its offset, or `length`. */
static size_t find_special(const struct wordpiece *wordpiece, const char *text, size_t length,
                           int32_t *id, size_t *size) {
    const int32_t special[] = {wordpiece->special.unk, wordpiece->special.cls,
                               wordpiece->special.sep, wordpiece->special.pad, wordpiece->mask};
    for (size_t offset = 0; offset < length; offset++) {
        const char *bracket = memchr(text + offset, '[', length - offset);
        if (bracket == NULL) {
            break;
        }
        offset = (size_t)(bracket - text);
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
            const char *piece = wordpiece_piece(wordpiece, special[i]);
            *size = piece != NULL ? strlen(piece) : SIZE_MAX;
            if (*size <= length - offset && memcmp(bracket, piece, *size) == 0) {
                *id = special[i];
                return offset;
            }
        }
    }
    *size = 0;
    return length;
}

/* Appends the ids of text without special pieces. */
static enum status push_plain(const struct wordpiece *wordpiece, const char *text, size_t length,
                              size_t enough, struct list *ids, struct error *error) {
    struct list normal = {0};
    enum status status = wordpiece_normalize(text, length, &normal, error);
    if (status == STATUS_OK && !push_words(wordpiece, &normal, enough, ids)) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no memory to tokenize %zu bytes of text",
                           length);
    }
    free(normal.items);
    return status;
}

/* Appends the ids of the text, at least the first `enough` of them. */
static enum status push_text(const struct wordpiece *wordpiece, const char *text, size_t length,
                             size_t enough, struct list *ids, struct error *error) {
    enum status status = STATUS_OK;
    while (length > 0 && ids->count < enough && status == STATUS_OK) {
        int32_t id = -1;
        size_t size;
        size_t plain = find_special(wordpiece, text, length, &id, &size);
        status = push_plain(wordpiece, text, plain, enough, ids, error);
        if (status == STATUS_OK && id >= 0 && !list_push(ids, id)) {
            status = error_set(error, STATUS_OUT_OF_MEMORY, "no memory for %zu ids", ids->count);
        }
        text += plain + size;
        length -= plain + size;
    }
    return status;
}

enum status wordpiece_encode(const struct wordpiece *wordpiece, const char *text, size_t length,
                             size_t max_length, int32_t **out, size_t *count, struct error *error) {
    enum { ADDED = 2 }; /* [CLS] and [SEP] */
    *out = NULL;
    *count = 0;
    if (max_length != 0 && max_length < ADDED) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "max_length %zu has no room for [CLS] and [SEP]", max_length);
    }
    TRY(utf8_check(text, length, error));
    size_t most = max_length == 0 ? SIZE_MAX : max_length - 1; /* without [SEP] */
    struct list ids = {0};
    if (!list_push(&ids, wordpiece->special.cls)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for ids");
    }
    enum status status = push_text(wordpiece, text, length, most, &ids, error);
    ids.count = ids.count < most ? ids.count : most;
    if (status == STATUS_OK && !list_push(&ids, wordpiece->special.sep)) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no memory for %zu ids", ids.count);
    }
    if (status != STATUS_OK) {
        free(ids.items);
        return status;
    }
    *out = ids.items;
    *count = ids.count;
    return STATUS_OK;
}

/* Reads, checks and indexes the vocabulary file. */
#include "common/tokenizers/wordpiece/wordpiece_internal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/utf8.h"

/* The slot with this text's piece, or the empty slot where it would be added. */
static size_t find_slot(const struct wordpiece *wordpiece, const char *text, size_t length) {
    size_t slot = (size_t)hash_bytes(text, length) & (wordpiece->slot_count - 1);
    for (;;) {
        int32_t id = wordpiece->slots[slot];
        if (id < 0 || (strncmp(wordpiece->pieces[id], text, length) == 0 &&
                       wordpiece->pieces[id][length] == '\0')) {
            return slot;
        }
        slot = (slot + 1) & (wordpiece->slot_count - 1);
    }
}

int32_t wordpiece_lookup(const struct wordpiece *wordpiece, const char *text, size_t length) {
    return wordpiece->slots[find_slot(wordpiece, text, length)];
}

/* Number of lines; a last one without a line feed counts. */
static size_t count_lines(const char *data, size_t size) {
    size_t lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n';
    }
    return lines + (size > 0 && data[size - 1] != '\n');
}

static enum status check_line(const char *line, size_t length, size_t number, struct error *error) {
    if (length == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "line %zu of the vocabulary is empty", number);
    }
    if (memchr(line, '\0', length) != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "line %zu of the vocabulary has a NUL byte",
                         number);
    }
    struct error cause = {0};
    enum status status = utf8_check(line, length, &cause);
    if (status != STATUS_OK) {
        return error_set(error, status, "line %zu of the vocabulary: %s", number, cause.message);
    }
    return STATUS_OK;
}

/* Adds the piece on the line [line, end) to pieces and index; puts a NUL after it. */
static enum status add_line(struct wordpiece *wordpiece, char *line, char *end,
                            struct error *error) {
    if (end > line && end[-1] == '\r') {
        end--;
    }
    size_t id = wordpiece->count, length = (size_t)(end - line);
    TRY(check_line(line, length, id + 1, error));
    *end = '\0';
    size_t slot = find_slot(wordpiece, line, length);
    if (wordpiece->slots[slot] >= 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %zu of the vocabulary repeats line %d: '%.40s'", id + 1,
                         wordpiece->slots[slot] + 1, line);
    }
    wordpiece->slots[slot] = (int32_t)id;
    wordpiece->pieces[id] = line;
    wordpiece->count++;
    wordpiece->longest = length > wordpiece->longest ? length : wordpiece->longest;
    return STATUS_OK;
}

static enum status add_lines(struct wordpiece *wordpiece, size_t size, struct error *error) {
    char *line = wordpiece->text, *end_of_text = line + size;
    while (line < end_of_text) {
        char *end = memchr(line, '\n', (size_t)(end_of_text - line));
        end = end != NULL ? end : end_of_text;
        TRY(add_line(wordpiece, line, end, error));
        line = end + 1;
    }
    return STATUS_OK;
}

static enum status find_special(struct wordpiece *wordpiece, struct error *error) {
    struct {
        const char *piece;
        int32_t *id;
    } const needed[] = {{"[UNK]", &wordpiece->special.unk},
                        {"[CLS]", &wordpiece->special.cls},
                        {"[SEP]", &wordpiece->special.sep},
                        {"[PAD]", &wordpiece->special.pad}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        *needed[i].id = wordpiece_find(wordpiece, needed[i].piece);
        if (*needed[i].id < 0) {
            return error_set(error, STATUS_BAD_FORMAT, "vocabulary of %zu pieces has no %s",
                             wordpiece->count, needed[i].piece);
        }
    }
    wordpiece->mask = wordpiece_find(wordpiece, "[MASK]");
    return STATUS_OK;
}

/* Allocates memory for `lines` pieces and a copy of the file; false if memory runs out. */
static bool allocate(struct wordpiece *wordpiece, const char *data, size_t size, size_t lines) {
    wordpiece->slot_count = 16;
    while (wordpiece->slot_count < 2 * lines) {
        wordpiece->slot_count *= 2;
    }
    wordpiece->text = malloc(size + 1);
    wordpiece->pieces = calloc(lines + 1, sizeof *wordpiece->pieces);
    wordpiece->slots = malloc(wordpiece->slot_count * sizeof *wordpiece->slots);
    if (wordpiece->text == NULL || wordpiece->pieces == NULL || wordpiece->slots == NULL) {
        return false;
    }
    memset(wordpiece->slots, 0xff, wordpiece->slot_count * sizeof *wordpiece->slots); /* -1 */
    if (size > 0) {
        memcpy(wordpiece->text, data, size);
    }
    wordpiece->text[size] = '\0';
    return true;
}

static enum status read_vocabulary(struct wordpiece *wordpiece, const char *data, size_t size,
                                   size_t lines, struct error *error) {
    if (wordpiece == NULL || !allocate(wordpiece, data, size, lines)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for a vocabulary of %zu pieces",
                         lines);
    }
    TRY(add_lines(wordpiece, size, error));
    return find_special(wordpiece, error);
}

enum status wordpiece_parse(struct wordpiece **out, const char *data, size_t size,
                            struct error *error) {
    *out = NULL;
    size_t lines = count_lines(data, size);
    if (lines > INT32_MAX) {
        return error_set(error, STATUS_OVERFLOW, "vocabulary has %zu lines, more than %d", lines,
                         INT32_MAX);
    }
    struct wordpiece *wordpiece = calloc(1, sizeof *wordpiece);
    enum status status = read_vocabulary(wordpiece, data, size, lines, error);
    if (status != STATUS_OK) {
        wordpiece_free(wordpiece);
        return status;
    }
    *out = wordpiece;
    return STATUS_OK;
}

enum status wordpiece_open(struct wordpiece **wordpiece, const char *path, struct error *error) {
    *wordpiece = NULL;
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    enum status status = wordpiece_parse(wordpiece, (const char *)view.data, view.size, error);
    file_view_close(&view);
    return status == STATUS_OK ? status : error_prefix(error, status, path);
}

void wordpiece_free(struct wordpiece *wordpiece) {
    if (wordpiece != NULL) {
        free(wordpiece->text);
        free(wordpiece->pieces);
        free(wordpiece->slots);
        free(wordpiece);
    }
}

size_t wordpiece_size(const struct wordpiece *wordpiece) {
    return wordpiece->count;
}

const char *wordpiece_piece(const struct wordpiece *wordpiece, int32_t id) {
    return id >= 0 && (size_t)id < wordpiece->count ? wordpiece->pieces[id] : NULL;
}

int32_t wordpiece_find(const struct wordpiece *wordpiece, const char *piece) {
    return wordpiece_lookup(wordpiece, piece, strlen(piece));
}

struct wordpiece_special wordpiece_special(const struct wordpiece *wordpiece) {
    return wordpiece->special;
}

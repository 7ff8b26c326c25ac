/* Splits texts into words, for both kinds of vocabulary, and counts them. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/grow.h"
#include "common/base/hash.h"
#include "common/base/utf8.h"
#include "common/tokenizers/training/vocab.h"
#include "common/tokenizers/wordpiece/wordpiece_pretokenize.h"

/* ---- The table of words ---- */

enum { FIRST_SLOTS = 1 << 12 };

/* The slot with this word, or the empty slot where it would be added. */
static size_t find_slot(const struct vocab_words *w, const char *bytes, size_t length) {
    size_t slot = (size_t)hash_bytes(bytes, length) & (w->slot_count - 1);
    for (;;) {
        uint32_t entry = w->slots[slot];
        if (entry == 0) {
            return slot;
        }
        const struct vocab_word *word = &w->words[entry - 1];
        if (word->length == length && memcmp(w->text + word->start, bytes, length) == 0) {
            return slot;
        }
        slot = (slot + 1) & (w->slot_count - 1);
    }
}

/* Doubles the number of slots and adds all words again. */
static enum status grow_slots(struct vocab_words *w) {
    size_t count = w->slot_count == 0 ? FIRST_SLOTS : 2 * w->slot_count;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (slots == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    free(w->slots);
    w->slots = slots;
    w->slot_count = count;
    for (size_t i = 0; i < w->count; i++) {
        const struct vocab_word *word = &w->words[i];
        slots[find_slot(w, w->text + word->start, word->length)] = (uint32_t)i + 1;
    }
    return STATUS_OK;
}

static enum status append(struct vocab_words *w, const char *bytes, size_t length) {
    if (length > UINT32_MAX || w->count >= UINT32_MAX - 1) {
        return STATUS_OVERFLOW;
    }
    if (!array_grow(&w->words, &w->capacity, w->count + 1, sizeof *w->words) ||
        !array_grow(&w->text, &w->text_capacity, w->text_size + length, 1)) {
        return STATUS_OUT_OF_MEMORY;
    }
    memcpy(w->text + w->text_size, bytes, length);
    w->words[w->count++] = (struct vocab_word){w->text_size, (uint32_t)length, 1};
    w->text_size += length;
    return STATUS_OK;
}

enum status vocab_words_add(struct vocab_words *w, const char *bytes, size_t length) {
    if (2 * (w->count + 1) > w->slot_count) {
        TRY(grow_slots(w));
    }
    size_t slot = find_slot(w, bytes, length);
    if (w->slots[slot] != 0) {
        w->words[w->slots[slot] - 1].count++;
    } else {
        TRY(append(w, bytes, length));
        w->slots[slot] = (uint32_t)w->count;
    }
    w->total++;
    return STATUS_OK;
}

void vocab_words_free(struct vocab_words *w) {
    free(w->text);
    free(w->words);
    free(w->slots);
    *w = (struct vocab_words){0};
}

/* ---- Words of a text ---- */

enum { LONGEST_RUN = WORDPIECE_LONGEST_WORD, MOST_BYTES = 4 /* of a character */ };

static enum status add(struct vocab_words *words, const char *bytes, size_t length,
                       struct error *error) {
    enum status status = vocab_words_add(words, bytes, length);
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "%s with %zu different words",
                                           status_message(status), words->count);
}

/* ---- WordPiece ---- */

static enum status add_code_points(void *context, const int32_t *code_points, size_t count,
                                   struct error *error) {
    utf8proc_uint8_t bytes[MOST_BYTES * WORDPIECE_LONGEST_WORD];
    size_t length = 0;
    if (count > WORDPIECE_LONGEST_WORD) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < count; i++) {
        length += (size_t)utf8proc_encode_char(code_points[i], bytes + length);
    }
    return add(context, (const char *)bytes, length, error);
}

/* ---- BPE ---- */

enum group { BLANK, SPACE, LETTER, DIGIT, SIGN };

static enum group classify(int32_t code_point) {
    if (code_point == ' ') {
        return BLANK;
    }
    if (code_point == '\t' || code_point == '\n' || code_point == '\r') {
        return SPACE;
    }
    utf8proc_category_t category = utf8proc_category(code_point);
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) {
        return DIGIT;
    }
    bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
    return letter ? LETTER : SIGN;
}

/* The current run of characters. */
struct run {
    struct vocab_words *words;
    char bytes[MOST_BYTES * (LONGEST_RUN + 1)];
    size_t size, characters;
    enum group group; /* of its last character */
};

static enum status end_run(struct run *run, struct error *error) {
    enum status status = STATUS_OK;
    if (run->size > 0) {
        status = add(run->words, run->bytes, run->size, error);
    }
    run->size = 0;
    run->characters = 0;
    return status;
}

static void extend_run(struct run *run, const char *bytes, size_t size, enum group group) {
    memcpy(run->bytes + run->size, bytes, size);
    run->size += size;
    run->characters++;
    run->group = group;
}

/* The last blank of a run begins the next run; the blanks before it are a word. */
static enum status keep_one_blank(struct run *run, struct error *error) {
    run->size--;
    TRY(end_run(run, error));
    extend_run(run, " ", 1, BLANK);
    return STATUS_OK;
}

/* The group of the character at offset, or SIGN at the end of the text. Invalid UTF-8 is SIGN, too:
   the caller will report it. */
static enum group group_at(const char *text, size_t length, size_t offset) {
    int32_t code_point;
    return offset < length && utf8_next(text, length, &offset, &code_point, NULL) == STATUS_OK
               ? classify(code_point)
               : SIGN;
}

static enum status add_character(struct run *run, const char *bytes, size_t size, enum group group,
                                 struct error *error) {
    bool begins = run->characters == 1 && run->group == BLANK;
    bool same_run = run->group == group && group != DIGIT && run->characters < LONGEST_RUN;
    if (run->group == BLANK && group > SPACE) {
        TRY(begins ? STATUS_OK : keep_one_blank(run, error));
    } else if (!same_run) {
        TRY(end_run(run, error));
    }
    extend_run(run, bytes, size, group);
    return STATUS_OK;
}

static enum status count_runs(struct vocab_words *words, const char *text, size_t length,
                              struct error *error) {
    struct run run = {.words = words};
    if (length > 0) {
        extend_run(&run, " ", 1, BLANK); /* the tokenizer's dummy prefix */
    }
    for (size_t offset = 0; offset < length;) {
        size_t start = offset;
        int32_t code_point;
        TRY(utf8_next(text, length, &offset, &code_point, error));
        enum group group = classify(code_point);
        bool inside = code_point == '\'' && run.group == LETTER && run.characters > 0 &&
                      group_at(text, length, offset) == LETTER;
        TRY(add_character(&run, text + start, offset - start, group, error));
        run.group = inside ? LETTER : group;
    }
    return end_run(&run, error);
}

enum status vocab_count_text(struct vocab_words *words, enum vocab_kind kind, bool lowercase,
                             const char *text, size_t length, struct error *error) {
    return kind == VOCAB_WORDPIECE
               ? wordpiece_words(text, length, lowercase, add_code_points, words, error)
               : count_runs(words, text, length, error);
}

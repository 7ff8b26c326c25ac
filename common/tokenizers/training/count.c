/* Splits texts into words, for both kinds of vocabulary, and counts them. */
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "common/tokenizers/training/words.h"
#include "common/tokenizers/wordpiece/wordpiece_pretokenize.h"

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

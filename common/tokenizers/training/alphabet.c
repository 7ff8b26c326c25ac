#include "common/tokenizers/training/learn_internal.h"

#include <stdlib.h>

#include "common/base/utf8.h"
#include "common/tokenizers/wordpiece/wordpiece_pretokenize.h"

enum { CODE_POINTS = 0x110000 };

/* Counts each code point in all words. @param counts (CODE_POINTS) */
static enum status count_characters(uint64_t *counts, const struct vocab_words *words,
                                    struct error *error) {
    for (size_t i = 0; i < words->count; i++) {
        const struct vocab_word *word = &words->words[i];
        for (size_t offset = 0; offset < word->length;) {
            int32_t code_point;
            TRY(utf8_next(words->text + word->start, word->length, &offset, &code_point, error));
            counts[code_point] += word->count;
        }
    }
    return STATUS_OK;
}

static int by_count(const void *a, const void *b) {
    const struct vocab_character *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : (x->code_point > y->code_point) - (x->code_point < y->code_point);
}

static int by_code_point(const void *a, const void *b) {
    const struct vocab_character *x = a, *y = b;
    return (x->code_point > y->code_point) - (x->code_point < y->code_point);
}

/* Chooses the characters that are frequent enough; if they are too many, the most frequent. */
static enum status choose(struct vocab_alphabet *a, const uint64_t *counts,
                          const struct vocab_rules *rules) {
    size_t found = 0;
    for (int32_t c = 0; c < CODE_POINTS; c++) {
        found += counts[c] >= rules->min_count;
    }
    a->characters = calloc(found + 1, sizeof *a->characters);
    if (a->characters == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (int32_t c = 0; c < CODE_POINTS; c++) {
        if (counts[c] >= rules->min_count) {
            a->characters[a->count++] = (struct vocab_character){c, counts[c], -1, -1};
        }
    }
    qsort(a->characters, a->count, sizeof *a->characters, by_count);
    a->count = a->count < rules->characters ? a->count : rules->characters;
    qsort(a->characters, a->count, sizeof *a->characters, by_code_point);
    return STATUS_OK;
}

static void number(struct vocab_alphabet *a, enum vocab_kind kind) {
    for (size_t i = 0; i < a->count; i++) {
        a->characters[i].first = (int32_t)a->pieces++;
    }
    for (size_t i = 0; i < a->count && kind == VOCAB_WORDPIECE; i++) {
        if (!wordpiece_stands_alone(a->characters[i].code_point)) {
            a->characters[i].inner = (int32_t)a->pieces++;
        }
    }
}

static enum status create(struct vocab_alphabet *a, uint64_t *counts,
                          const struct vocab_words *words, const struct vocab_rules *rules,
                          struct error *error) {
    TRY(count_characters(counts, words, error));
    if (rules->kind == VOCAB_BPE) {
        counts[0] = 0;
        counts[' '] = UINT64_MAX; /* always needed: the tokenizer puts a blank before a text */
    }
    if (choose(a, counts, rules) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the characters");
    }
    if (a->count == (size_t)(rules->kind == VOCAB_BPE)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "no character occurs %llu times: there is nothing to learn from",
                         (unsigned long long)rules->min_count);
    }
    number(a, rules->kind);
    return STATUS_OK;
}

enum status vocab_alphabet_create(struct vocab_alphabet *alphabet, const struct vocab_words *words,
                                  const struct vocab_rules *rules, struct error *error) {
    *alphabet = (struct vocab_alphabet){0};
    uint64_t *counts = calloc(CODE_POINTS, sizeof *counts);
    if (counts == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory to count characters");
    }
    enum status status = create(alphabet, counts, words, rules, error);
    free(counts);
    if (status != STATUS_OK) {
        vocab_alphabet_free(alphabet);
    }
    return status;
}

const struct vocab_character *vocab_alphabet_find(const struct vocab_alphabet *alphabet,
                                                  int32_t code_point) {
    const struct vocab_character key = {.code_point = code_point};
    return bsearch(&key, alphabet->characters, alphabet->count, sizeof key, by_code_point);
}

void vocab_alphabet_free(struct vocab_alphabet *alphabet) {
    free(alphabet->characters);
    *alphabet = (struct vocab_alphabet){0};
}

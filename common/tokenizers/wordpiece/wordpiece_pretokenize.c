#include "common/tokenizers/wordpiece/wordpiece_pretokenize.h"

#include <stdlib.h>

#include "common/tokenizers/wordpiece/wordpiece_internal.h"

static bool punctuation(int32_t code_point) {
    return character_classify(code_point) == CHARACTER_PUNCTUATION;
}

bool wordpiece_stands_alone(int32_t code_point) {
    return punctuation(code_point) || character_is_cjk(code_point);
}

bool wordpiece_next_word(const struct list *text, size_t *start, size_t *end) {
    size_t at = *end;
    while (at < text->count && text->items[at] == ' ') {
        at++;
    }
    *start = at;
    *end = at;
    if (at == text->count) {
        return false;
    }
    *end = at + 1;
    while (!punctuation(text->items[at]) && *end < text->count && text->items[*end] != ' ' &&
           !punctuation(text->items[*end])) {
        ++*end;
    }
    return true;
}

enum status wordpiece_words(const char *text, size_t length, bool lowercase,
                            wordpiece_visitor *visit, void *context, struct error *error) {
    struct list normal = {0};
    enum status status = lowercase ? wordpiece_normalize(text, length, &normal, error)
                                   : wordpiece_normalize_cased(text, length, &normal, error);
    size_t start, end = 0;
    while (status == STATUS_OK && wordpiece_next_word(&normal, &start, &end)) {
        status = visit(context, normal.items + start, end - start, error);
    }
    free(normal.items);
    return status;
}

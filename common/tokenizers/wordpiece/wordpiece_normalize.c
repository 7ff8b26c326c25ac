/*
 * NFD sorts the combining marks after a letter by combining class; marks of one
 * class keep their order. Nearly all marks are dropped right after, so only the
 * order of the few kept marks matters. A list collects them until the next
 * character that marks cannot be reordered across; then they are sorted.
 */
#include "common/tokenizers/wordpiece/wordpiece_internal.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/utf8.h"

struct normalizer {
    struct list *out;
    struct list waiting; /* kept marks since the last starter */
    bool cased;          /* keep case and accents */
};

static bool push_lower(struct normalizer *normalizer, int32_t code_point) {
    return list_push(normalizer->out, character_lower(code_point));
}

/* Appends the waiting marks, one combining class after another. */
static bool flush(struct normalizer *normalizer) {
    struct list *waiting = &normalizer->waiting;
    int last = -1;
    for (size_t pushed = 0; pushed < waiting->count;) {
        int next = INT32_MAX; /* the least class above the last */
        for (size_t i = 0; i < waiting->count; i++) {
            int combining = character_combining_class(waiting->items[i]);
            next = combining > last && combining < next ? combining : next;
        }
        for (size_t i = 0; i < waiting->count; i++) {
            if (character_combining_class(waiting->items[i]) == next) {
                pushed++;
                if (!push_lower(normalizer, waiting->items[i])) {
                    return false;
                }
            }
        }
        last = next;
    }
    waiting->count = 0;
    return true;
}

/* Appends one code point of a decomposed character. */
static bool push_part(struct normalizer *normalizer, int32_t code_point) {
    switch (character_classify(code_point)) {
    case CHARACTER_MARK:
        return true;
    case CHARACTER_STARTER_MARK:
        return flush(normalizer);
    case CHARACTER_KEPT_MARK:
        return list_push(&normalizer->waiting, code_point);
    default:
        return flush(normalizer) && push_lower(normalizer, code_point);
    }
}

static bool push_cased(struct list *out, int32_t code_point, bool ideograph) {
    return (!ideograph || list_push(out, ' ')) && list_push(out, code_point) &&
           (!ideograph || list_push(out, ' '));
}

static bool push_character(struct normalizer *normalizer, int32_t code_point) {
    enum character_class kind = character_classify(code_point);
    if (kind == CHARACTER_DROPPED) {
        return true;
    }
    if (kind == CHARACTER_BLANK) {
        return push_part(normalizer, ' ');
    }
    bool ideograph = character_is_cjk(code_point);
    if (normalizer->cased) {
        return push_cased(normalizer->out, code_point, ideograph);
    }
    if (ideograph && !push_part(normalizer, ' ')) {
        return false;
    }
    int32_t parts[CHARACTER_MOST_PARTS];
    size_t count = character_decompose(code_point, parts);
    for (size_t i = 0; i < count; i++) {
        if (!push_part(normalizer, parts[i])) {
            return false;
        }
    }
    return !ideograph || push_part(normalizer, ' ');
}

static enum status normalize(const char *text, size_t length, bool cased, struct list *out,
                             struct error *error) {
    struct normalizer normalizer = {.out = out, .cased = cased};
    enum status status = STATUS_OK;
    bool fits = true;
    for (size_t offset = 0; offset < length && fits && status == STATUS_OK;) {
        int32_t code_point;
        status = utf8_next(text, length, &offset, &code_point, error);
        fits = status != STATUS_OK || push_character(&normalizer, code_point);
    }
    fits = fits && flush(&normalizer);
    free(normalizer.waiting.items);
    if (!fits) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory to tokenize %zu bytes of text",
                         length);
    }
    return status;
}

enum status wordpiece_normalize(const char *text, size_t length, struct list *out,
                                struct error *error) {
    return normalize(text, length, false, out, error);
}

enum status wordpiece_normalize_cased(const char *text, size_t length, struct list *out,
                                      struct error *error) {
    return normalize(text, length, true, out, error);
}

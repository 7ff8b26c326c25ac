#include "common/tokenizers/training/words.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/base/hash.h"

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

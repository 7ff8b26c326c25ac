/**
 * @file wordpiece_pretokenize.h
 * @brief The words that BERT's tokenizer splits into pieces, for programs that count words.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_PRETOKENIZE_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_PRETOKENIZE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/grow.h"
#include "common/base/status.h"

/** A growing list of code points or ids. Zero-initialise before use; free(items)
 * after. */
struct list {
    int32_t *items;
    size_t count, capacity;
};

/** Appends an item. @return false if there is no memory; then the list is unchanged. */
static inline bool list_push(struct list *list, int32_t item) {
    if (!array_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items)) {
        return false;
    }
    list->items[list->count++] = item;
    return true;
}

/** Code points of the longest word that has pieces; a longer one is [UNK]. */
enum { WORDPIECE_LONGEST_WORD = 100 };

/**
 * @brief Finds the next word, after @p *end, in normalised text: words are separated by blanks, and
 *        each punctuation character is a word.
 * @param start receives the word's first code point
 * @param end   0 for the first word; receives the code point after the word
 * @return false if there are no more words
 */
bool wordpiece_next_word(const struct list *text, size_t *start, size_t *end);

/** @return whether a character is always a word by itself: punctuation, an ideograph. */
bool wordpiece_stands_alone(int32_t code_point);

/** Called for each word, @p count code points, until it returns a status that is not STATUS_OK. */
typedef enum status wordpiece_visitor(void *context, const int32_t *code_points, size_t count,
                                      struct error *error);

/**
 * @brief Visits the words of a text as wordpiece_encode() splits them, except that a special piece
 *        such as "[UNK]" in the text is three words.
 * @param text @p length bytes of valid UTF-8, else STATUS_BAD_UTF8 with the offset
 * @param lowercase false: letters keep their case and accents, as in BERT's cased models
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_OUT_OF_MEMORY, or the status of @p visit
 */
MUST_CHECK enum status wordpiece_words(const char *text, size_t length, bool lowercase,
                                       wordpiece_visitor *visit, void *context,
                                       struct error *error);

#endif

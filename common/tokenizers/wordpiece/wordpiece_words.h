/**
 * @file wordpiece_words.h
 * @brief The words that BERT's tokenizer cuts into pieces, for whoever counts them.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_WORDS_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_WORDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/tokenizers/wordpiece/wordpiece_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Code points of the longest word that has pieces; a longer one is [UNK]. */
enum { WORDPIECE_LONGEST_WORD = 100 };

/**
 * @brief Finds the word behind @p *end in normalised text: split at blanks and around punctuation.
 * @param start receives where it begins, @p end where it ends; begin with *end = 0
 * @return false when there is none
 */
bool wordpiece_next_word(const struct list *text, size_t *start, size_t *end);

/** Whether a character is a word of its own wherever it stands: punctuation, an ideograph. */
bool wordpiece_stands_alone(int32_t code_point);

/** Is given one word, @p count code points. A status other than STATUS_OK ends the walk. */
typedef enum status wordpiece_visitor(void *context, const int32_t *code_points, size_t count,
                                      struct error *error);

/**
 * @brief Walks over the words of a text as wordpiece_encode() sees them. "[UNK]" and its like,
 *        spelt out, are three words here.
 * @param text @p length bytes of valid UTF-8, else STATUS_BAD_UTF8 with the offset
 * @param lowercase false: letters keep their case and accents, as in BERT's cased models
 */
MUST_CHECK enum status wordpiece_words(const char *text, size_t length, bool lowercase,
                                       wordpiece_visitor *visit, void *context,
                                       struct error *error);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file words.h
 * @brief Words and how often they came: all that a vocabulary is learnt from.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_WORDS_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_WORDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vocab_word {
    size_t start;    /**< in `text` */
    uint32_t length; /**< bytes */
    uint64_t count;  /**< how often it came */
};

/** Different words, in the order in which they first came; zero-initialise. */
struct vocab_words {
    char *text; /**< one word after another */
    size_t text_size, text_capacity;
    struct vocab_word *words; /**< (count) */
    size_t count, capacity;
    uint32_t *slots; /**< (slot_count) index + 1 by hash, 0 where empty */
    size_t slot_count;
    uint64_t total; /**< all words, each as often as it came */
};

/** What a vocabulary is for, which says what a word is. */
enum vocab_kind { VOCAB_WORDPIECE, VOCAB_BPE };

/**
 * @brief Counts one word once more.
 * @param bytes @p length bytes, at least 1
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, STATUS_OVERFLOW (2^32 - 2 different words)
 */
MUST_CHECK enum status vocab_words_add(struct vocab_words *words, const char *bytes, size_t length);

/**
 * @brief Counts the words of a text.
 *
 * WordPiece: words as the tokenizer splits and normalises them (wordpiece_words.h), those that it
 * takes for [UNK] because of their length left out.
 * BPE: runs of letters, or of signs; a digit by itself; runs of white space. One blank before a run
 * that is not white space begins it, as does the one that the tokenizer puts before the text. An
 * apostrophe between letters begins the run behind it: "don't" is "don" and "'t". Pieces therefore
 * never reach over a word's end, and no digit is merged with another. Runs are cut after 100
 * characters.
 *
 * @param text @p length bytes of valid UTF-8, else STATUS_BAD_UTF8 with the offset
 * @param lowercase WordPiece: letters lose case and accents
 */
MUST_CHECK enum status vocab_count_text(struct vocab_words *words, enum vocab_kind kind,
                                        bool lowercase, const char *text, size_t length,
                                        struct error *error);

/** Frees; a zero-initialised one is allowed. */
void vocab_words_free(struct vocab_words *words);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file words.h
 * @brief Counted words, from which a vocabulary is learnt.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_WORDS_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_WORDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

struct vocab_word {
    size_t start;    /**< in `text` */
    uint32_t length; /**< bytes */
    uint64_t count;  /**< number of occurrences */
};

/** Different words, in the order of their first occurrence; zero-initialise. */
struct vocab_words {
    char *text; /**< one word after another */
    size_t text_size, text_capacity;
    struct vocab_word *words; /**< (count) */
    size_t count, capacity;
    uint32_t *slots; /**< (slot_count) index + 1 by hash, 0 where empty */
    size_t slot_count;
    uint64_t total; /**< occurrences of all words */
};

/** Kind of a vocabulary; it determines how texts are split into words. */
enum vocab_kind { VOCAB_WORDPIECE, VOCAB_BPE };

/**
 * @brief Adds one occurrence of a word.
 * @param bytes @p length bytes, at least 1
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, STATUS_OVERFLOW (2^32 - 2 different words)
 */
MUST_CHECK enum status vocab_words_add(struct vocab_words *words, const char *bytes, size_t length);

/**
 * @brief Counts the words of a text.
 *
 * WordPiece: words as the tokenizer splits and normalises them (wordpiece_words.h), without those
 * that are [UNK] because of their length.
 * BPE: runs of letters, runs of signs, single digits, runs of white space. One blank before a run
 * that is not white space belongs to that run; so does the blank that the tokenizer puts before the
 * text. An apostrophe between letters begins the next run: "don't" is "don" and "'t". So no piece
 * crosses the end of a word, and no two digits are merged. Runs are cut after 100 characters.
 *
 * @param text @p length bytes of valid UTF-8, else STATUS_BAD_UTF8 with the offset
 * @param lowercase WordPiece: remove case and accents
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_OUT_OF_MEMORY, STATUS_OVERFLOW
 */
MUST_CHECK enum status vocab_count_text(struct vocab_words *words, enum vocab_kind kind,
                                        bool lowercase, const char *text, size_t length,
                                        struct error *error);

/** Frees; a zero-initialised one is allowed. */
void vocab_words_free(struct vocab_words *words);

#endif

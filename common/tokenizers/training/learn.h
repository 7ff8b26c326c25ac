/**
 * @file learn.h
 * @brief Learns pieces from counted words: starts with characters, then repeatedly merges the most
 *        frequent pair.
 *
 * Byte-pair encoding (P. Gage 1994; Sennrich, Haddow and Birch 2016). The same text between two
 * piece boundaries is always split in the same way, so no two pairs make the same piece, and the
 * tokenizer of bpe.h, which looks up the joined text of a pair, splits a word as it was split here.
 *
 * Counts are updated, not recomputed: a merge visits only the words that have the pair, and a heap
 * gives the most frequent pair. Of equal counts the text that is first in byte order wins, and of
 * equal texts the one at the beginning of a word. The result depends only on the words and their
 * counts, not on their order.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_LEARN_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_LEARN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/tokenizers/training/words.h"

struct vocab_rules {
    enum vocab_kind kind;
    size_t pieces;      /**< most pieces, including characters */
    size_t characters;  /**< most different characters; the most frequent are kept, of equals the
                             lower code point */
    uint64_t min_count; /**< a rarer character or pair does not become a piece; at least 1 */
};

struct vocab_piece {
    size_t start;    /**< in `text` */
    uint32_t length; /**< bytes */
    bool inner;      /**< WordPiece: only inside a word, spelt "##..." */
};

/** The learnt pieces, and statistics. */
struct vocab_pieces {
    char *text;
    struct vocab_piece *pieces; /**< (count) characters by code point, those at the beginning of a
                                     word first; then merges in the order in which they were made */
    size_t count;
    size_t characters; /**< pieces of one character */
    uint64_t tokens;   /**< tokens of all occurrences of all words; a byte without a piece counts as
                            one, and so does a word that is [UNK] */
    uint64_t unknown;  /**< WordPiece: occurrences of words with a character that is no piece */
};

/**
 * @brief Learns pieces; shows its progress on a terminal.
 *
 * WordPiece: each character becomes a piece for the beginning of a word and one for its inside;
 * characters that are always words by themselves (wordpiece_words.h) get only the first. BPE:
 * U+0000 is no character, " " always is one.
 *
 * @return STATUS_OK, with fewer than rules->pieces pieces if no more pairs are frequent enough;
 *         STATUS_INVALID_ARGUMENT if the characters alone are more than rules->pieces, with the
 *         number; STATUS_BAD_FORMAT if there is no character; STATUS_OUT_OF_MEMORY,
 *         STATUS_OVERFLOW
 */
MUST_CHECK enum status vocab_learn(struct vocab_pieces *pieces, const struct vocab_words *words,
                                   const struct vocab_rules *rules, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void vocab_pieces_free(struct vocab_pieces *pieces);

#endif

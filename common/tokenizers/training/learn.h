/**
 * @file learn.h
 * @brief Pieces learnt from counted words: characters, then again and again the commonest pair.
 *
 * Byte-pair encoding (P. Gage 1994; Sennrich, Haddow and Birch 2016). Between two boundaries of
 * pieces the same text is always cut in the same way, so that no two pairs make the same piece,
 * and the tokenizer of bpe.h, which goes by what a pair spells, cuts a word as it was cut here.
 *
 * Counts are kept up to date: a merge visits only the words that have the pair, and a heap knows
 * the commonest. Of equal counts the text that comes first byte by byte wins, a word's beginning
 * before a part inside one. The result depends on the words and their counts alone, not on their
 * order.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_LEARN_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_LEARN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/tokenizers/training/words.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vocab_rules {
    enum vocab_kind kind;
    size_t pieces;      /**< most pieces, characters among them */
    size_t characters;  /**< most different characters; the commonest, of equals the lower code
                             point */
    uint64_t min_count; /**< a character or a pair that came less often is no piece; at least 1 */
};

struct vocab_piece {
    size_t start;    /**< in `text` */
    uint32_t length; /**< bytes */
    bool inner;      /**< WordPiece: only inside a word, spelt "##..." */
};

/** What was learnt. */
struct vocab_pieces {
    char *text;
    struct vocab_piece *pieces; /**< (count) characters by code point, those at a word's beginning
                                     first; then merges in the order they were made */
    size_t count;
    size_t characters; /**< pieces of one character */
    uint64_t tokens;   /**< pieces that all the words have, each as often as it came; a byte that is
                            in no piece counts as one, a word that is [UNK] too */
    uint64_t unknown;  /**< WordPiece: words with a character that is no piece */
};

/**
 * @brief Learns pieces; progress is shown on a terminal.
 *
 * WordPiece: each character becomes a piece at a word's beginning and one inside a word; those that
 * stand alone (wordpiece_words.h) the first only. BPE: U+0000 is no character, " " always is one.
 *
 * @return STATUS_OK, with less pieces where no pair is left that came often enough;
 *         STATUS_INVALID_ARGUMENT when the characters alone are more than rules->pieces, with the
 *         number; STATUS_BAD_FORMAT when there is no character; STATUS_OUT_OF_MEMORY,
 *         STATUS_OVERFLOW
 */
MUST_CHECK enum status vocab_learn(struct vocab_pieces *pieces, const struct vocab_words *words,
                                   const struct vocab_rules *rules, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void vocab_pieces_free(struct vocab_pieces *pieces);

#ifdef __cplusplus
}
#endif

#endif

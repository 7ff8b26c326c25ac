/**
 * @file vocab.h
 * @brief Vocabularies learnt from texts: counts words, learns pieces from them, writes the pieces.
 *
 * Starts with characters, then repeatedly merges the most frequent pair.
 * Byte-pair encoding (P. Gage 1994; Sennrich, Haddow and Birch 2016). The same text between two
 * piece boundaries is always split in the same way, so no two pairs make the same piece, and the
 * tokenizer of bpe.h, which looks up the joined text of a pair, splits a word as it was split here.
 *
 * Counts are updated, not recomputed: a merge visits only the words that have the pair, and a heap
 * gives the most frequent pair. Of equal counts the text that is first in byte order wins, and of
 * equal texts the one at the beginning of a word. The result depends only on the words and their
 * counts, not on their order.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_VOCAB_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_VOCAB_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/texts/text_dataset.h"

/** @name Counted words
 * @{ */
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
 * WordPiece: words as the tokenizer splits and normalises them (wordpiece_pretokenize.h), without
 * those that are [UNK] because of their length. BPE: runs of letters, runs of signs, single digits,
 * runs of white space. One blank before a run that is not white space belongs to that run; so does
 * the blank that the tokenizer puts before the text. An apostrophe between letters begins the next
 * run: "don't" is "don" and "'t". So no piece crosses the end of a word, and no two digits are
 * merged. Runs are cut after 100 characters.
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

/** The texts to read. */
struct vocab_sources {
    const char *dataset; /**< a name of text_dataset.h; NULL: by the paths, text_dataset_choose() */
    const char *data;    /**< paths, separated by commas */
    const char *split;   /**< splits, separated by commas: one for each path, one for all paths, or
                              several of the only path */
    struct text_columns columns; /**< of the user's own files */
    size_t skip, limit; /**< texts to skip and to read of each path and split; limit 0: all */
};

/**
 * @brief Counts the words of all texts; shows its progress on a terminal.
 * @param lowercase as for vocab_count_text()
 * @param texts     receives the number of texts
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT (the lists), or the status of text_dataset_open() or
 *         vocab_count_text()
 */
MUST_CHECK enum status vocab_sources_count(const struct vocab_sources *sources,
                                           enum vocab_kind kind, bool lowercase,
                                           struct vocab_words *words, size_t *texts,
                                           struct error *error);
/** @} */

/** @name Learnt pieces
 * @{ */
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
 * characters that are always words by themselves (wordpiece_pretokenize.h) get only the first. BPE:
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
/** @} */

/** @name Files that the tokenizers read
 * @{ */
/** Pieces of every WordPiece vocabulary: [PAD], [UNK], [CLS], [SEP], [MASK]. */
enum { VOCAB_WORDPIECE_SPECIAL = 5 };

/** Tokens of every BPE vocabulary: <unk>, <s>, </s> and the 256 bytes. */
enum { VOCAB_BPE_SPECIAL = 3 + 256 };

/** @return number of special pieces, which are not learnt. */
size_t vocab_special_count(enum vocab_kind kind);

/**
 * @brief Makes the content of the file.
 *
 * WordPiece: vocab.txt, one piece a line: the special ones, then all in the order of learning.
 * BPE: llama2.c's tokenizer.bin: the special tokens, scored 0; the merges in their order, scored
 * 0, -1, -2, ...; then the characters, whose scores go on downward, as in Llama2's own.
 *
 * @param data receives memory that the caller frees
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, STATUS_OVERFLOW
 */
MUST_CHECK enum status vocab_write(enum vocab_kind kind, const struct vocab_pieces *pieces,
                                   char **data, size_t *size);
/** @} */

#endif

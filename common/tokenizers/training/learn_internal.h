/**
 * @file learn_internal.h
 * @brief Shared by the files that learn a vocabulary: the characters of counted words; and pairs of
 *        adjacent pieces, their counts, the words that have them, and the most frequent pair.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_LEARN_INTERNAL_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_LEARN_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/tokenizers/training/vocab.h"

/** @name Characters
 * @{ */
struct vocab_character {
    int32_t code_point;
    uint64_t count; /**< number of occurrences */
    int32_t first;  /**< its piece at the beginning of a word; BPE: its only piece */
    int32_t inner;  /**< its piece inside a word, or -1 */
};

/** Characters by code point. */
struct vocab_alphabet {
    struct vocab_character *characters; /**< (count) */
    size_t count;
    size_t pieces; /**< number of pieces; ids of all `first` ones, then of all `inner` ones */
};

/**
 * @brief Chooses the characters that the rules allow and numbers their pieces.
 * @return STATUS_OK, STATUS_BAD_FORMAT (no character is frequent enough), STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status vocab_alphabet_create(struct vocab_alphabet *alphabet,
                                             const struct vocab_words *words,
                                             const struct vocab_rules *rules, struct error *error);

/** @return the character, or NULL. */
const struct vocab_character *vocab_alphabet_find(const struct vocab_alphabet *alphabet,
                                                  int32_t code_point);

/** Frees; a zero-initialised one is allowed. */
void vocab_alphabet_free(struct vocab_alphabet *alphabet);
/** @} */

/** @name Pairs
 * @{ */
/** Two adjacent pieces, a candidate for a merge. */
struct candidate {
    int32_t left, right;
    size_t start;    /**< of the joined text, in `text` of struct pairs */
    uint32_t length; /**< of the joined text, in bytes */
    bool inner;      /**< the left piece is inside a word */
    bool touched;    /**< is in the list `touched` of struct pairs */
    uint64_t count;
    uint32_t *words; /**< (word_count) words that may have it: some are listed twice, some have it
                        no longer */
    size_t word_count, word_capacity;
};

struct heap_entry {
    uint64_t count; /**< the candidate's count when it was pushed; it may have fallen since */
    uint32_t candidate;
};

struct pairs {
    char *text; /**< of pieces and candidates */
    size_t text_size, text_capacity;
    struct vocab_piece *pieces;
    size_t piece_count, piece_capacity;
    struct candidate *candidates;
    size_t count, capacity;
    uint32_t *slots; /**< (slot_count) candidate + 1 by hash of its two pieces, 0 where empty */
    size_t slot_count;
    struct heap_entry *heap;
    size_t heap_count, heap_capacity;
    uint32_t *touched; /**< (touched_count) candidates whose count has risen since
                            pairs_update_heap() */
    size_t touched_count, touched_capacity;
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY, as the other functions; some also STATUS_OVERFLOW. */
MUST_CHECK enum status pairs_create(struct pairs *pairs);

/** Frees; a zero-initialised one is allowed. */
void pairs_free(struct pairs *pairs);

/** Adds a piece of one character. */
MUST_CHECK enum status pairs_add_character(struct pairs *pairs, const char *bytes, size_t length,
                                           bool inner);

/** Finds or makes the candidate of two pieces. */
MUST_CHECK enum status pairs_find(struct pairs *pairs, int32_t left, int32_t right,
                                  uint32_t *candidate);

/** Adds @p count occurrences in @p word to the candidate's count. */
MUST_CHECK enum status pairs_add(struct pairs *pairs, uint32_t candidate, uint32_t word,
                                 uint64_t count);

/** Pushes the candidates whose count has risen since the last call onto the heap. */
MUST_CHECK enum status pairs_update_heap(struct pairs *pairs);

/**
 * @brief Pops the most frequent candidate; of equals the one whose text is first in byte order.
 * @param found receives false if there is none
 */
MUST_CHECK enum status pairs_take(struct pairs *pairs, uint32_t *candidate, bool *found);

/** Adds a piece made from the candidate; it is the last piece. */
MUST_CHECK enum status pairs_make_piece(struct pairs *pairs, uint32_t candidate);
/** @} */

#endif

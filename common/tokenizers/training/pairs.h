/**
 * @file pairs.h
 * @brief Adjacent pieces, how often they came and in which words, and the commonest of them; for
 *        the files of this package alone.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_PAIRS_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_PAIRS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/tokenizers/training/learn.h"

/** Two adjacent pieces, which are to become one. */
struct candidate {
    int32_t left, right;
    size_t start; /**< of what they spell, in the text of the pairs */
    uint32_t length;
    bool inner;   /**< the left one is inside a word */
    bool touched; /**< is in the list of those that became more */
    uint64_t count;
    uint32_t *words; /**< (word_count) where it may be; some twice, some no longer */
    size_t word_count, word_capacity;
};

struct heap_entry {
    uint64_t count; /**< the candidate's when it was put in; it may have become less */
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
    uint32_t *touched;
    size_t touched_count, touched_capacity;
};

MUST_CHECK enum status pairs_create(struct pairs *pairs);

/** Frees; a zero-initialised one is allowed. */
void pairs_free(struct pairs *pairs);

/** Adds a piece of one character. */
MUST_CHECK enum status pairs_add_character(struct pairs *pairs, const char *bytes, size_t length,
                                           bool inner);

/** Finds or makes the candidate of two pieces. */
MUST_CHECK enum status pairs_find(struct pairs *pairs, int32_t left, int32_t right,
                                  uint32_t *candidate);

/** The candidate came @p count times more, in @p word. */
MUST_CHECK enum status pairs_add(struct pairs *pairs, uint32_t candidate, uint32_t word,
                                 uint64_t count);

/** Puts what became more since the last call into the heap. */
MUST_CHECK enum status pairs_settle(struct pairs *pairs);

/**
 * @brief Takes the commonest candidate; of equals the one whose text comes first.
 * @param found receives false when there is none
 */
MUST_CHECK enum status pairs_take(struct pairs *pairs, uint32_t *candidate, bool *found);

/** Makes the candidate a piece, the last one. */
MUST_CHECK enum status pairs_make_piece(struct pairs *pairs, uint32_t candidate);

#endif

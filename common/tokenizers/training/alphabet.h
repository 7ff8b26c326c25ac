/**
 * @file alphabet.h
 * @brief The characters of counted words; private to this package.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_ALPHABET_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_ALPHABET_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/tokenizers/training/learn.h"

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

#endif

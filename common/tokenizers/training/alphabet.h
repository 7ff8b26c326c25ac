/**
 * @file alphabet.h
 * @brief The characters of counted words; for the files of this package alone.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_ALPHABET_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_ALPHABET_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/tokenizers/training/learn.h"

struct vocab_character {
    int32_t code_point;
    uint64_t count; /**< how often it came */
    int32_t first;  /**< its piece at a word's beginning; BPE: its piece */
    int32_t inner;  /**< its piece inside a word, or -1 */
};

/** Characters by code point. */
struct vocab_alphabet {
    struct vocab_character *characters; /**< (count) */
    size_t count;
    size_t pieces; /**< `first` and `inner` of all: 0 .. pieces - 1, the first ones before */
};

/** Chooses the characters that the rules allow and numbers their pieces. */
MUST_CHECK enum status vocab_alphabet_create(struct vocab_alphabet *alphabet,
                                             const struct vocab_words *words,
                                             const struct vocab_rules *rules, struct error *error);

/** @return the character, or NULL. */
const struct vocab_character *vocab_alphabet_find(const struct vocab_alphabet *alphabet,
                                                  int32_t code_point);

/** Frees; a zero-initialised one is allowed. */
void vocab_alphabet_free(struct vocab_alphabet *alphabet);

#endif

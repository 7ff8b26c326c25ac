/**
 * @file wordpiece_vocabulary.h
 * @brief The contents of a struct wordpiece; private to the WordPiece tokenizer.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_VOCABULARY_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_VOCABULARY_H_

#include <stddef.h>
#include <stdint.h>

#include "common/tokenizers/wordpiece/wordpiece.h"

struct wordpiece {
    size_t count;
    size_t longest;    /**< bytes of the longest piece */
    char **pieces;     /**< (count) NUL-terminated, into `text` */
    char *text;        /**< the vocabulary, a NUL after each piece */
    int32_t *slots;    /**< (slot_count) ids by hash of their text, -1 where empty */
    size_t slot_count; /**< a power of two, more than `count` */
    struct wordpiece_special special;
    int32_t mask; /**< id of [MASK], or -1 */
};

/** @return id of exactly these bytes, or -1. */
int32_t wordpiece_lookup(const struct wordpiece *wordpiece, const char *text, size_t length);

#endif

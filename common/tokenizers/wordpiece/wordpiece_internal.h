/**
 * @file wordpiece_internal.h
 * @brief Shared by the files of the WordPiece tokenizer: the contents of a struct wordpiece, and
 *        normalisation of text for BERT: cleaned, decomposed, without accents, lower-case.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_INTERNAL_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_INTERNAL_H_

#include "common/tokenizers/wordpiece/wordpiece.h"
#include "common/tokenizers/wordpiece/wordpiece_pretokenize.h"

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

/**
 * @brief Appends the code points of normalised text to @p out.
 *
 * Drops CHARACTER_DROPPED, replaces white space by ' ', and puts a ' ' on both sides of
 * ideographs. Then NFD, marks of category Mn dropped, lower-case.
 *
 * @param text @p length bytes of valid UTF-8; anything else is STATUS_BAD_UTF8
 * @return STATUS_OK, STATUS_BAD_UTF8 or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status wordpiece_normalize(const char *text, size_t length, struct list *out,
                                           struct error *error);

/** As wordpiece_normalize(), but letters keep their case and their accents: BERT's cased models. */
MUST_CHECK enum status wordpiece_normalize_cased(const char *text, size_t length, struct list *out,
                                                 struct error *error);

#endif

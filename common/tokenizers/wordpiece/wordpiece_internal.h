/**
 * @file wordpiece_internal.h
 * @brief Shared by the files of the WordPiece tokenizer: the contents of a struct wordpiece;
 *        normalisation of text for BERT: cleaned, decomposed, without accents, lower-case; and
 *        classes of characters.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_INTERNAL_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/*
 * Classes of characters are those of the Hugging Face library, which uses Unicode 8 for categories
 * and 9 for decomposition. Newer tables would give other ids for the same vocabulary: for example,
 * a mark added by a newer Unicode is not stripped. See expectations/make_wordpiece_unicode.py.
 */
enum character_class {
    CHARACTER_OTHER,
    CHARACTER_DROPPED,      /**< control, format, private use; U+0000, U+FFFD */
    CHARACTER_BLANK,        /**< white space that is not a control character; tab, LF, CR */
    CHARACTER_PUNCTUATION,  /**< categories P*, and all of ASCII's signs */
    CHARACTER_MARK,         /**< category Mn, stripped; marks are reordered across it */
    CHARACTER_STARTER_MARK, /**< category Mn, stripped; marks are not reordered across it */
    CHARACTER_KEPT_MARK     /**< not Mn, but has a combining class: kept and reordered */
};

/** @return class of a code point. */
enum character_class character_classify(int32_t code_point);

/** @return combining class of a CHARACTER_KEPT_MARK, 1 to 254. */
int character_combining_class(int32_t code_point);

/** @return true for the CJK ideographs that BERT puts blanks around. */
bool character_is_cjk(int32_t code_point);

/** @return the lower-case letter, or the code point itself. */
int32_t character_lower(int32_t code_point);

enum { CHARACTER_MOST_PARTS = 8 };

/**
 * @brief Full canonical decomposition of one code point.
 * @param parts receives the code points
 * @return number of code points, at least 1
 */
size_t character_decompose(int32_t code_point, int32_t parts[CHARACTER_MOST_PARTS]);

#endif

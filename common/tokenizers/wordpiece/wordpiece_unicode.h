/**
 * @file wordpiece_unicode.h
 * @brief Classes of characters in BERT's tokenizer; private to the WordPiece tokenizer.
 *
 * The classes are those of the Hugging Face library, which uses Unicode 8 for
 * categories and 9 for decomposition. Newer tables would give other ids for the
 * same vocabulary: for example, a mark added by a newer Unicode is not stripped.
 * See expectations/make_wordpiece_unicode.py.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_UNICODE_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_UNICODE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

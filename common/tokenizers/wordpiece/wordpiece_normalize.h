/**
 * @file wordpiece_normalize.h
 * @brief Normalises text for BERT: cleaned, decomposed, without accents, lower-case.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_NORMALIZE_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_NORMALIZE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/tokenizers/wordpiece/wordpiece_list.h"

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

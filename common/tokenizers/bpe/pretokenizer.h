/**
 * @file pretokenizer.h
 * @brief Splits a text before byte-level BPE, by the regular expressions of a tokenizer.json.
 *
 * Merges never join two pieces. PCRE2 runs the expressions, with Unicode's properties; \s is
 * Unicode's white space, as in tokenizers' engine. Limits on PCRE2's steps and memory end an
 * expression that would take too long.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_PRETOKENIZER_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_PRETOKENIZER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct cJSON;
struct pretokenizer; /**< opaque: compiled expressions, one after the other */

/** @return whether a "pre_tokenizer" is of byte-level BPE: ByteLevel, or a Sequence with it. */
bool pretokenizer_is_byte_level(const struct cJSON *part);

/** @return whether a blank is put before a text: a ByteLevel alone, with "add_prefix_space". */
bool pretokenizer_adds_blank(const struct cJSON *part);

/**
 * @brief Compiles a "pre_tokenizer": ByteLevel, alone or as the end of a Sequence of Split and
 *        Digits.
 * @return STATUS_OK; STATUS_UNSUPPORTED for other parts, and for an expression that PCRE2 refuses,
 *         with its reason; STATUS_BAD_FORMAT; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status pretokenizer_create(struct pretokenizer **pretokenizer,
                                           const struct cJSON *part, struct error *error);

/** Frees; NULL is allowed. */
void pretokenizer_free(struct pretokenizer *pretokenizer);

/** Called for each piece, in order; @p length is at least 1. */
typedef enum status pretokenizer_visitor(void *context, const char *piece, size_t length);

/**
 * @brief Splits a text; the pieces together are the text.
 * @param text @p length bytes, valid UTF-8
 * @return STATUS_OK, the first other status of @p visit, STATUS_OUT_OF_MEMORY, or
 *         STATUS_UNSUPPORTED if an expression exceeds its limits
 */
MUST_CHECK enum status pretokenizer_split(const struct pretokenizer *pretokenizer, const char *text,
                                          size_t length, pretokenizer_visitor *visit, void *context,
                                          struct error *error);

#endif

/**
 * @file wordpiece.h
 * @brief BERT's WordPiece tokenizer, as of bert-base-uncased.
 *
 * Steps: drop control characters, U+0000 and U+FFFD; replace white space by
 * blanks; put blanks around CJK ideographs; NFD, strip accents (category Mn);
 * lower-case; split at blanks and around punctuation; then split each word into
 * pieces, longest match first, with "##" before a piece inside a word. A word of
 * more than 100 code points, or one that has no such pieces, is [UNK].
 * Sources: Devlin et al. 2019; Schuster and Nakajima 2012. The ids equal those
 * of the Hugging Face `tokenizers` library (BertWordPieceTokenizer with its
 * defaults), also in two points that may surprise:
 *  - "[UNK]", "[CLS]", "[SEP]", "[PAD]" and "[MASK]" spelt out in the text, in
 *    capitals, become that piece's id. To prevent that in untrusted text, remove
 *    the brackets before encoding.
 *  - Categories of characters are those of Unicode 8, as in the library: marks
 *    and punctuation of a newer Unicode are letters. Unassigned code points are
 *    letters; private-use code points are dropped.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

struct wordpiece; /**< opaque: vocabulary and its hash index */

/**
 * @brief Reads a vocabulary, one piece a line; the line number is the id.
 *
 * It must have [UNK], [CLS], [SEP] and [PAD]. CRLF is accepted.
 *
 * @return STATUS_OK, the status of file_view_open(), STATUS_BAD_UTF8 or STATUS_BAD_FORMAT (a
 *         duplicate piece, an empty line before the last) with the line number,
 *         STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status wordpiece_open(struct wordpiece **wordpiece, const char *path,
                                      struct error *error);

/** As wordpiece_open() on bytes, which are copied. */
MUST_CHECK enum status wordpiece_parse(struct wordpiece **wordpiece, const char *data, size_t size,
                                       struct error *error);

void wordpiece_free(struct wordpiece *wordpiece);

/** @return number of pieces. */
size_t wordpiece_size(const struct wordpiece *wordpiece);

/** @return text of piece @p id, or NULL if there is no such piece. */
const char *wordpiece_piece(const struct wordpiece *wordpiece, int32_t id);

/** @return id of an exact piece, or -1. */
int32_t wordpiece_find(const struct wordpiece *wordpiece, const char *piece);

/** Ids of the special pieces. */
struct wordpiece_special {
    int32_t unk, cls, sep, pad;
};
struct wordpiece_special wordpiece_special(const struct wordpiece *wordpiece);

/**
 * @brief Encodes "[CLS] text [SEP]".
 * @param text       @p length bytes of valid UTF-8, else STATUS_BAD_UTF8 with the offset
 * @param max_length most ids, with [CLS] and [SEP]; longer text is cut before [SEP]; at least 2, or
 *                   0 for no limit
 * @param ids        receives an array that the caller frees
 * @param count      receives its length
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_INVALID_ARGUMENT (max_length), STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status wordpiece_encode(const struct wordpiece *wordpiece, const char *text,
                                        size_t length, size_t max_length, int32_t **ids,
                                        size_t *count, struct error *error);

#endif

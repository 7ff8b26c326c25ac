/**
 * @file wordpiece.h
 * @brief BERT's tokenizer as bert-base-uncased does it.
 *
 * Steps: drop control characters, U+0000 and U+FFFD, white space to blanks;
 * blanks around CJK ideographs; NFD, accents (category Mn) stripped;
 * lower-case; split at blanks and around punctuation; then longest-match-first
 * pieces, "##" before a piece inside a word; a word of more than 100 code
 * points, or one that cannot be pieced, is [UNK].
 * Sources: Devlin et al. 2019; Schuster and Nakajima 2012. The ids equal those
 * of the Hugging Face `tokenizers` library (BertWordPieceTokenizer as it is out
 * of the box), in two points that may surprise also:
 *  - "[UNK]", "[CLS]", "[SEP]", "[PAD]" and "[MASK]" spelt out in the text, in
 *    capitals, become that piece's id; whoever encodes text of strangers and
 *    minds takes the brackets out before;
 *  - characters have the categories of Unicode 8, which the library goes by:
 *    marks and punctuation of a newer Unicode are letters. Unassigned code
 *    points are letters, private use is dropped.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wordpiece; /**< opaque: vocabulary and its hash index */

/**
 * @brief Reads a vocabulary, one piece a line; the line number is the id.
 *
 * Needs [UNK], [CLS], [SEP] and [PAD]; a duplicate piece, an empty line before the last or
 * invalid UTF-8 is STATUS_BAD_FORMAT / STATUS_BAD_UTF8 with the line number. CRLF is accepted.
 */
MUST_CHECK enum status wordpiece_open(struct wordpiece **wordpiece, const char *path,
                                      struct error *error);

/** As wordpiece_open() on bytes, which are copied. */
MUST_CHECK enum status wordpiece_parse(struct wordpiece **wordpiece, const char *data, size_t size,
                                       struct error *error);

void wordpiece_free(struct wordpiece *wordpiece);

/** @return number of pieces. */
size_t wordpiece_size(const struct wordpiece *wordpiece);

/** @return text of piece @p id, or NULL when there is none. */
const char *wordpiece_piece(const struct wordpiece *wordpiece, int32_t id);

/** @return id of an exact piece, or -1. */
int32_t wordpiece_find(const struct wordpiece *wordpiece, const char *piece);

/** Ids of the special pieces. */
struct wordpiece_special {
    int32_t unk, cls, sep, pad;
};
struct wordpiece_special wordpiece_special(const struct wordpiece *wordpiece);

/**
 * @brief [CLS] text [SEP].
 * @param text       @p length bytes of valid UTF-8, else STATUS_BAD_UTF8 with the offset
 * @param max_length most ids, [CLS] and [SEP] among them; longer text is cut before [SEP];
 *                   at least 2; 0 means no limit
 * @param ids        receives an array that the caller frees
 * @param count      receives its length
 */
MUST_CHECK enum status wordpiece_encode(const struct wordpiece *wordpiece, const char *text,
                                        size_t length, size_t max_length, int32_t **ids,
                                        size_t *count, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

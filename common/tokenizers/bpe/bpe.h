/**
 * @file bpe.h
 * @brief llama2.c's tokenizer files: SentencePiece-style BPE with byte fallback. For Hugging Face's
 *        tokenizer.json, which becomes a struct bpe too, see tokenizer.h.
 *
 * The file: int32 longest piece in bytes, then for each token an fp32 score,
 * an int32 length and that many bytes, little-endian. Token 0 is <unk>, 1 <s>
 * (BOS), 2 </s> (EOS), 3..258 the bytes as "<0x00>".."<0xFF>".
 * Format and algorithm: llama2.c by A. Karpathy, tokenizer.py and run.c;
 * Kudo and Richardson 2018 (SentencePiece).
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BPE_UNK = 0, BPE_BOS = 1, BPE_EOS = 2, BPE_FIRST_BYTE = 3 };

struct bpe; /**< opaque: vocabulary, scores or merge rules, sorted index */

/**
 * @brief Reads a tokenizer file to its end and checks every length against the file.
 *
 * STATUS_TRUNCATED when it ends within a token; STATUS_BAD_FORMAT for a longest piece that
 * is not positive, a length outside 0..longest, a score that is not a number, a NUL byte in a
 * piece, less than three tokens.
 *
 * @param expected_tokens the checkpoint's vocabulary size, or 0 to accept any; another
 *        count is STATUS_MISMATCH with both numbers in the message
 */
MUST_CHECK enum status bpe_open(struct bpe **bpe, const char *path, size_t expected_tokens,
                                struct error *error);

/** As bpe_open() on bytes, which are copied. */
MUST_CHECK enum status bpe_parse(struct bpe **bpe, const void *data, size_t size,
                                 size_t expected_tokens, struct error *error);

void bpe_free(struct bpe *bpe);

/** @return number of tokens. */
size_t bpe_size(const struct bpe *bpe);

/**
 * @brief Encodes UTF-8 text as llama2.c does.
 *
 * Dummy prefix: a " " token goes before non-empty text. Each code point is
 * looked up; an unknown one becomes its bytes (byte + 3). Then the adjacent
 * pair whose concatenation has the best score is merged until none is left
 * (leftmost of equals). O(n log n) or so, not O(n^2): prompts can be long.
 *
 * As there: a score must be above -1e10 to merge; BOS takes part in merges
 * (stories260K's and Llama2's have no piece for it), and text that spells "<s>" is only
 * text. Of pieces with the same text the lowest id counts. A vocabulary without
 * " " starts with the token of its byte. One of less than 259 tokens has no byte
 * tokens: an unknown code point is STATUS_UNSUPPORTED, with code point and offset.
 *
 * A vocabulary out of a tokenizer.json has a list of pairs that merge, best first, instead of
 * scores; BOS takes no part. What goes before the text is what the file says.
 *
 * @param text   @p length bytes, valid UTF-8 (else STATUS_BAD_UTF8, with the offset)
 * @param bos    put BPE_BOS first
 * @param eos    put BPE_EOS last
 * @param tokens receives an array that the caller frees
 * @param count  receives its length
 */
MUST_CHECK enum status bpe_encode(const struct bpe *bpe, const char *text, size_t length, bool bos,
                                  bool eos, int32_t **tokens, size_t *count, struct error *error);

/**
 * @brief The bytes of one token after another, as llama2.c's decode().
 *
 * After BPE_BOS a leading space is dropped; "<0xNN>" is the raw byte NN.
 *
 * @param previous the token before, or -1
 * @param token    in [0, bpe_size); any other gives an empty piece
 * @param length   receives the number of bytes (a piece may be a NUL byte)
 * @return the bytes, owned by @p bpe, followed by a NUL
 */
const char *bpe_decode(const struct bpe *bpe, int32_t previous, int32_t token, size_t *length);

/**
 * @brief Serialises a tokenizer file, for tests and trained vocabularies.
 * @param pieces (count) NUL-terminated; @param scores (count)
 * @param data   receives memory that the caller frees
 */
MUST_CHECK enum status bpe_serialize(const char *const *pieces, const float *scores, size_t count,
                                     unsigned char **data, size_t *size);

#ifdef __cplusplus
}
#endif

#endif

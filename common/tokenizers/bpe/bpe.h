/**
 * @file bpe.h
 * @brief llama2.c's tokenizer files: SentencePiece-style BPE with byte fallback. tokenizer.h reads
 *        Hugging Face's tokenizer.json into a struct bpe, too.
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

enum { BPE_UNK = 0, BPE_BOS = 1, BPE_EOS = 2, BPE_FIRST_BYTE = 3 };

struct bpe; /**< opaque: vocabulary, scores or merge rules, sorted index */

/**
 * @brief Reads a tokenizer file to its end and checks every length against the file.
 *
 * STATUS_TRUNCATED if it ends within a token; STATUS_BAD_FORMAT for a longest piece that
 * is not positive, a length outside 0..longest, a score that is not a number, a NUL byte in a
 * piece, fewer than three tokens.
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
 * A " " token, the dummy prefix, goes before non-empty text. Each code point is
 * looked up; an unknown one becomes one token per byte (byte + 3). Then the
 * adjacent pair whose concatenation has the best score (of equal scores the
 * leftmost pair) is merged until no pair can be merged. This takes O(n log n)
 * time, not O(n^2): prompts can be long.
 *
 * As in llama2.c, a score must be above -1e10 to merge, BOS takes part in merges
 * (but stories260K's and Llama2's vocabularies have no piece to merge it into), and
 * text that spells "<s>" is only text. Of pieces with the same text the lowest id is
 * used. If a vocabulary has no " ", the prefix is the token of that byte. A vocabulary
 * of fewer than 259 tokens has no byte tokens: an unknown code point is
 * STATUS_UNSUPPORTED, with code point and offset.
 *
 * A vocabulary from a tokenizer.json has a list of pairs that merge, best first, instead of
 * scores; BOS takes no part in merges, and the file determines the prefix.
 *
 * @param text   @p length bytes, valid UTF-8 (else STATUS_BAD_UTF8, with the offset)
 * @param bos    put BPE_BOS first
 * @param eos    put BPE_EOS last
 * @param tokens receives an array that the caller frees
 * @param count  receives its length
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_UNSUPPORTED, STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bpe_encode(const struct bpe *bpe, const char *text, size_t length, bool bos,
                                  bool eos, int32_t **tokens, size_t *count, struct error *error);

/**
 * @brief Decodes one token, as llama2.c's decode(); called for one token after another.
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
 * @return STATUS_OK, STATUS_OVERFLOW (a piece or the file is too long) or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bpe_serialize(const char *const *pieces, const float *scores, size_t count,
                                     unsigned char **data, size_t *size);

#endif

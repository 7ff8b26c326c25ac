/**
 * @file bpe.h
 * @brief llama2.c's tokenizer files: SentencePiece-style BPE with byte fallback. tokenizer.h reads
 *        Hugging Face's tokenizer.json into a struct bpe, too, also byte-level BPE.
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

/** @return the token that begins a text; -1: the tokenizer has none (Qwen2's). */
int32_t bpe_bos(const struct bpe *bpe);

/** @return the token that ends a text; -1: the tokenizer's file does not say. */
int32_t bpe_eos(const struct bpe *bpe);

/** @return the added token of a tokenizer.json that is spelled so, as "<|eot_id|>"; or -1. */
int32_t bpe_added(const struct bpe *bpe, const char *spelling);

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
 * Byte-level BPE: the text is normalised and split as the file says; each piece begins as one token
 * a byte, which merge by the list. There is no prefix.
 *
 * @param text   @p length bytes, valid UTF-8 (else STATUS_BAD_UTF8, with the offset)
 * @param bos    put bpe_bos() first, if there is one
 * @param eos    put bpe_eos() last, if there is one
 * @param tokens receives an array that the caller frees
 * @param count  receives its length
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_UNSUPPORTED, STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bpe_encode(const struct bpe *bpe, const char *text, size_t length, bool bos,
                                  bool eos, int32_t **tokens, size_t *count, struct error *error);

/** A part of a text to encode. */
struct bpe_part {
    const char *text; /**< @p length bytes, valid UTF-8 */
    size_t length;
    bool marked; /**< what spells an added token is that token; else it is only text, unless the
                    token is neither special nor kept from the normalizer */
};

/**
 * @brief Encodes parts as one text, with added tokens recognised in those that are marked.
 *
 * At each place the longest added token is taken. The text on both sides of one is encoded by
 * itself, as by the tokenizers library; neighbouring parts without one between them are one text.
 *
 * @return as bpe_encode()
 */
MUST_CHECK enum status bpe_encode_parts(const struct bpe *bpe, const struct bpe_part *parts,
                                        size_t part_count, bool bos, int32_t **tokens,
                                        size_t *count, struct error *error);

/**
 * @brief Decodes one token, as llama2.c's decode(); called for one token after another.
 *
 * After BPE_BOS a leading space is dropped; "<0xNN>" is the raw byte NN. A token of byte-level BPE
 * is its bytes, which may be a part of a character.
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

/**
 * @file tokenizer.h
 * @brief Opens the tokenizer of Llama2, Llama 3 or Qwen2, from Hugging Face's tokenizer.json or
 * from llama2.c's file.
 *
 * Llama2's tokenizer.json is a JSON object with "model" (type BPE with byte_fallback; "vocab" from
 * piece to id; "merges" as "a b" or ["a", "b"], best first), "added_tokens", and the preparation of
 * the text: a normalizer that prepends U+2581 and replaces blanks by U+2581, or a Metaspace
 * pre-tokenizer. The vocabulary begins as Llama2's: <unk>, <s>, </s>, the bytes <0x00> to <0xFF>.
 *
 * llama2.c's file has a score for each piece, and any two tokens merge whose joined text is a
 * piece. tokenizer.json has a rank for each pair, and only those pairs merge. Llama2's merges were
 * made from its scores, so both give the same tokens, with two exceptions: U+2581 in a text is a
 * blank in tokenizer.json and three bytes in llama2.c, and Metaspace puts no blank before a text
 * that begins with one.
 *
 * Byte-level BPE (GPT-2, Llama 3, Qwen2): the pre-tokenizer is ByteLevel, alone or at the end of a
 * Sequence of Split and Digits; the normalizer is NFC or none; pieces are spelled as byte_level.h
 * says, and each byte is one. BOS is what the post-processor puts first. The model may have more
 * tokens than such a tokenizer, as it pads its table.
 *
 * Added tokens are decoded; text that spells one is encoded as plain text, except by
 * bpe_encode_parts().
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/tokenizers/bpe/bpe.h"

/**
 * @brief Reads a tokenizer.json, a file of llama2.c, or the one in a folder: tokenizer.json, else
 *        tokenizer.bin.
 *
 * @param expected_tokens the checkpoint's vocabulary size, or 0 to accept any; another count is
 *        STATUS_MISMATCH with both numbers in the message
 * @return the statuses of tokenizer_json_parse() and bpe_open(); STATUS_NOT_FOUND if a folder has
 *         neither file; each message begins with the path of the file
 */
MUST_CHECK enum status tokenizer_open(struct bpe **bpe, const char *path, size_t expected_tokens,
                                      struct error *error);

/**
 * @brief Reads the text of a tokenizer.json, @p size bytes.
 *
 * Every id from 0 to the last must belong to one token; the two sides of a merge and the result
 * must be pieces. Of several merges for the same pair the last is used. Truncation and padding are
 * not read, nor is the post-processor of Llama2's: the caller of bpe_encode() chooses BOS and EOS.
 *
 * @param expected_tokens as for tokenizer_open()
 * @return STATUS_OK, the status of json_object_parse(), STATUS_BAD_FORMAT, STATUS_MISMATCH,
 *         STATUS_TOO_LONG (merges), STATUS_OUT_OF_MEMORY, or STATUS_UNSUPPORTED, with the key, for
 *         settings that would give other tokens: Unigram, dropout, other normalizers and
 *         pre-tokenizers, an expression that PCRE2 refuses, added tokens that strip blanks
 */
MUST_CHECK enum status tokenizer_json_parse(struct bpe **bpe, const char *text, size_t size,
                                            size_t expected_tokens, struct error *error);

#endif

/**
 * @file tokenizer.h
 * @brief Llama2's tokenizer as Hugging Face's "tokenizers" stores it, and the choice between that
 *        and llama2.c's file.
 *
 * tokenizer.json: a JSON object with "model" (type BPE with byte_fallback, "vocab" from piece to
 * id, "merges" as "a b" or ["a", "b"], first is best), "added_tokens", and what is done to text
 * before: a normalizer that prepends U+2581 and writes blanks as U+2581, or a Metaspace
 * pre-tokenizer. The vocabulary begins as Llama2's: <unk>, <s>, </s>, the bytes <0x00> to <0xFF>.
 *
 * llama2.c's file has a score for each piece, and any two tokens merge whose texts together are a
 * piece. tokenizer.json has a rank for each pair, and only those pairs merge. Llama2's merges were
 * made from its scores, so that both give the same tokens, with two exceptions: U+2581 in a text
 * is a blank here and three bytes there, and Metaspace puts no blank before a text that begins
 * with one. Added tokens are decoded; text that spells them is only text.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/tokenizers/bpe/bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Reads a tokenizer.json, a file of llama2.c, or the one in a folder: tokenizer.json, else
 *        tokenizer.bin.
 *
 * @param expected_tokens the checkpoint's vocabulary size, or 0 to accept any; another count is
 *        STATUS_MISMATCH with both numbers in the message
 * @return as tokenizer_json_parse() and bpe_open(); STATUS_NOT_FOUND when a folder has neither;
 *         each message begins with the path of the file
 */
MUST_CHECK enum status tokenizer_open(struct bpe **bpe, const char *path, size_t expected_tokens,
                                      struct error *error);

/**
 * @brief Reads the text of a tokenizer.json, @p size bytes.
 *
 * Every id from 0 to the last must belong to one token, and each merge must be of pieces and make
 * one, else STATUS_BAD_FORMAT. Of merges for the same pair the last counts. Byte-level BPE (GPT-2,
 * Llama3), Unigram, dropout, other normalizers and what else would give other tokens is
 * STATUS_UNSUPPORTED, with the key. Truncation, padding and the post-processor are not read: who
 * encodes says whether BOS and EOS are wanted.
 */
MUST_CHECK enum status tokenizer_json_parse(struct bpe **bpe, const char *text, size_t size,
                                            size_t expected_tokens, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

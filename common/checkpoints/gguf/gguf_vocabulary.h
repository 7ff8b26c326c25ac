/**
 * @file gguf_vocabulary.h
 * @brief The tokenizer inside a GGUF file.
 *
 * "tokenizer.ggml.model" is "llama" (pieces with scores, as in llama2.c's file) or "gpt2"
 * (byte-level BPE with merges; "tokenizer.ggml.pre" names the expression that splits a text).
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_VOCABULARY_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_VOCABULARY_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/gguf/gguf.h"
#include "common/tokenizers/bpe/bpe.h"

/** The tokenizer as a file of its own. */
struct gguf_tokenizer {
    const char *name; /**< "tokenizer.bin" or "tokenizer.json" */
    char *data;       /**< (size) */
    size_t size;
};

/**
 * @brief Writes the tokenizer into memory, as llama2.c or Hugging Face stores it.
 * @param tokenizer receives memory that the caller frees, also after a failure
 * @param eos       as for gguf_vocabulary_read()
 * @return STATUS_OK; STATUS_BAD_FORMAT; STATUS_UNSUPPORTED as from gguf_vocabulary_read();
 *         STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status gguf_vocabulary_file(const struct gguf *file,
                                            struct gguf_tokenizer *tokenizer, int32_t *eos,
                                            struct error *error);

/**
 * @brief Makes the tokenizer.
 * @param expected_tokens the model's vocabulary size, or 0; another count is STATUS_MISMATCH
 * @param eos             receives the token that ends a text; -1: the file does not say
 * @return STATUS_OK; STATUS_BAD_FORMAT; STATUS_UNSUPPORTED for other models and expressions, with
 *         what would help; the statuses of bpe_parse() and tokenizer_json_parse()
 */
MUST_CHECK enum status gguf_vocabulary_read(const struct gguf *file, size_t expected_tokens,
                                            struct bpe **bpe, int32_t *eos, struct error *error);

#endif

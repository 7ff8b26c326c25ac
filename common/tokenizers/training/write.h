/**
 * @file write.h
 * @brief Writes learnt pieces as the files that the tokenizers read.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_WRITE_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_WRITE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/tokenizers/training/learn.h"

/** Pieces of every WordPiece vocabulary: [PAD], [UNK], [CLS], [SEP], [MASK]. */
enum { VOCAB_WORDPIECE_SPECIAL = 5 };

/** Tokens of every BPE vocabulary: <unk>, <s>, </s> and the 256 bytes. */
enum { VOCAB_BPE_SPECIAL = 3 + 256 };

/** @return number of special pieces, which are not learnt. */
size_t vocab_special_count(enum vocab_kind kind);

/**
 * @brief Makes the content of the file.
 *
 * WordPiece: vocab.txt, one piece a line: the special ones, then all in the order of learning.
 * BPE: llama2.c's tokenizer.bin: the special tokens, scored 0; the merges in their order, scored
 * 0, -1, -2, ...; then the characters, whose scores go on downward, as in Llama2's own.
 *
 * @param data receives memory that the caller frees
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, STATUS_OVERFLOW
 */
MUST_CHECK enum status vocab_write(enum vocab_kind kind, const struct vocab_pieces *pieces,
                                   char **data, size_t *size);

#endif

/**
 * @file bpe_merge.h
 * @brief Merges tokens pair by pair, best score first; private to the BPE tokenizer.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_MERGE_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_MERGE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/tokenizers/bpe/bpe.h"

/**
 * @brief Merges adjacent pairs until no pair can be merged. Without merge rules, the next pair is
 *        the one whose joined text has the best score above -1e10 in the vocabulary; with rules,
 *        the one whose rule has the lowest rank. Of equal pairs the leftmost is merged.
 * @param tokens (*count) ids in [0, bpe_size); replaced by the merged ids
 * @param count  receives the number of merged ids
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bpe_merge(const struct bpe *bpe, int32_t *tokens, size_t *count);

#endif

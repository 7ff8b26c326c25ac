/**
 * @file bpe_merge.h
 * @brief Merges tokens pair by pair, best score first; for the BPE tokenizer alone.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_MERGE_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_MERGE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/tokenizers/bpe/bpe.h"

/**
 * @brief Merges the adjacent pair whose joined text has the best score (leftmost of equals)
 *        until no pair is left that is in the vocabulary with a score above -1e10; where there
 *        are rules, the pair whose rule has the lowest rank, until no rule is left.
 * @param tokens (*count) ids in [0, bpe_size); the merged ones take their place
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bpe_merge(const struct bpe *bpe, int32_t *tokens, size_t *count);

#endif

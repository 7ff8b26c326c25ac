/**
 * @file bert_padding.h
 * @brief A batch with a mask as a packed batch, and its result back in padded rows.
 *
 * Only attention looks at more than one token, so a packed batch gives the tokens of a padded one
 * the same results, without computing any row of padding. All memory is host memory.
 */
#ifndef WARPBOOK_COMMON_MODELS_BERT_PADDING_H_
#define WARPBOOK_COMMON_MODELS_BERT_PADDING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/models/bert.h"

/** Memory for a packed batch, all of it with room for the rows of the padded one. */
struct bert_packed {
    int32_t *ids, *types; /**< (rows) */
    int32_t *starts;      /**< (B + 1), B at most rows */
};

/**
 * @return whether the batch has a mask, and every sequence is a text of at least one token and
 *         padding behind it. A token's position is its column, and the first column is what the
 *         pooler reads: other masks cannot be packed.
 */
bool bert_padding_is_behind(const struct bert_input *input);

/**
 * @brief Copies the tokens to @p packed, one text behind the other.
 * @param input a batch of which bert_padding_is_behind() is true
 * @return the packed batch, which points into @p packed
 */
struct bert_input bert_pack(const struct bert_packed *packed, const struct bert_input *input);

/**
 * @brief Moves rows from packed to padded places; rows of padding become zeros.
 * @param hidden (B * T, C), of which the first starts[B] rows are the packed result
 * @param starts (B + 1), of the packed batch
 */
void bert_unpack(float *hidden, const int32_t *starts, size_t B, size_t T, size_t C);

#endif

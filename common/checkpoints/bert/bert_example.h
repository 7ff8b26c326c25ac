/**
 * @file bert_example.h
 * @brief Examples for runs without a trained BERT: named shapes, and a vocabulary of characters
 *        that can spell any ASCII text.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_EXAMPLE_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_EXAMPLE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"

/**
 * @brief The sizes behind a name: "tiny" (2 layers of 64 channels, 2 heads, 128 positions) or
 *        "base" (12 layers of 768 channels, 12 heads, 512 positions, as bert-base-uncased).
 * @param config receives the sizes; V and labels stay 0
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with the known names
 */
MUST_CHECK enum status bert_shape_parse(const char *name, struct bert_config *config,
                                        struct error *error);

/**
 * @brief A WordPiece vocabulary without words: [PAD], [UNK], [CLS], [SEP], [MASK], then every
 *        printable ASCII character except capitals, at the start of a word ("x") and inside one
 *        ("##x"), then [unused0], [unused1], ... up to @p pieces.
 * @param pieces size of the vocabulary; if the characters already fill it, there is no [unusedN]
 * @param text   receives lines that the caller frees, NUL-terminated
 * @param size   receives the length of the text, in bytes
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bert_letters_vocabulary(size_t pieces, char **text, size_t *size);

#endif

/**
 * @file bert_example.h
 * @brief What stands in for a trained BERT: named shapes, and a vocabulary that any text can be
 *        written with.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_EXAMPLE_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_EXAMPLE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief The sizes behind a name: "tiny" (2 layers of 64 channels, 2 heads, 128 positions) or
 *        "base" (12 layers of 768 channels, 12 heads, 512 positions, as bert-base-uncased).
 * @param config V, and labels, are left 0
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with the names there are
 */
MUST_CHECK enum status bert_shape_parse(const char *name, struct bert_config *config,
                                        struct error *error);

/**
 * @brief A WordPiece vocabulary without words: [PAD], [UNK], [CLS], [SEP], [MASK], then every
 *        printable ASCII character but capitals, as a word and as the rest of one ("##x"), then
 *        [unused0], [unused1], ... up to @p pieces.
 * @param pieces fewer than are needed means no [unused] ones
 * @param text   receives lines that the caller frees, NUL-terminated
 * @param size   receives its bytes
 */
MUST_CHECK enum status bert_letters_vocabulary(size_t pieces, char **text, size_t *size);

#ifdef __cplusplus
}
#endif

#endif

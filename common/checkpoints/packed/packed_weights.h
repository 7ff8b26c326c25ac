/**
 * @file packed_weights.h
 * @brief Matrices of 8 or 4 bits in the safetensors of a Hugging Face folder.
 *
 * A weight is scale * (stored - zero); b bits each, 32/b in a word, the first in the lowest bits.
 *
 * | | compressed-tensors, X = NAME.weight | GPTQ, X = NAME. |
 * |---|---|---|
 * | weights | X_packed (rows, columns/(32/b)): along the row | Xqweight (columns/(32/b), rows):
 * along the column | | scales | X_scale (rows, groups) | Xscales (groups, rows) | | zeros |
 * X_zero_point (rows/(32/b), groups), or all 2^(b-1) | Xqzeros (groups, rows/(32/b)), less one | |
 * order | X_g_idx (columns): the group of a column; else in order | Xg_idx (columns), the same |
 *
 * Words and indices are int32, scales F32, F16 or BF16; extents are rounded up in
 * compressed-tensors.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_PACKED_PACKED_WEIGHTS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_PACKED_PACKED_WEIGHTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/decoder/decoder_shards.h"
#include "common/checkpoints/packed/packed_config.h"
#include "common/nn/low_bit.h"

/** A matrix inside the files. */
struct packed_matrix {
    struct packed_config config;
    size_t rows, columns, groups;
    const struct safetensors_tensor *words, *scales;
    const struct safetensors_tensor *zeros; /**< NULL: all 2^(bits-1) */
    const struct safetensors_tensor *order; /**< NULL: column c is in group c / group */
};

/**
 * @brief Finds and checks a matrix.
 * @param name "model.layers.0.mlp.up_proj.weight"
 * @return STATUS_OK (matrix->words is NULL if the files do not store this one in few bits),
 *         STATUS_BAD_FORMAT (a part is missing, or an index is not one of a group),
 *         STATUS_MISMATCH (a shape), STATUS_UNSUPPORTED (a type)
 */
MUST_CHECK enum status packed_find(struct packed_matrix *matrix,
                                   const struct decoder_shards *shards,
                                   const struct packed_config *config, const char *name,
                                   size_t rows, size_t columns, struct error *error);

/**
 * @brief Dequantises: exact for scales of 16 bits, else rounded once.
 * @param out host, (rows, columns)
 */
void packed_dequantize(const struct packed_matrix *matrix, float *out);

/** @return the words of a row as compressed-tensors packs it. */
size_t packed_row_words(size_t columns, size_t bits);

/**
 * @brief Packs the weights of a matrix as compressed-tensors does.
 * @param matrix host, int8 or int4
 * @param words  host, (rows, packed_row_words())
 */
void packed_words(const struct low_bit_matrix *matrix, uint32_t *words);

/** Packs the zero points of an int4 matrix with some. @param words host, (rows / 8, rounded up,
 * groups)
 */
void packed_zeros(const struct low_bit_matrix *matrix, uint32_t *words);

#endif

/**
 * @file quantize_list.h
 * @brief The tensors of a file with rounded matrices, and the memory in which they are made.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_LIST_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_LIST_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/safetensors/safetensors_write.h"
#include "common/nn/low_bit.h"

/** Parts of a rounded matrix, in the order in which a file has them; a tensor that is not rounded
 *  is plain. */
enum quantize_part {
    QUANTIZE_WORDS,
    QUANTIZE_SCALES,
    QUANTIZE_ZEROS,
    QUANTIZE_PARTS,
    QUANTIZE_PLAIN = QUANTIZE_PARTS
};

/** What a tensor of the file is made of. */
struct quantize_item {
    size_t source; /**< the model's tensor, as the writer counts */
    enum quantize_part part;
};

/** Starts as zeros; quantize_list_free() frees it. */
struct quantize_list {
    struct safetensors_tensor *tensors; /**< (count) */
    struct quantize_item *items;        /**< (count) */
    size_t count, capacity;
    size_t most;                  /**< elements of the largest tensor of the model */
    float *scratch;               /**< (most) */
    struct low_bit_matrix matrix; /**< the one whose words were written last */
};

/** Room for QUANTIZE_PARTS tensors of the file for each of the model's. */
MUST_CHECK enum status quantize_list_reserve(struct quantize_list *list, size_t tensors,
                                             struct error *error);

/** Adds a tensor that is not rounded. @param like its type, shape and bytes */
MUST_CHECK enum status quantize_list_add_plain(struct quantize_list *list, const char *name,
                                               const struct safetensors_tensor *like, size_t source,
                                               struct error *error);

/** Adds the parts of a rounded matrix. */
MUST_CHECK enum status quantize_list_add_parts(struct quantize_list *list, const char *name,
                                               const struct low_bit_layout *layout, size_t source,
                                               struct error *error);

/** Allocates the scratch and the matrix, after all tensors have been added. */
MUST_CHECK enum status quantize_list_allocate(struct quantize_list *list, struct error *error);

/** Writes a part of the matrix as compressed-tensors stores it. @param data host */
void quantize_list_put_part(const struct quantize_list *list, enum quantize_part part, void *data);

void quantize_list_free(struct quantize_list *list);

#endif

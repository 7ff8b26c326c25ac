/**
 * @file decoder_stored.h
 * @brief Reads tensors as a file stores them, and makes the memory for a model's fp32 weights.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_STORED_H_
#define WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_STORED_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/decoder/decoder_tensors.h"

/** @return whether a tensor's data can be used in place as an array of floats. */
bool decoder_stored_is_fp32(const struct decoder_stored_tensor *tensor);

/**
 * @brief Converts elements to fp32, exactly.
 * @param data   (count) of @p dtype; may be unaligned
 * @param values (count)
 */
MUST_CHECK enum status decoder_stored_read(enum nn_dtype dtype, const void *data, float *values,
                                           size_t count);

/**
 * @brief Creates the arena of a model's fp32 weights, and in it the structs of the layers.
 *
 * @param bytes      of all tensors (arena_footprint())
 * @param layer_size bytes of a layer's struct
 * @param most_bytes most memory to allocate; 0: as much as the machine has
 * @param layers     receives (L) structs
 * @return STATUS_OK, STATUS_OVERFLOW, or STATUS_OUT_OF_MEMORY; if more than @p most_bytes would be
 *         needed, the message has both sizes and nothing was allocated
 */
MUST_CHECK enum status decoder_fp32_arena(struct arena *arena, size_t bytes, size_t L,
                                          size_t layer_size, size_t most_bytes, void **layers,
                                          struct error *error);

/**
 * @brief Creates the arena of values that were stored in fewer than 16 bits, as fp32.
 * @param bytes of all of them (arena_footprint())
 * @return as decoder_fp32_arena()
 */
MUST_CHECK enum status decoder_dequantized_arena(struct arena *arena, size_t bytes,
                                                 size_t most_bytes, struct error *error);

#endif

/**
 * @file gguf_llama2.h
 * @brief A Llama (architecture "llama") in a GGUF file: its sizes and its tensors.
 *
 * F32, F16 and BF16 are used in place; blocks of fewer bits are dequantised to fp32, exactly but
 * for Q4_K's one rounding. The rows of queries and keys are in llama2.c's order: the layout is
 * NN_ROPE_INTERLEAVED.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_LLAMA2_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_LLAMA2_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/gguf/gguf.h"
#include "common/checkpoints/llama2/llama2_tensors.h"

/**
 * @brief Reads the sizes.
 * @param shared receives whether there is no "output.weight"
 * @return STATUS_OK; STATUS_BAD_FORMAT (a value is missing or out of range); STATUS_UNSUPPORTED for
 *         another architecture, experts, partial or scaled rotary embedding but linear scaling
 */
MUST_CHECK enum status gguf_llama2_config(const struct gguf *file, struct llama2_config *config,
                                          bool *shared, struct error *error);

/**
 * @brief Checks all tensors, then points the weights at them or at their dequantised values.
 *
 * @param weights    its layers are @p config->L structs
 * @param arena      receives the dequantised values; to be freed, also after a failure
 * @param most_bytes most memory to allocate; 0: as much as the machine has
 * @return STATUS_OK; STATUS_BAD_FORMAT (a tensor is missing), STATUS_MISMATCH (its shape),
 *         STATUS_UNSUPPORTED (its type), STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status gguf_llama2_load(const struct gguf *file, const struct llama2_config *config,
                                        bool shared, size_t most_bytes,
                                        struct llama2_stored_weights *weights, struct arena *arena,
                                        struct error *error);

enum { GGUF_NAME_BYTES = 128 };

/** Writes GGUF's name of a tensor: "blk.3.attn_q.weight" for "model.layers.3.self_attn.q_proj
 * .weight". @return @p name */
const char *gguf_llama2_name(const char *tensor, char name[GGUF_NAME_BYTES]);

#endif

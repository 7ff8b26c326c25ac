/**
 * @file llama2_checkpoint.h
 * @brief Llama2 checkpoints as they are stored: a file of llama2.c, or a Hugging Face folder with
 *        config.json and safetensors, sharded or not.
 *
 * Opening maps and checks; nothing is converted or copied, so that 13 GB of bf16 weights go from
 * the file to a GPU without a copy in between. Tensor names as in transformers' LlamaForCausalLM.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_CHECKPOINT_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_CHECKPOINT_H_

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_shards.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/checkpoints/llama2/llama2c.h"

#ifdef __cplusplus
extern "C" {
#endif

struct llama2_checkpoint {
    struct llama2_config config;
    bool shared_classifier;
    struct llama2_stored_weights weights; /**< point into the files */
    struct llama2c_checkpoint llama2c;    /**< open when it is a file of llama2.c */
    struct llama2_shards shards;          /**< open when it is a folder */
};

/**
 * @brief Opens a file of llama2.c, or a folder with config.json and either model.safetensors or
 *        model.safetensors.index.json with its shards.
 *
 * Every tensor that the configuration asks for is checked (present, shape, F32, F16 or BF16) before
 * memory is taken; others are ignored. A folder's rotary layout is NN_ROPE_HALVES, a file's
 * NN_ROPE_INTERLEAVED.
 *
 * @return STATUS_OK; as llama2c_open(); as llama2_config_parse(), llama2_shards_open() and
 *         llama2_checkpoint_load(), with the path of the file at fault
 */
MUST_CHECK enum status llama2_checkpoint_open(struct llama2_checkpoint *checkpoint,
                                              const char *path, struct error *error);

/**
 * @brief The configuration out of the text of a config.json.
 *
 * Keys: hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, vocab_size,
 * max_position_embeddings; num_key_value_heads (default: all heads), head_dim (hidden_size over
 * heads), each from 1 to INT32_MAX; rms_norm_eps (1e-6), rope_theta (10000, or in
 * rope_parameters), tie_word_embeddings (false). Others are ignored, but these must not ask for
 * another architecture (STATUS_UNSUPPORTED): model_type (llama, or mistral, which has the same
 * tensors), sliding_window (null or absent: a window would hide keys), hidden_act (silu),
 * rope_scaling, partial_rotary_factor, attention_bias, mlp_bias, quantization_config.
 *
 * @param shared_classifier receives tie_word_embeddings
 */
MUST_CHECK enum status llama2_config_parse(struct llama2_config *config, bool *shared_classifier,
                                           const char *json, size_t size, struct error *error);

/**
 * @brief Finds the tensors that @p config asks for in open files.
 *
 * @param shards joined; taken over, and closed on failure
 * @return STATUS_OK, STATUS_BAD_FORMAT (a tensor is missing), STATUS_MISMATCH (its shape is
 *         another), STATUS_UNSUPPORTED (its type is none of the three), STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status llama2_checkpoint_load(struct llama2_checkpoint *checkpoint,
                                              const struct llama2_config *config,
                                              bool shared_classifier, struct llama2_shards *shards,
                                              struct error *error);

/** Unmaps and frees; a zero-initialised one is allowed. */
void llama2_checkpoint_close(struct llama2_checkpoint *checkpoint);

/** Weights for the engines that read fp32. */
struct llama2_fp32 {
    struct llama2_weights weights;
    struct arena arena;
};

/**
 * @brief Converts what is not fp32; fp32 tensors are used where they lie, unless unaligned.
 *
 * @param checkpoint must outlive @p fp32
 * @param most_bytes of memory to take; 0: as much as the machine has
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY with both sizes, before any memory is taken, when it
 *         would be more; STATUS_OVERFLOW
 */
MUST_CHECK enum status llama2_checkpoint_convert(const struct llama2_checkpoint *checkpoint,
                                                 size_t most_bytes, struct llama2_fp32 *fp32,
                                                 struct error *error);

/** Frees; a zero-initialised one is allowed. */
void llama2_fp32_free(struct llama2_fp32 *fp32);

#ifdef __cplusplus
}
#endif

#endif

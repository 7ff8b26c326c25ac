/**
 * @file llama2_checkpoint.h
 * @brief Opens Llama2 checkpoints in place: a file of llama2.c, a GGUF file, or a Hugging Face
 *        folder with config.json and safetensors, sharded or not.
 *
 * Opening maps and checks the files, but converts and copies nothing that has 16 bits or more: 13
 * GB of bf16 weights can go from the file to a GPU without another copy. Weights of fewer bits are
 * dequantised to fp32. Tensor names are those of transformers'
 * LlamaForCausalLM.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_CHECKPOINT_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_CHECKPOINT_H_

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/decoder/decoder_shards.h"
#include "common/checkpoints/gguf/gguf.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/checkpoints/llama2/llama2c.h"
#include "common/checkpoints/packed/packed_config.h"

struct llama2_checkpoint {
    struct llama2_config config;
    bool shared_classifier;
    struct llama2_stored_weights weights; /**< point into the files */
    struct llama2c_checkpoint llama2c;    /**< open if the checkpoint is a file of llama2.c */
    struct decoder_shards shards;         /**< open if the checkpoint is a folder */
    struct gguf gguf;                     /**< open if the checkpoint is a GGUF file */
    struct arena dequantized;             /**< values that are stored in fewer than 16 bits */
};

/**
 * @brief Opens a file of llama2.c, a GGUF file (by its first bytes), or a folder with config.json
 * and either model.safetensors or model.safetensors.index.json with its shards.
 *
 * Every tensor that the configuration asks for is checked (present, shape, F32, F16 or BF16) before
 * memory is allocated; others are ignored. A folder's rotary layout is NN_ROPE_HALVES, that of a
 * file NN_ROPE_INTERLEAVED.
 *
 * @return STATUS_OK; for a file the statuses of llama2c_open(), or of gguf_open(),
 *         gguf_llama2_config() and gguf_llama2_load(); for a folder those of
 *         llama2_config_parse(), decoder_shards_open() and llama2_checkpoint_load(). The message
 *         names the file at fault.
 */
MUST_CHECK enum status llama2_checkpoint_open(struct llama2_checkpoint *checkpoint,
                                              const char *path, struct error *error);

/**
 * @brief Parses the text of a config.json.
 *
 * Llama 1 to 3, Mistral and Qwen2 are known by model_type: llama (the default), mistral, qwen2.
 *
 * Keys: hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, vocab_size,
 * max_position_embeddings; num_key_value_heads (default: all heads), head_dim (hidden_size over
 * heads), each from 1 to INT32_MAX; rms_norm_eps (1e-6), tie_word_embeddings (false), rope_theta
 * (10000); rope_scaling of type default, linear, llama3 or yarn; rope_parameters, which holds both
 * in newer files; llama: attention_bias and mlp_bias (false); mistral and qwen2: sliding_window
 * (null), qwen2 also use_sliding_window (false), max_window_layers (28), layer_types. Qwen2's
 * queries, keys and values always have biases. Other keys are ignored, but these must not ask for
 * another architecture (STATUS_UNSUPPORTED): hidden_act (silu), partial_rotary_factor,
 * num_local_experts, num_experts. packed_config_parse() reads quantization_config.
 *
 * @param shared_classifier receives tie_word_embeddings
 * @param json              @p size bytes, need not end in NUL
 * @return STATUS_OK, the status of json_object_parse(), STATUS_BAD_FORMAT (a key is missing or its
 *         value is out of range) or STATUS_UNSUPPORTED
 */
MUST_CHECK enum status llama2_config_parse(struct llama2_config *config, bool *shared_classifier,
                                           const char *json, size_t size, struct error *error);

/**
 * @brief Finds the tensors that @p config asks for in open files. Biases that the files have in the
 *        first layer are used, too; checkpoint->config says so.
 *
 * @param most_bytes most memory for dequantised weights; 0: as much as the machine has
 * @param packed which matrices have 8 or 4 bits: those that the files store so
 * @param shards after decoder_shards_join(); the checkpoint becomes their owner, and closes them on
 *        failure
 * @return STATUS_OK, STATUS_BAD_FORMAT (a tensor is missing), STATUS_MISMATCH (its shape differs
 *         from the configuration), STATUS_UNSUPPORTED (its type is not F32, F16 or BF16),
 *         STATUS_OUT_OF_MEMORY; of packed_find()
 */
MUST_CHECK enum status
llama2_checkpoint_load(struct llama2_checkpoint *checkpoint, const struct llama2_config *config,
                       bool shared_classifier, const struct packed_config *packed,
                       struct decoder_shards *shards, size_t most_bytes, struct error *error);

/**
 * @brief Finds the tensors of a GGUF file.
 * @param file       the checkpoint becomes its owner, and closes it on failure
 * @param most_bytes most memory for dequantised weights; 0: as much as the machine has
 * @return the statuses of gguf_llama2_config() and gguf_llama2_load()
 */
MUST_CHECK enum status llama2_checkpoint_load_gguf(struct llama2_checkpoint *checkpoint,
                                                   struct gguf *file, size_t most_bytes,
                                                   struct error *error);

/** Unmaps and frees; a zero-initialised one is allowed. */
void llama2_checkpoint_close(struct llama2_checkpoint *checkpoint);

/** Weights in fp32, for engines that read no other type. */
struct llama2_fp32 {
    struct llama2_weights weights;
    struct arena arena;
};

/**
 * @brief Converts weights to fp32. Aligned fp32 tensors are not copied: @p fp32 points into the
 *        checkpoint's file.
 *
 * @param checkpoint must outlive @p fp32
 * @param most_bytes most memory to allocate; 0: as much as the machine has
 * @return STATUS_OK, STATUS_OVERFLOW, or STATUS_OUT_OF_MEMORY; if more than @p most_bytes would be
 *         needed, the message has both sizes and nothing was allocated
 */
MUST_CHECK enum status llama2_checkpoint_convert(const struct llama2_checkpoint *checkpoint,
                                                 size_t most_bytes, struct llama2_fp32 *fp32,
                                                 struct error *error);

/** Frees; a zero-initialised one is allowed. */
void llama2_fp32_free(struct llama2_fp32 *fp32);

#endif

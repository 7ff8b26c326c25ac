/**
 * @file gpt_neox_checkpoint.h
 * @brief Opens GPT-NeoX checkpoints in place: a Hugging Face folder with config.json and
 *        safetensors, sharded or not.
 *
 * Opening maps and checks the files but converts and copies nothing.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_CHECKPOINT_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_CHECKPOINT_H_

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/decoder/decoder_shards.h"
#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"

struct gpt_neox_checkpoint {
    struct gpt_neox_config config;
    bool shared_classifier;
    struct gpt_neox_stored_weights weights; /**< point into the files */
    struct decoder_shards shards;
};

/**
 * @brief Opens a folder with config.json and either model.safetensors or
 *        model.safetensors.index.json with its shards.
 *
 * Every tensor that the configuration asks for is checked (present, shape, F32, F16 or BF16) before
 * memory is allocated; others are ignored.
 *
 * @return STATUS_OK; the statuses of gpt_neox_config_parse(), decoder_shards_open() and
 *         gpt_neox_checkpoint_load(). The message names the file at fault.
 */
MUST_CHECK enum status gpt_neox_checkpoint_open(struct gpt_neox_checkpoint *checkpoint,
                                                const char *folder, struct error *error);

/**
 * @brief Whether FOLDER/config.json says that it is a GPT-NeoX ("model_type"). False if there is no
 *        such file or it cannot be read: opening it says why.
 */
bool gpt_neox_checkpoint_is(const char *folder);

/** As gpt_neox_checkpoint_is() for the text of a config.json, @p size bytes. */
bool gpt_neox_config_is(const char *json, size_t size);

/**
 * @brief Parses the text of a config.json. "model_type" must be "gpt_neox".
 *
 * Keys: hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, vocab_size,
 * max_position_embeddings, each from 1 to INT32_MAX; rotary_pct (0.25), rotary_emb_base (10000) or
 * rope_theta; rope_parameters, which holds partial_rotary_factor and rope_theta in newer files;
 * layer_norm_eps (1e-5), use_parallel_residual (true), attention_bias (true), tie_word_embeddings
 * (false); hidden_act (gelu), also gelu_new, gelu_fast and gelu_pytorch_tanh. Other keys are
 * ignored, but rope_scaling must not scale and quantization_config must be absent
 * (STATUS_UNSUPPORTED).
 *
 * @param shared_classifier receives tie_word_embeddings
 * @param json              @p size bytes, need not end in NUL
 * @return STATUS_OK, the status of json_object_parse(), STATUS_BAD_FORMAT (a key is missing or its
 *         value is out of range) or STATUS_UNSUPPORTED
 */
MUST_CHECK enum status gpt_neox_config_parse(struct gpt_neox_config *config,
                                             bool *shared_classifier, const char *json, size_t size,
                                             struct error *error);

/**
 * @brief Finds the tensors that @p config asks for in open files.
 *
 * @param shards after decoder_shards_join(); the checkpoint becomes their owner, and closes them on
 *        failure
 * @return STATUS_OK, STATUS_BAD_FORMAT (a tensor is missing), STATUS_MISMATCH (its shape differs
 *         from the configuration, or there are more layers), STATUS_UNSUPPORTED (its type is not
 *         F32, F16 or BF16), STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status gpt_neox_checkpoint_load(struct gpt_neox_checkpoint *checkpoint,
                                                const struct gpt_neox_config *config,
                                                bool shared_classifier,
                                                struct decoder_shards *shards, struct error *error);

/** Unmaps and frees; a zero-initialised one is allowed. */
void gpt_neox_checkpoint_close(struct gpt_neox_checkpoint *checkpoint);

/** Weights in fp32, for engines that read no other type. */
struct gpt_neox_fp32 {
    struct gpt_neox_weights weights;
    struct arena arena;
};

/**
 * @brief Converts weights to fp32, and separates q, k and v. Other aligned fp32 tensors are not
 *        copied: @p fp32 points into the checkpoint's file.
 *
 * @param checkpoint must outlive @p fp32
 * @param most_bytes most memory to allocate; 0: as much as the machine has
 * @return STATUS_OK, STATUS_OVERFLOW, or STATUS_OUT_OF_MEMORY; if more than @p most_bytes would be
 *         needed, the message has both sizes and nothing was allocated
 */
MUST_CHECK enum status gpt_neox_checkpoint_convert(const struct gpt_neox_checkpoint *checkpoint,
                                                   size_t most_bytes, struct gpt_neox_fp32 *fp32,
                                                   struct error *error);

/** Frees; a zero-initialised one is allowed. */
void gpt_neox_fp32_free(struct gpt_neox_fp32 *fp32);

#endif

/**
 * @file llama2_write.h
 * @brief Writes Llama2 checkpoints as Hugging Face folders: config.json, model.safetensors or
 *        shards with an index, in fp32, fp16 or bf16.
 *
 * If the weights' rotary layout is NN_ROPE_INTERLEAVED (llama2.c's), the rows of wq and wk are
 * permuted to NN_ROPE_HALVES, which gives the same model. config.json is that of a Llama2:
 * llama2_extra() must be NULL, or the caller writes another one. The classifier is left out if
 * weights->classifier equals weights->embedding.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_WRITE_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_WRITE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_weights.h"
#include "common/nn/dtype.h"

struct llama2_write_options {
    enum nn_dtype dtype; /**< of all tensors */
    size_t shards; /**< 1: model.safetensors alone; more: also an index; at most one per tensor */
};

enum { LLAMA2_SHARD_NAME_BYTES = 64 };

/** @return "model.safetensors", or "model-00002-of-00003.safetensors" for @p shard 1 of 3. */
const char *llama2_shard_name(size_t shard, size_t shards, char name[LLAMA2_SHARD_NAME_BYTES]);

/**
 * @brief Serialises one shard into memory that the caller frees.
 *
 * Shards have tensors in the order of llama2_tensors_visit(); their numbers of tensors differ by at
 * most one.
 *
 * @param shard in [0, options->shards)
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT (shards), STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status llama2_shard_serialize(const struct llama2_config *config,
                                              const struct llama2_weights *weights,
                                              const struct llama2_write_options *options,
                                              size_t shard, unsigned char **data, size_t *size,
                                              struct error *error);

/**
 * @brief Serialises the index of all shards as text that the caller frees.
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT (shards), STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status llama2_index_serialize(const struct llama2_config *config,
                                              bool shared_classifier,
                                              const struct llama2_write_options *options,
                                              char **json, struct error *error);

/**
 * @brief Serialises a configuration as the text of a config.json, which the caller frees.
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status llama2_config_serialize(const struct llama2_config *config,
                                               bool shared_classifier, enum nn_dtype dtype,
                                               char **json);

/**
 * @brief Writes all files into a folder that exists, config.json last.
 * @return STATUS_OK, or the status of llama2_shard_serialize(), llama2_index_serialize(),
 *         folder_write() or llama2_config_serialize()
 */
MUST_CHECK enum status llama2_checkpoint_write(const char *folder,
                                               const struct llama2_config *config,
                                               const struct llama2_weights *weights,
                                               const struct llama2_write_options *options,
                                               struct error *error);

#endif

/**
 * @file gpt_neox_write.h
 * @brief Writes GPT-NeoX checkpoints as Hugging Face folders: config.json and model.safetensors, in
 *        fp32, fp16 or bf16. The classifier is left out if weights->classifier equals
 *        weights->embedding.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_WRITE_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_WRITE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/gpt_neox/gpt_neox_weights.h"
#include "common/nn/dtype.h"

/**
 * @brief Serialises all tensors into memory that the caller frees.
 * @param dtype of all tensors
 * @return STATUS_OK, STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status gpt_neox_serialize(const struct gpt_neox_config *config,
                                          const struct gpt_neox_weights *weights,
                                          enum nn_dtype dtype, unsigned char **data, size_t *size,
                                          struct error *error);

/**
 * @brief Serialises a configuration as the text of a config.json, which the caller frees.
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status gpt_neox_config_serialize(const struct gpt_neox_config *config,
                                                 bool shared_classifier, enum nn_dtype dtype,
                                                 char **json);

/**
 * @brief Writes both files into a folder that exists, config.json last.
 * @return STATUS_OK, or the status of gpt_neox_serialize(), gpt_neox_config_serialize() or
 *         folder_write()
 */
MUST_CHECK enum status gpt_neox_checkpoint_write(const char *folder,
                                                 const struct gpt_neox_config *config,
                                                 const struct gpt_neox_weights *weights,
                                                 enum nn_dtype dtype, struct error *error);

#endif

/**
 * @file train_config.h
 * @brief The sizes of the model: read from a config.json or from flags, and written to one.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_CONFIG_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_CONFIG_H_

#include "common/train/program/train_options.h"

/**
 * @brief Sets the sizes: from --load-checkpoint, from --config, or from the flags.
 *
 * The size of the vocabulary is 0 if the sizes come from flags; labels, most_rows and
 * most_sequences are not set.
 *
 * @return STATUS_OK; as bert_config_parse(), llama2_config_parse() and
 *         gpt_neox_config_parse(), with the path;
 *         STATUS_UNSUPPORTED for what llama2_extra() names;
 *         STATUS_INVALID_ARGUMENT when texts of --max-length do not fit the model
 */
MUST_CHECK enum status train_config_choose(struct train_config *config,
                                           const struct train_options *options,
                                           struct error *error);

/** @return the size of the vocabulary. */
size_t train_config_vocabulary(const struct train_config *config);

/**
 * @brief The text of a config.json, which the caller frees.
 * @param label_names (labels), TRAIN_CLASSIFY; else NULL
 * @param dtype       of the tensors beside it
 */
MUST_CHECK enum status train_config_serialize(const struct train_config *config,
                                              const char *const *label_names, enum nn_dtype dtype,
                                              char **json, struct error *error);

#endif

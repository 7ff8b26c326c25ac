/**
 * @file llama2_rope_config.h
 * @brief Rotary embedding's part of config.json; private to the checkpoint's reader.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_ROPE_CONFIG_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_ROPE_CONFIG_H_

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_weights.h"

struct cJSON;

/**
 * @brief Reads rope_theta, and rope_scaling or, since transformers 5, rope_parameters.
 * @param config has its context already; receives layout, theta and scaling
 * @return STATUS_OK; STATUS_BAD_FORMAT with the key; STATUS_UNSUPPORTED for another rope_type
 */
MUST_CHECK enum status llama2_rope_read(struct llama2_config *config, const struct cJSON *json,
                                        struct error *error);

#endif

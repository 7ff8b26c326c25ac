/**
 * @file packed_config.h
 * @brief How a Hugging Face folder stores weights of 8 or 4 bits: config.json's
 *        "quantization_config".
 *
 * Two layouts are read. compressed-tensors, format "pack-quantized": also what `quantize` writes.
 * GPTQ: of AutoGPTQ and GPTQModel.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_PACKED_PACKED_CONFIG_H_
#define WARPBOOK_COMMON_CHECKPOINTS_PACKED_PACKED_CONFIG_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

enum packed_format {
    PACKED_NONE, /**< there is no "quantization_config" */
    PACKED_COMPRESSED,
    PACKED_GPTQ
};

struct packed_config {
    enum packed_format format;
    size_t bits;    /**< 4 or 8 */
    size_t group;   /**< columns with one scale; 0: a row */
    bool symmetric; /**< COMPRESSED: no zero points are stored */
    int zero_add;   /**< GPTQ: what is added to a stored zero point: 1, in newer files 0 */
};

/**
 * @brief Reads the text of a config.json; only "quantization_config" is looked at.
 * @return STATUS_OK; STATUS_BAD_FORMAT; STATUS_UNSUPPORTED, with the key, for other methods,
 *         formats, bits, or several groups of modules; the status of json_object_parse()
 */
MUST_CHECK enum status packed_config_parse(struct packed_config *config, const char *json,
                                           size_t size, struct error *error);

struct cJSON;

/**
 * @brief Adds "quantization_config" to the object of a config.json: compressed-tensors.
 * @param method "rtn" or "gptq", a note in the file
 * @return false without memory
 */
bool packed_config_add(struct cJSON *json, const struct packed_config *config, const char *method);

#endif

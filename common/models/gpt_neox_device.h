/**
 * @file gpt_neox_device.h
 * @brief A GPT-NeoX's weights in device memory: queries, keys and values as one matrix, all
 * matrices in one type.
 */
#ifndef WARPBOOK_COMMON_MODELS_GPT_NEOX_DEVICE_H_
#define WARPBOOK_COMMON_MODELS_GPT_NEOX_DEVICE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/models/gpt_neox_decoder.h"

/** Device memory, 256-byte aligned, row-major; matrices of the model's dtype, the rest fp32. */
struct gpt_neox_device_layer {
    const float *attention_norm, *attention_norm_bias; /**< (C) */
    const float *ffn_norm, *ffn_norm_bias;             /**< (C) */
    const void *qkv;        /**< (3 C, C): rows of q, then k, then v, each head's channels in the
                                 file's order: channel i is rotated with rotary / 2 + i */
    const float *qkv_bias;  /**< (3 C); NULL: there is none */
    const void *out;        /**< (C, C) */
    const float *out_bias;  /**< (C); NULL: there is none */
    const void *up;         /**< (hidden, C) */
    const float *up_bias;   /**< (hidden) */
    const void *down;       /**< (C, hidden) */
    const float *down_bias; /**< (C) */
};

struct gpt_neox_device {
    enum nn_dtype dtype;
    const void *embedding;                     /**< (V, C) */
    struct gpt_neox_device_layer *layers;      /**< (L), host memory */
    const float *final_norm, *final_norm_bias; /**< (C) */
    const void *classifier;                    /**< (V, C); equals embedding when shared */
    size_t bytes;                              /**< device memory of all weights */
};

/**
 * @brief Converts the weights, copies them to the device and waits for the copies.
 *
 * Takes a host buffer of at most 64 MiB meanwhile.
 *
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY, with the bytes needed and the bytes free, before the
 *         first copy; STATUS_OVERFLOW; STATUS_DEVICE
 */
MUST_CHECK enum status gpt_neox_device_load(struct gpt_neox_device *device,
                                            const struct gpt_neox_decoder_model *model,
                                            device_stream stream, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void gpt_neox_device_free(struct gpt_neox_device *device);

#endif

/**
 * @file llama2_device.h
 * @brief A Llama2's weights in device memory: matrices with the same input are stored as one
 *        matrix, all matrices in one type.
 */
#ifndef WARPBOOK_COMMON_MODELS_LLAMA2_DEVICE_H_
#define WARPBOOK_COMMON_MODELS_LLAMA2_DEVICE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/models/llama2_decoder.h"

/** Device memory, 256-byte aligned, row-major; norms fp32, matrices of the model's dtype. */
struct llama2_device_layer {
    const float *attention_norm; /**< (C) */
    const void *qkv;             /**< ((NH + 2 KVH) * HS, C): rows of q, then k, then v */
    const void *out;             /**< (C, NH*HS) */
    const float *ffn_norm;       /**< (C) */
    const void *gate_up;         /**< (2 * hidden, C): rows of the gate (w1), then of up (w3) */
    const void *down;            /**< (C, hidden) */

    /* Biases, fp32; NULL: there are none. */
    const float *qkv_bias;     /**< ((NH + 2 KVH) * HS): of q, then k, then v */
    const float *out_bias;     /**< (C) */
    const float *gate_up_bias; /**< (2 * hidden): of the gate, then of up */
    const float *down_bias;    /**< (C) */
};

struct llama2_device {
    enum nn_dtype dtype;
    const void *embedding;              /**< (V, C) */
    struct llama2_device_layer *layers; /**< (L), host memory */
    const float *final_norm;            /**< (C) */
    const void *classifier;             /**< (V, C); equals embedding when shared */
    size_t bytes;                       /**< device memory of all weights */
    size_t decode_bytes;                /**< bytes that one token reads: all weights, but only one
                                           row of an embedding that is not the classifier, too */
};

/**
 * @brief Converts the weights, copies them to the device and waits for the copies.
 *
 * Takes a host buffer of at most 64 MiB meanwhile.
 *
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY, with the bytes needed and the bytes free, before the
 *         first copy; STATUS_OVERFLOW; STATUS_DEVICE
 */
MUST_CHECK enum status llama2_device_load(struct llama2_device *device,
                                          const struct llama2_decoder_model *model,
                                          device_stream stream, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void llama2_device_free(struct llama2_device *device);

#endif

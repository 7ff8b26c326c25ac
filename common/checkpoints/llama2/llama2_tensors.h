/**
 * @file llama2_tensors.h
 * @brief Visits the tensors of a Llama2: name, shape, and pointers in the stored and fp32 weights.
 *
 * Only this file knows Hugging Face's tensor names. Loader, converter and writer all use it.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_TENSORS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_TENSORS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/decoder/decoder_tensors.h"
#include "common/checkpoints/llama2/llama2_weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As struct llama2_layer, but as stored. */
struct llama2_stored_layer {
    struct decoder_stored_tensor attention_norm; /**< (C) */
    struct decoder_stored_tensor wq;             /**< (NH*HS, C) */
    struct decoder_stored_tensor wk, wv;         /**< (KVH*HS, C) */
    struct decoder_stored_tensor wo;             /**< (C, NH*HS) */
    struct decoder_stored_tensor ffn_norm;       /**< (C) */
    struct decoder_stored_tensor w1;             /**< (hidden, C): gate */
    struct decoder_stored_tensor w2;             /**< (C, hidden): down */
    struct decoder_stored_tensor w3;             /**< (hidden, C): up */
    struct decoder_stored_tensor bq, bk, bv;     /**< biases, as in struct llama2_layer; without
                                                     data where it has NULL */
    struct decoder_stored_tensor bo, b1, b2, b3;
};

/** As struct llama2_weights, but as stored. */
struct llama2_stored_weights {
    struct decoder_stored_tensor embedding;  /**< (V, C) */
    struct llama2_stored_layer *layers;      /**< (L) */
    struct decoder_stored_tensor final_norm; /**< (C) */
    struct decoder_stored_tensor classifier; /**< (V, C); equals embedding when shared */
};

/** @return the number of tensors of a layer. */
size_t llama2_layer_tensors(const struct llama2_config *config);

/** As decoder_tensors_visit(). */
MUST_CHECK enum status llama2_tensors_visit(const struct llama2_config *config,
                                            bool shared_classifier,
                                            struct llama2_stored_weights *stored,
                                            struct llama2_weights *plain,
                                            decoder_weight_visitor *visit, void *context);

#ifdef __cplusplus
}
#endif

#endif

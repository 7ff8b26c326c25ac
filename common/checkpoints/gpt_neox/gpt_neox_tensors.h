/**
 * @file gpt_neox_tensors.h
 * @brief Visits the tensors of a GPT-NeoX: name, shape, and pointers in the stored and fp32
 * weights.
 *
 * Only this file knows the names of transformers' GPTNeoXForCausalLM. Loader, converter and writer
 * all use it.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_TENSORS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_TENSORS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/decoder/decoder_tensors.h"
#include "common/checkpoints/gpt_neox/gpt_neox_weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As struct gpt_neox_layer, but as stored: vectors are one row, biases may have no data. */
struct gpt_neox_stored_layer {
    struct decoder_stored_tensor attention_norm, attention_norm_bias; /**< (C) */
    struct decoder_stored_tensor ffn_norm, ffn_norm_bias;             /**< (C) */
    struct decoder_stored_tensor qkv;      /**< (NH*3*HS, C), see gpt_neox_qkv_row() */
    struct decoder_stored_tensor qkv_bias; /**< (NH*3*HS) */
    struct decoder_stored_tensor wo, bo;
    struct decoder_stored_tensor up, up_bias;
    struct decoder_stored_tensor down, down_bias;
};

/** As struct gpt_neox_weights, but as stored. */
struct gpt_neox_stored_weights {
    struct decoder_stored_tensor embedding;
    struct gpt_neox_stored_layer *layers; /**< (L) */
    struct decoder_stored_tensor final_norm, final_norm_bias;
    struct decoder_stored_tensor classifier; /**< equals embedding when shared */
};

/** As decoder_tensors_visit(). */
MUST_CHECK enum status gpt_neox_tensors_visit(const struct gpt_neox_config *config,
                                              bool shared_classifier,
                                              struct gpt_neox_stored_weights *stored,
                                              struct gpt_neox_weights *plain,
                                              decoder_weight_visitor *visit, void *context);

#ifdef __cplusplus
}
#endif

#endif

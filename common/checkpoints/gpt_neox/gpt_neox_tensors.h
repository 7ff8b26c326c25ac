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
#include "common/checkpoints/gpt_neox/gpt_neox_weights.h"
#include "common/checkpoints/llama2/llama2_tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As struct gpt_neox_layer, but as stored: vectors are one row, biases may have no data. */
struct gpt_neox_stored_layer {
    struct llama2_stored_tensor attention_norm, attention_norm_bias; /**< (C) */
    struct llama2_stored_tensor ffn_norm, ffn_norm_bias;             /**< (C) */
    struct llama2_stored_tensor qkv;      /**< (NH*3*HS, C), see gpt_neox_qkv_row() */
    struct llama2_stored_tensor qkv_bias; /**< (NH*3*HS) */
    struct llama2_stored_tensor wo, bo;
    struct llama2_stored_tensor up, up_bias;
    struct llama2_stored_tensor down, down_bias;
};

/** As struct gpt_neox_weights, but as stored. */
struct gpt_neox_stored_weights {
    struct llama2_stored_tensor embedding;
    struct gpt_neox_stored_layer *layers; /**< (L) */
    struct llama2_stored_tensor final_norm, final_norm_bias;
    struct llama2_stored_tensor classifier; /**< equals embedding when shared */
};

struct gpt_neox_tensor {
    const char *name; /**< "gpt_neox.layers.3.mlp.dense_h_to_4h.weight"; only during the visit */
    size_t rank;      /**< 1 or 2 */
    size_t shape[2];
    size_t parts; /**< 3 for query_key_value, whose rows are those of q, k and v; else 1 */
    struct llama2_stored_tensor *stored; /**< its entry in the stored weights */
    const float **plain[3];              /**< (parts) its pointers in the fp32 weights */
};

/** Called for each tensor, until it returns a status that is not STATUS_OK. */
typedef enum status gpt_neox_tensor_visitor(void *context, const struct gpt_neox_tensor *tensor);

/**
 * @brief Visits the embedding, the layers, the final norm, and the classifier unless it is shared.
 *
 * @param stored, plain the weights into which a visitor's pointers point. If one is NULL, or its
 *        `layers`, they point to scratch memory: for a visitor that does not use them.
 * @return STATUS_OK, or the first other status of @p visit
 */
MUST_CHECK enum status gpt_neox_tensors_visit(const struct gpt_neox_config *config,
                                              bool shared_classifier,
                                              struct gpt_neox_stored_weights *stored,
                                              struct gpt_neox_weights *plain,
                                              gpt_neox_tensor_visitor *visit, void *context);

/** @return the elements of a tensor: a product of sizes up to 3 * INT32_MAX, which fits. */
size_t gpt_neox_tensor_count(const struct gpt_neox_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif

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
#include "common/checkpoints/llama2/llama2_weights.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A tensor inside a mapped file, host, row-major. */
struct llama2_stored_tensor {
    const void *data; /**< may be unaligned */
    enum nn_dtype dtype;
    size_t rows; /**< 1 for a vector */
    size_t columns;
};

/** As struct llama2_layer, but as stored. */
struct llama2_stored_layer {
    struct llama2_stored_tensor attention_norm; /**< (C) */
    struct llama2_stored_tensor wq;             /**< (NH*HS, C) */
    struct llama2_stored_tensor wk, wv;         /**< (KVH*HS, C) */
    struct llama2_stored_tensor wo;             /**< (C, NH*HS) */
    struct llama2_stored_tensor ffn_norm;       /**< (C) */
    struct llama2_stored_tensor w1;             /**< (hidden, C): gate */
    struct llama2_stored_tensor w2;             /**< (C, hidden): down */
    struct llama2_stored_tensor w3;             /**< (hidden, C): up */
    struct llama2_stored_tensor bq, bk, bv;     /**< biases, as in struct llama2_layer; without
                                                     data where it has NULL */
    struct llama2_stored_tensor bo, b1, b2, b3;
};

/** As struct llama2_weights, but as stored. */
struct llama2_stored_weights {
    struct llama2_stored_tensor embedding;  /**< (V, C) */
    struct llama2_stored_layer *layers;     /**< (L) */
    struct llama2_stored_tensor final_norm; /**< (C) */
    struct llama2_stored_tensor classifier; /**< (V, C); equals embedding when shared */
};

struct llama2_tensor {
    const char *name; /**< "model.layers.3.mlp.up_proj.weight"; valid during the visit only */
    size_t rank;      /**< 1 or 2 */
    size_t shape[2];
    size_t rope_heads; /**< wq and wk: number of heads, which rotary embedding rotates; else 0 */
    struct llama2_stored_tensor *stored; /**< its entry in the stored weights */
    const float **plain;                 /**< its pointer in the fp32 weights */
};

/** Called for each tensor, until it returns a status that is not STATUS_OK. */
typedef enum status llama2_tensor_visitor(void *context, const struct llama2_tensor *tensor);

/** @return the number of tensors of a layer. */
size_t llama2_layer_tensors(const struct llama2_config *config);

/**
 * @brief Visits the embedding, the layers, the final norm, and the classifier unless it is shared.
 *
 * Shapes are products of sizes up to INT32_MAX, which fit a size_t.
 *
 * @param stored, plain the weights into which a visitor's pointers point. If one is NULL, or its
 *        `layers`, they point to scratch memory: for a visitor that does not use them.
 * @return STATUS_OK, or the first other status of @p visit
 */
MUST_CHECK enum status llama2_tensors_visit(const struct llama2_config *config,
                                            bool shared_classifier,
                                            struct llama2_stored_weights *stored,
                                            struct llama2_weights *plain,
                                            llama2_tensor_visitor *visit, void *context);

#ifdef __cplusplus
}
#endif

#endif

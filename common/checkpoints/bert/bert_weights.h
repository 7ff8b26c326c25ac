/**
 * @file bert_weights.h
 * @brief A loaded BERT: its sizes, and pointers to fp32 weights in host memory.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_WEIGHTS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_WEIGHTS_H_

#include <stddef.h>

#include "common/nn/nn.h"

struct bert_config {
    size_t C;                      /**< channels ("hidden_size") */
    size_t hidden;                 /**< channels inside the feed-forward ("intermediate_size") */
    size_t L;                      /**< layers ("num_hidden_layers") */
    size_t NH;                     /**< heads ("num_attention_heads"), divides C */
    size_t V;                      /**< vocabulary size */
    size_t T;                      /**< longest sequence ("max_position_embeddings") */
    size_t types;                  /**< token types ("type_vocab_size") */
    size_t labels;                 /**< classes of the classifier; 0: the checkpoint has none */
    float norm_eps;                /**< eps of every LayerNorm ("layer_norm_eps") */
    enum nn_activation activation; /**< "hidden_act" */
};

/** Weight (out, in) and bias (out) of one linear layer; host, fp32. */
struct bert_linear {
    const float *weight, *bias;
};

struct bert_layer {
    struct bert_linear q, k, v;                               /**< (C, C) */
    struct bert_linear attention_out;                         /**< (C, C) */
    const float *attention_norm_weight, *attention_norm_bias; /**< (C) */
    struct bert_linear up;                                    /**< (hidden, C): "intermediate" */
    struct bert_linear down;                                  /**< (C, hidden): "output" */
    const float *output_norm_weight, *output_norm_bias;       /**< (C) */
};

struct bert_weights {
    const float *word_embedding;                              /**< (V, C) */
    const float *position_embedding;                          /**< (T, C) */
    const float *type_embedding;                              /**< (types, C) */
    const float *embedding_norm_weight, *embedding_norm_bias; /**< (C) */
    struct bert_layer *layers;                                /**< (L) */
    struct bert_linear pooler;     /**< (C, C); weight NULL: the checkpoint has none */
    struct bert_linear classifier; /**< (labels, C); weight NULL: none */
};

#endif

/**
 * @file llama2_weights.h
 * @brief A loaded Llama2: its sizes, and pointers to fp32 weights in host memory.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_WEIGHTS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_WEIGHTS_H_

#include <stddef.h>

#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct llama2_config {
    size_t C;       /**< channels ("dim") */
    size_t hidden;  /**< channels inside the feed-forward ("hidden_dim") */
    size_t L;       /**< layers */
    size_t NH, KVH; /**< query heads, key/value heads; NH is a multiple of KVH */
    size_t HS;      /**< head size, C / NH, even */
    size_t V;       /**< vocabulary size */
    size_t T;       /**< longest context */
    float rope_theta;
    float norm_eps;
    enum nn_rope_layout rope_layout;
};

/** Weights of a layer: host, fp32, row-major (out features, in features). */
struct llama2_layer {
    const float *attention_norm; /**< (C) */
    const float *wq;             /**< (NH*HS, C) */
    const float *wk, *wv;        /**< (KVH*HS, C) */
    const float *wo;             /**< (C, NH*HS) */
    const float *ffn_norm;       /**< (C) */
    const float *w1;             /**< (hidden, C): gate */
    const float *w2;             /**< (C, hidden): down */
    const float *w3;             /**< (hidden, C): up */
};

struct llama2_weights {
    const float *embedding;      /**< (V, C) */
    struct llama2_layer *layers; /**< (L) */
    const float *final_norm;     /**< (C) */
    const float *classifier;     /**< (V, C); equals embedding when shared */
};

#ifdef __cplusplus
}
#endif

#endif

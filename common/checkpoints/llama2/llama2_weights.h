/**
 * @file llama2_weights.h
 * @brief A loaded Llama2 or a relative (Llama 3, Mistral, Qwen2): its sizes, and pointers to fp32
 *        weights in host memory.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_WEIGHTS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_WEIGHTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How rotary embedding's frequencies are changed for a context longer than the original one. */
enum llama2_rope_scaling {
    LLAMA2_ROPE_PLAIN,  /**< not at all */
    LLAMA2_ROPE_LINEAR, /**< all divided by a factor (Chen et al. 2023) */
    LLAMA2_ROPE_LLAMA3, /**< the slow ones divided, the fast ones kept (Llama 3.1) */
    LLAMA2_ROPE_YARN    /**< the same with another ramp, and longer q.k (Peng et al. 2023) */
};

/** Scaling of rotary embedding, as config.json's "rope_scaling" or "rope_parameters" has it. */
struct llama2_rope {
    enum llama2_rope_scaling scaling;
    double factor;         /**< at least 1 */
    double slow, fast;     /**< llama3: low_freq_factor and high_freq_factor; yarn: beta_slow and
                                beta_fast, in turns over the original context */
    double original;       /**< positions of the original context */
    bool truncate;         /**< yarn: the ramp begins and ends at whole pairs of channels */
    float attention_scale; /**< factor of q.k; 0: 1 */
};

struct llama2_config {
    size_t C;       /**< channels ("dim") */
    size_t hidden;  /**< channels inside the feed-forward ("hidden_dim") */
    size_t L;       /**< layers */
    size_t NH, KVH; /**< query heads, key/value heads; NH is a multiple of KVH */
    size_t HS;      /**< head size, even; C / NH in most models */
    size_t V;       /**< vocabulary size */
    size_t T;       /**< longest context */
    float rope_theta;
    float norm_eps;
    enum nn_rope_layout rope_layout;

    /* What relatives of Llama2 have beside. Zeros: Llama2. */
    struct llama2_rope rope;
    bool qkv_bias, out_bias; /**< attention's projections have a bias */
    bool mlp_bias;           /**< so have the feed-forward's */
    size_t window;           /**< a query sees this many keys, its own included; 0: all before it */
    size_t full_layers;      /**< layers before this one have no window */

    /* A text without end (attention sinks, Xiao et al. 2023): a query sees the first `sinks` tokens
       of the text and the last `recent` ones, rotated by their places among these. No checkpoint
       says so; who runs the model does. recent 0: off. T is then sinks + recent. */
    size_t sinks, recent;
};

/** @return what the first of these is that Llama2 does not have, as "a sliding window"; or NULL. */
const char *llama2_extra(const struct llama2_config *config);

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
    const float *bq, *bk, *bv;   /**< (NH*HS), (KVH*HS) twice; NULL without qkv_bias */
    const float *bo;             /**< (C); NULL without out_bias */
    const float *b1, *b2, *b3;   /**< (hidden), (C), (hidden); NULL without mlp_bias */
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

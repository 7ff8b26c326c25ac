/**
 * @file gpt_neox_weights.h
 * @brief A loaded GPT-NeoX (Black et al. 2022; Pythia, Biderman et al. 2023): its sizes, and
 *        pointers to fp32 weights in host memory.
 *
 * Rotary embedding rotates the first `rotary` channels of a head: channel i with rotary/2 + i. Here
 * the channels of q and k have another order, in which a rotation of whole heads (NN_ROPE_HALVES)
 * does the same: pair i is channels i and HS/2 + i, and pairs from rotary/2 on are rotated by an
 * angle of zero. Scores q.k do not depend on the order. gpt_neox_qkv_row() knows both orders.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_WEIGHTS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_GPT_NEOX_WEIGHTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpt_neox_config {
    size_t C;      /**< channels; NH * HS */
    size_t hidden; /**< channels inside the feed-forward */
    size_t L;      /**< layers */
    size_t NH, HS; /**< heads; head size, even */
    size_t V;      /**< rows of the embedding; a tokenizer may have fewer tokens */
    size_t T;      /**< longest context */
    size_t rotary; /**< channels of a head that rotary embedding rotates: even, 2 .. HS */
    float rope_theta;
    float norm_eps;
    enum nn_activation activation; /**< NN_GELU or NN_GELU_TANH */
    bool parallel;        /**< x + attention(norm1(x)) + mlp(norm2(x)); false: one after the other,
                               y = x + attention(norm1(x)), then y + mlp(norm2(y)) */
    bool attention_bias;  /**< attention's projections have a bias; all others always have */
    size_t sinks, recent; /**< a text without end, as llama2_config has it; no checkpoint says so.
                               recent 0: off; else T is sinks + recent */
};

/** Weights of a layer: host, fp32, row-major (out features, in features). */
struct gpt_neox_layer {
    const float *attention_norm, *attention_norm_bias; /**< (C): norm1 */
    const float *ffn_norm, *ffn_norm_bias;             /**< (C): norm2 */
    const float *wq, *wk;          /**< (C, C); rows of each head in the order above */
    const float *wv;               /**< (C, C) */
    const float *bq, *bk, *bv;     /**< (C); NULL without attention_bias */
    const float *wo, *bo;          /**< (C, C), (C); bo NULL without attention_bias */
    const float *up, *up_bias;     /**< (hidden, C), (hidden) */
    const float *down, *down_bias; /**< (C, hidden), (C) */
};

struct gpt_neox_weights {
    const float *embedding;                    /**< (V, C) */
    struct gpt_neox_layer *layers;             /**< (L) */
    const float *final_norm, *final_norm_bias; /**< (C) */
    const float *classifier;                   /**< (V, C); equals embedding when shared */
};

/**
 * @brief Where a row of wq, wk or wv is in a file's query_key_value.
 * @param part 0: q, 1: k, 2: v
 * @param row  of wq, wk or wv, below C
 * @return the row of query_key_value, (NH, 3, HS) rows, and the element of its bias
 */
size_t gpt_neox_qkv_row(const struct gpt_neox_config *config, size_t part, size_t row);

/**
 * @brief Computes the radians that each pair of channels of a head turns per position: theta^(-2i /
 *        rotary), and zero for pairs that are not rotated.
 * @param frequencies (HS/2)
 */
void gpt_neox_rope_frequencies(float *frequencies, const struct gpt_neox_config *config);

#ifdef __cplusplus
}
#endif

#endif

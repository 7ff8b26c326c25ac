/**
 * @file train_decoder.h
 * @brief A decoder that predicts the next token of each row: what Llama2 and GPT-NeoX have in
 *        common, over the few things in which a family differs.
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_DECODER_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_DECODER_H_

#include "common/train/models/train_model_internal.h"

/** What the passes depend on. */
struct train_decoder_shape {
    size_t C, hidden, L, NH, KVH, HS, V, T;
    size_t rotary;              /**< first channels of a head that are rotated; HS: all */
    enum nn_rope_layout layout; /**< which of them are a pair */
    float theta, eps;
    bool layernorm; /**< norms and linear layers have biases; else RMSNorm, and none has */
    bool gated;     /**< feed-forward: silu(gate) * up, rows of the gate first; else GELU(up) */
    bool parallel;  /**< both sublayers read x; else the feed-forward reads attention's sum */
};

/** Offsets of a layer's parameters. */
struct train_decoder_layer {
    struct train_norm_place attention_norm;  /**< (C) */
    struct train_linear_place qkv;           /**< ((NH + 2 KVH) HS, C): query, key, value */
    struct train_linear_place attention_out; /**< (C, NH HS) */
    struct train_norm_place ffn_norm;        /**< (C) */
    struct train_linear_place up;            /**< (hidden or 2 hidden, C) */
    struct train_linear_place down;          /**< (C, hidden) */
};

/** Offsets of a model's parameters. */
struct train_decoder_places {
    size_t embedding, classifier; /**< (V, C); equal when tied */
    struct train_norm_place final_norm;
    struct train_decoder_layer *layers; /**< (L) */
};

/** A family of decoders. */
struct train_decoder_family {
    struct train_decoder_shape (*shape)(const struct train_config *config);
    /** @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a message */
    enum status (*check)(const struct train_config *config, struct error *error);
    /** Adds all tensors to the list, and sets their places. */
    void (*list)(const struct train_config *config, struct train_listing *listing,
                 struct train_decoder_places *places);
};

extern const struct train_decoder_family train_gpt_neox_family;
extern const struct train_decoder_family train_llama2_family;

#endif

/**
 * @file train_bert_internal.h
 * @brief Structs and functions shared by train_bert.c (encoder) and train_bert_heads.c (heads).
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_BERT_INTERNAL_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_BERT_INTERNAL_H_

#include "common/train/models/train_model_internal.h"

/** Offsets of a layer's parameters. */
struct train_bert_layer {
    struct train_linear_place qkv;           /**< (3C, C): query, key, value */
    struct train_linear_place attention_out; /**< (C, C) */
    struct train_norm_place attention_norm;  /**< (C) */
    struct train_linear_place up;            /**< (hidden, C) */
    struct train_linear_place down;          /**< (C, hidden) */
    struct train_norm_place output_norm;     /**< (C) */
};

/** Activations of a layer that the forward pass keeps; x is the layer's input. */
struct train_bert_activity {
    void *qkv;          /**< (rows, 3, C) */
    void *attended;     /**< (rows, C): output of attention */
    void *lse;          /**< (rows, NH): log-sum-exp of attention */
    void *middle_sum;   /**< (rows, C): x + dropout(attention_out(attended)) */
    void *middle;       /**< (rows, C): LayerNorm(middle_sum) */
    void *middle_stats; /**< (rows, 2) */
    void *inner;        /**< (rows, hidden): up(middle) */
    void *activated;    /**< (rows, hidden): GELU(inner) */
    void *output_sum;   /**< (rows, C): middle + dropout(down(activated)) */
    void *output;       /**< (rows, C): LayerNorm(output_sum) */
    void *output_stats; /**< (rows, 2) */
};

/** Parameters and activations of a head, which processes at most `count` rows at once. */
struct train_bert_head {
    struct train_linear_place dense;      /**< (C, C): pooler, or the transform */
    struct train_norm_place norm;         /**< (C), TRAIN_MLM */
    struct train_linear_place classifier; /**< (labels, C), or the word embedding and (V) */
    size_t count;
    void *rows;               /**< (count, C): of the encoder's output */
    void *inner;              /**< (count, C): dense(rows) */
    void *activated;          /**< (count, C): tanh(inner) or GELU(inner) */
    void *normed, *stats;     /**< (count, C), (count, 2): dropout or LayerNorm of activated */
    void *logits;             /**< (count, labels) or (count, V) */
    void *dactivated, *drows; /**< (count, C) each: gradients */
};

struct train_bert {
    size_t word, position, type; /**< offsets of (V, C), (T, C), (types, C) */
    struct train_norm_place embedding_norm;
    struct train_bert_layer *layers; /**< (L) */
    struct train_bert_head head;

    void *embedded, *embedded_stats;  /**< (rows, C), (rows, 2): input of the first norm */
    void *first;                      /**< (rows, C): input of the first layer */
    struct train_bert_activity *kept; /**< (L) */

    /* Gradients of the backward pass. */
    void *dx;      /**< (rows, C): of the residual stream */
    void *dropped; /**< (rows, C): of the input of a dropout */
    void *dinner;  /**< (rows, max(hidden, C)) */
    void *dqkv;    /**< (rows, 3, C) */
};

/** Numbers of the dropouts: 0 after the embeddings, then those of layer l, then the classifier's.
 */
static inline uint32_t train_bert_site_attention(size_t l) {
    return (uint32_t)(1 + 2 * l);
}
static inline uint32_t train_bert_site_output(size_t l) {
    return (uint32_t)(2 + 2 * l);
}
static inline uint32_t train_bert_site_classifier(const struct train_model *m) {
    return (uint32_t)(1 + 2 * m->config.bert.L);
}
static inline struct train_dropout train_bert_dropout(const struct train_pass *pass,
                                                      uint32_t site) {
    return (struct train_dropout){
        .p = pass->p, .seed = pass->seed, .site = site, .step = pass->step};
}

/** Adds the head's tensors. */
void train_bert_head_list(struct train_model *m, struct train_listing *listing);

/** Reserves space for the head's activations. */
void train_bert_head_plan(struct train_model *m, struct train_space *space);

/**
 * @brief Computes the loss of the encoder's output and, in a backward pass, its gradient.
 * @param x  (rows, C) @param dx (rows, C), all zeros before
 */
enum status train_bert_head_run(struct train_model *m, const struct train_pass *pass, const void *x,
                                void *dx);

#endif

/**
 * @file train_bert_internal.h
 * @brief What the encoder of train_bert.c and the heads of train_bert_heads.c share.
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_BERT_INTERNAL_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_BERT_INTERNAL_H_

#include "common/train/models/train_model_internal.h"

/** Where a layer's parameters lie. */
struct train_bert_layer {
    struct train_linear_place qkv;           /**< (3C, C): query, key, value */
    struct train_linear_place attention_out; /**< (C, C) */
    struct train_norm_place attention_norm;  /**< (C) */
    struct train_linear_place up;            /**< (hidden, C) */
    struct train_linear_place down;          /**< (C, hidden) */
    struct train_norm_place output_norm;     /**< (C) */
};

/** What the forward pass keeps of a layer; x is its input, the output of the one before. */
struct train_bert_activity {
    void *qkv;          /**< (rows, 3, C) */
    void *mixed, *lse;  /**< (rows, C), (rows, NH): attention's result */
    void *middle_sum;   /**< (rows, C): x + dropout(attention_out(mixed)) */
    void *middle;       /**< (rows, C): its LayerNorm */
    void *middle_stats; /**< (rows, 2) */
    void *inner;        /**< (rows, hidden): up(middle) */
    void *activated;    /**< (rows, hidden): GELU(inner) */
    void *output_sum;   /**< (rows, C): middle + dropout(down(activated)) */
    void *output;       /**< (rows, C): its LayerNorm */
    void *output_stats; /**< (rows, 2) */
};

/** The heads' parameters and rows: at most `count` rows go through a head at once. */
struct train_bert_head {
    struct train_linear_place dense;      /**< (C, C): pooler, or the transform */
    struct train_norm_place norm;         /**< (C), TRAIN_MLM */
    struct train_linear_place classifier; /**< (labels, C), or the word embedding and (V) */
    size_t count;
    void *rows;               /**< (count, C): of the encoder's output */
    void *inner;              /**< (count, C): dense(rows) */
    void *activated;          /**< (count, C): tanh, or GELU, of it */
    void *normed, *stats;     /**< (count, C), (count, 2): dropout, or LayerNorm, of that */
    void *logits;             /**< (count, labels) or (count, V) */
    void *dactivated, *drows; /**< (count, C) each: gradients */
};

struct train_bert {
    size_t word, position, type; /**< places of (V, C), (T, C), (types, C) */
    struct train_norm_place embedding_norm;
    struct train_bert_layer *layers; /**< (L) */
    struct train_bert_head head;

    void *embedded, *embedded_stats;  /**< (rows, C), (rows, 2): what the first norm is given */
    void *first;                      /**< (rows, C): the first layer's input */
    struct train_bert_activity *kept; /**< (L) */

    /* Gradients on their way back. */
    void *dx;      /**< (rows, C): of the residual stream */
    void *dropped; /**< (rows, C): behind a dropout, of what went into it */
    void *dinner;  /**< (rows, max(hidden, C)) */
    void *dqkv;    /**< (rows, 3, C) */
};

/** Which dropout of the model: behind the embeddings, in layer l, before the classifier. */
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

/** Takes the head's activations. */
void train_bert_head_plan(struct train_model *m, struct train_space *space);

/**
 * @brief The loss of the encoder's output, and, on a backward pass, its gradient.
 * @param x  (rows, C) @param dx (rows, C), all zeros before
 */
enum status train_bert_head_run(struct train_model *m, const struct train_pass *pass, const void *x,
                                void *dx);

#endif

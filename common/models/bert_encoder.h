/**
 * @file bert_encoder.h
 * @brief Arguments of the encoder entries of struct engine, for a stage that runs BERT's whole
 *        encoder itself.
 *
 * This is the largest fused operator: from token ids to the output of the last layer. Pointers are
 * resident unless they say host.
 */
#ifndef WARPBOOK_COMMON_MODELS_BERT_ENCODER_H_
#define WARPBOOK_COMMON_MODELS_BERT_ENCODER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/checkpoints/bert/bert_weights.h"

/** Sizes and weights, passed once; all of it outlives the encoder. */
struct bert_encoder_model {
    const struct bert_config *config;   /**< host, checked */
    const struct bert_weights *weights; /**< the struct is host memory, its pointers are resident;
                                           q, k and v of the layers are not set: see qkv */
    const struct bert_linear *qkv;      /**< (L), host; of each layer (3C, C) and (3C): rows of q,
                                           then k, then v */
    size_t max_tokens;                  /**< most rows of one call */
};

/**
 * One batch without padding: sequence b is the rows starts[b] .. starts[b + 1] - 1. The model has
 * checked it: ids and types are within their tables, lengths are 1 to config->T.
 */
struct bert_encoder_call {
    const int32_t *ids;    /**< (rows), host */
    const int32_t *types;  /**< (rows), host; NULL: all 0 */
    const int32_t *starts; /**< (B + 1), host; the first 0, the last rows */
    size_t B, rows;
    size_t longest; /**< tokens of the longest sequence */
    float *first;   /**< (B, C): the last layer's output for the first token of each sequence */
    float *hidden;  /**< (rows, C): the last layer's output for all tokens; NULL: not wanted */
};

#endif

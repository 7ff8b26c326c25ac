/**
 * @file bert_encoder.h
 * @brief What a stage that runs BERT's whole encoder itself is given: the model once, a batch a
 * call.
 *
 * The largest of the fused operators of struct engine: from token ids to the last layer's result.
 * Pointers are resident unless they say host.
 */
#ifndef WARPBOOK_COMMON_MODELS_BERT_ENCODER_H_
#define WARPBOOK_COMMON_MODELS_BERT_ENCODER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/checkpoints/bert/bert_weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes and weights; all of it outlives the encoder. */
struct bert_encoder_model {
    const struct bert_config *config;   /**< host, checked */
    const struct bert_weights *weights; /**< the struct host, its pointers resident; q, k and v of
                                           the layers are not set: see qkv */
    const struct bert_linear *qkv;      /**< (L), host; of each layer (3C, C) and (3C): the weights
                                           of q, k and v, one below the other */
    size_t max_tokens;                  /**< most rows of one call */
};

/**
 * One batch without padding: sequence b is the rows starts[b] .. starts[b + 1] - 1. All of it is
 * checked: ids and types are within their tables, lengths are 1 to config->T.
 */
struct bert_encoder_call {
    const int32_t *ids;    /**< (rows), host */
    const int32_t *types;  /**< (rows), host; NULL: all 0 */
    const int32_t *starts; /**< (B + 1), host; the first 0, the last rows */
    size_t B, rows;
    size_t longest; /**< of the sequences, in tokens */
    float *first;   /**< (B, C): the last layer's result for the first token of each sequence */
    float *hidden;  /**< (rows, C): its result for all tokens; NULL: not wanted */
};

#ifdef __cplusplus
}
#endif

#endif

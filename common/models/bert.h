/**
 * @file bert.h
 * @brief The complete BERT encoder and classifier (Devlin et al. 2019), written once over struct
 * engine.
 */
#ifndef WARPBOOK_COMMON_MODELS_BERT_H_
#define WARPBOOK_COMMON_MODELS_BERT_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"
#include "common/models/engine.h"

struct bert; /**< opaque: resident weights and activations */

/**
 * One batch of token ids; all host memory. It has B * T rows, one for each token; a packed batch
 * has starts[B] rows: its sequences lie one after the other without padding.
 *
 * A stage that runs the whole encoder itself gets a batch whose padding is behind its texts without
 * the rows of padding. Such a batch costs what the packed one costs.
 */
struct bert_input {
    const int32_t *ids;    /**< (rows), each in [0, V) */
    const int32_t *types;  /**< (rows), each in [0, types); NULL: all 0 */
    const uint8_t *mask;   /**< (B, T), 0 marks padding; NULL: no padding; packed: NULL */
    size_t B, T;           /**< sequences, and tokens of each; packed: T is ignored */
    const int32_t *starts; /**< packed: (B + 1), the first row of each sequence, starting with 0,
                              then the number of rows; NULL: not packed */
};

/** Where outputs go; all host memory. NULL: this output is not wanted. */
struct bert_output {
    float *hidden; /**< (rows, C): last hidden state; without meaning, but finite, in padding */
    float *pooled; /**< (B, C): tanh(pooler([CLS])) */
    float *logits; /**< (B, labels) */
};

/**
 * @brief Makes weights and activations resident.
 * @param config     copied
 * @param weights    host; must outlive the model
 * @param engine     must outlive the model
 * @param max_tokens most rows of one call
 */
MUST_CHECK enum status bert_create(struct bert **model, const struct bert_config *config,
                                   const struct bert_weights *weights, const struct engine *engine,
                                   size_t max_tokens, struct error *error);

void bert_free(struct bert *model);

/**
 * @brief Runs one batch.
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for an id out of range, when B or T is 0, or when
 *         starts do not rise or come with a mask; STATUS_TOO_LONG when a sequence is longer than
 *         config->T or the batch has more than max_tokens rows; STATUS_UNSUPPORTED when pooled or
 *         logits are wanted and the checkpoint has no pooler or classifier; or the engine's status
 */
MUST_CHECK enum status bert_forward(struct bert *model, const struct bert_input *input,
                                    const struct bert_output *output);

#endif

/**
 * @file bert_tensors.h
 * @brief Visits the tensors of a BERT: name, shape, and pointer in struct bert_weights.
 *
 * Only this file knows Hugging Face's tensor names. Loader, writer and random
 * weights all use it.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_TENSORS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_TENSORS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"

struct bert_tensor {
    const char *name;     /**< without "bert."; valid during the visit only */
    const char *old_name; /**< name in the oldest checkpoints (LayerNorm.gamma), or NULL */
    bool outside;         /**< never has the "bert." prefix: the classifier */
    size_t rank;          /**< 1 or 2 */
    size_t shape[2];
    const float **slot; /**< its pointer in struct bert_weights */
};

/** Called for each tensor, until it returns a status that is not STATUS_OK. */
typedef enum status bert_tensor_visitor(void *context, const struct bert_tensor *tensor);

/** Which heads, after the encoder, a model has. */
struct bert_heads {
    bool pooler, classifier;
};

/**
 * @brief Visits the embeddings, the layers, and @p heads.
 * @param weights if `layers` is NULL, the slots of all layers are in one scratch layer: for a
 *        visitor that only looks at names and shapes
 * @return STATUS_OK, or the first other status of @p visit
 */
MUST_CHECK enum status bert_tensors_visit(const struct bert_config *config, struct bert_heads heads,
                                          struct bert_weights *weights, bert_tensor_visitor *visit,
                                          void *context);

#endif

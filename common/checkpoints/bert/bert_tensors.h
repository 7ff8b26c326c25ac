/**
 * @file bert_tensors.h
 * @brief The tensors of a BERT, one after another: name, shape, and the pointer that belongs to it.
 *
 * The one place that knows Hugging Face's names. Loader, writer and random
 * weights all walk this list.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_TENSORS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_TENSORS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bert_tensor {
    const char *name;     /**< without "bert."; valid during the visit only */
    const char *old_name; /**< as first checkpoints spell it (LayerNorm.gamma), or NULL */
    bool outside;         /**< never has the "bert." prefix: the classifier */
    size_t rank;          /**< 1 or 2 */
    size_t shape[2];
    const float **slot; /**< its pointer in the weights */
};

/** Called for each tensor; the walk ends at the first status that is not STATUS_OK. */
typedef enum status bert_tensor_visitor(void *context, const struct bert_tensor *tensor);

/** Which parts behind the encoder a model has. */
struct bert_heads {
    bool pooler, classifier;
};

/**
 * @brief Visits embeddings, layers, and the heads that there are.
 * @param weights layers NULL: the slots of all layers are one scratch layer, for a first look
 * @return the first status that is not STATUS_OK
 */
MUST_CHECK enum status bert_tensors_visit(const struct bert_config *config, struct bert_heads heads,
                                          struct bert_weights *weights, bert_tensor_visitor *visit,
                                          void *context);

#ifdef __cplusplus
}
#endif

#endif

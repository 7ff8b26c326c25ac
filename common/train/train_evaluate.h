/**
 * @file train_evaluate.h
 * @brief Loss and accuracy of a model that is being trained, over all batches of a part.
 */
#ifndef WARPBOOK_COMMON_TRAIN_TRAIN_EVALUATE_H_
#define WARPBOOK_COMMON_TRAIN_TRAIN_EVALUATE_H_

#include "common/train/train_batches.h"
#include "common/train/train_report.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Evaluates; the loss that training has added up must have been taken before.
 *
 * Bits per byte: the loss of all tokens, also of those between texts, over the texts' bytes.
 *
 * @param labels of TRAIN_CLASSIFY
 * @return STATUS_OK; STATUS_INTERRUPTED when a signal came; STATUS_INVALID_ARGUMENT when there
 *         was no label; as train_model_evaluate()
 */
MUST_CHECK enum status train_evaluate(struct train_model *model, struct train_batches *batches,
                                      struct train_batch_memory *memory, size_t labels,
                                      struct train_result *result, struct error *error);

/** @return what is compared between evaluations: larger is better. */
double train_result_score(const struct train_result *result);

#ifdef __cplusplus
}
#endif

#endif

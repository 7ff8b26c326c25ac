/**
 * @file train_evaluate.h
 * @brief Loss and accuracy of a model that is being trained, over all batches of a part.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_EVALUATE_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_EVALUATE_H_

#include "common/train/data/train_batches.h"

/** The result of an evaluation. */
struct train_result {
    enum train_task task;
    double loss;          /**< mean over all labels */
    double accuracy;      /**< TRAIN_CLASSIFY */
    double bits_per_byte; /**< TRAIN_LM, see train_evaluate() */
    size_t labels;        /**< number of labels */
};

/**
 * @brief Evaluates; the caller must have taken the loss that training has accumulated.
 *
 * Bits per byte: the sum of -log2 p over the tokens of the texts, divided by the texts' bytes in
 * UTF-8, as text_dataset.h gives them. BOS, which begins each text, is not counted as a token, and
 * there is no EOS. The blank that the tokenizer puts before a text is a token or part of one, but
 * not a byte. Each token is counted once; p is its probability given the tokens before it in its
 * row of max_length tokens of the stream, which may include the end of the previous text.
 *
 * Checks interrupt_seen(), so interrupt_watch() must have been called.
 *
 * @param batches of evaluation: options.texts_alone
 * @param labels of TRAIN_CLASSIFY
 * @return STATUS_OK; STATUS_INTERRUPTED when a signal came; STATUS_INVALID_ARGUMENT when there
 *         was no label; as train_model_evaluate()
 */
MUST_CHECK enum status train_evaluate(struct train_model *model, struct train_batches *batches,
                                      struct train_batch_memory *memory, size_t labels,
                                      struct train_result *result, struct error *error);

/** @return the score that compares evaluations: larger is better. */
double train_result_score(const struct train_result *result);

#endif

/**
 * @file classifier.h
 * @brief From text to logits: a tokenizer and a BERT on an engine, for the programs of lab 08.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/models/bert.h"
#include "common/models/engine.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

/** Where weights and vocabulary come from. */
struct classifier_source {
    const char *checkpoint; /**< a folder, or a .safetensors beside its config.json; NULL: random
                               weights */
    const char *vocab;      /**< NULL: vocab.txt beside the checkpoint; for random weights a
                               vocabulary of single letters */
    const char *shape;      /**< random weights: "tiny" or "base" */
    size_t labels;          /**< random weights: number of classes */
    uint64_t seed;          /**< random weights */
};

/** Weights, vocabulary and label names, in host memory. */
struct classifier_model {
    struct bert_config config;
    const struct bert_weights *weights; /**< of checkpoint or of random */
    struct bert_checkpoint checkpoint;
    struct bert_random random;
    struct wordpiece *wordpiece;
    struct bert_label *labels; /**< (config.labels) */
};

/**
 * @brief Opens a checkpoint with a classifier, or makes a random one.
 *
 * Refuses a checkpoint without a classifier, and a vocabulary with more pieces than the word
 * embedding has rows.
 */
MUST_CHECK enum status classifier_model_open(struct classifier_model *model,
                                             const struct classifier_source *source,
                                             struct error *error);

/** Frees; a zero-initialised one is allowed. */
void classifier_model_close(struct classifier_model *model);

/** One text as token ids. */
struct classifier_text {
    int32_t *ids; /**< [CLS] ... [SEP] */
    size_t count;
    bool cut; /**< the text had more tokens and was truncated */
};

/**
 * @brief Encodes a text as at most @p max_length ids.
 * @param text receives ids that the caller frees
 * @return STATUS_OK; STATUS_BAD_UTF8; STATUS_INVALID_ARGUMENT for a text of white space only
 */
MUST_CHECK enum status classifier_encode(const struct classifier_model *model, const char *bytes,
                                         size_t length, size_t max_length,
                                         struct classifier_text *text, struct error *error);

/** A model on an engine, and memory to lay out its batches. */
struct classifier {
    const struct classifier_model *model;
    struct bert *bert;
    size_t batch, max_length;
    int32_t *ids;    /**< (batch * max_length) */
    uint8_t *mask;   /**< (batch * max_length) */
    int32_t *starts; /**< (batch + 1) */
};

/**
 * @brief Makes the model resident.
 * @param model  must outlive the classifier
 * @param engine must outlive the classifier
 */
MUST_CHECK enum status classifier_create(struct classifier *classifier,
                                         const struct classifier_model *model,
                                         const struct engine *engine, size_t batch,
                                         size_t max_length, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void classifier_free(struct classifier *classifier);

/** One batch, laid out for bert_forward(); it points into the classifier. */
struct classifier_batch {
    struct bert_input input;
    size_t tokens; /**< of the texts, without padding */
};

/**
 * @brief Lays out a batch.
 * @param texts  (count) pointers, 1 to classifier->batch of them
 * @param padded true: each sequence has @p length rows, and a mask; false: packed, without padding
 * @param length if padded: rows of each sequence, at most max_length; 0: the length of the longest
 */
struct classifier_batch classifier_batch(struct classifier *classifier,
                                         const struct classifier_text *const *texts, size_t count,
                                         bool padded, size_t length);

/**
 * @brief Runs a batch made by classifier_batch().
 * @param logits (count, labels), host
 */
MUST_CHECK enum status classifier_run(struct classifier *classifier,
                                      const struct classifier_batch *batch, float *logits,
                                      struct error *error);

/** @return the class of the largest logit, the first of equals. */
size_t classifier_answer(const float *logits, size_t labels);

/** Probabilities: softmax of the logits in double. @param probabilities (labels) */
void classifier_probabilities(const float *logits, size_t labels, double *probabilities);

/**
 * @brief Sorts texts for batching: longest first within each window, so that the texts of a batch
 *        have similar lengths. Texts of equal length keep their order.
 * @param texts  (count)
 * @param window number of texts that are sorted at a time, at least 1
 * @param order  (count), receives indices
 */
MUST_CHECK enum status classifier_order(const struct classifier_text *texts, size_t count,
                                        size_t window, size_t *order);

#endif

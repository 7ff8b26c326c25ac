/**
 * @file classifier.h
 * @brief Text in, logits out: tokenizer, BERT and an engine as one, for the programs of lab 08.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/checkpoints/bert/bert_labels.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/models/bert.h"
#include "common/models/engine.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where weights and vocabulary come from. */
struct classifier_source {
    const char *checkpoint; /**< a folder, or a .safetensors beside its config.json; NULL: random */
    const char *vocab;      /**< NULL: vocab.txt beside the checkpoint; random: letters alone */
    const char *shape;      /**< random: "tiny" or "base" */
    size_t labels;          /**< random: classes */
    uint64_t seed;          /**< random */
};

/** Weights, vocabulary and names; no engine yet. */
struct classifier_model {
    struct bert_config config;
    const struct bert_weights *weights; /**< of one of the next two */
    struct bert_checkpoint checkpoint;
    struct bert_random random;
    struct wordpiece *wordpiece;
    struct bert_label *labels; /**< (config.labels) */
};

/**
 * @brief Opens a checkpoint with a classifier, or makes a random one.
 *
 * A checkpoint without a classifier, and a vocabulary with more pieces than the word embedding has
 * rows, are refused.
 */
MUST_CHECK enum status classifier_model_open(struct classifier_model *model,
                                             const struct classifier_source *source,
                                             struct error *error);

/** Frees; a zero-initialised one is allowed. */
void classifier_model_close(struct classifier_model *model);

/** One text as the model sees it. */
struct classifier_text {
    int32_t *ids; /**< [CLS] ... [SEP] */
    size_t count;
    bool cut; /**< the text was longer */
};

/**
 * @brief Turns a text into ids, at most @p max_length of them.
 * @param text receives ids that the caller frees
 * @return STATUS_OK; STATUS_BAD_UTF8; STATUS_INVALID_ARGUMENT when nothing but blanks is there
 */
MUST_CHECK enum status classifier_encode(const struct classifier_model *model, const char *bytes,
                                         size_t length, size_t max_length,
                                         struct classifier_text *text, struct error *error);

/** A model on an engine, and memory for the batches it gets. */
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
 * @param padded each sequence is @p length tokens with a mask; else they are packed, no padding
 * @param length padded: tokens of each sequence, at most max_length; 0: as many as the longest has
 */
struct classifier_batch classifier_batch(struct classifier *classifier,
                                         const struct classifier_text *const *texts, size_t count,
                                         bool padded, size_t length);

/**
 * @brief Runs a batch laid out before.
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
 * @brief Order in which texts go into batches: by falling length within windows, so that texts of
 *        one batch are alike; equal lengths as they came.
 * @param texts  (count)
 * @param window texts sorted at a time, at least 1
 * @param order  (count), receives indices
 */
MUST_CHECK enum status classifier_order(const struct classifier_text *texts, size_t count,
                                        size_t window, size_t *order);

#ifdef __cplusplus
}
#endif

#endif

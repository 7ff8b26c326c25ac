/**
 * @file train_labels.h
 * @brief The labels of a run on the user's own texts: collected from the training texts, or those
 *        of --load-checkpoint.
 *
 * A run that only evaluates has the labels of the checkpoint. A run that trains takes them from a
 * checkpoint that knows all labels of the texts; otherwise it has those of the texts, sorted, and a
 * new classifier if their number is another one.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_LABELS_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_LABELS_H_

#include "common/train/data/train_data.h"
#include "common/train/program/train_options.h"

struct train_labels {
    bool own;                 /**< the run has the user's own texts and labels */
    struct text_labels names; /**< of the run */
    struct text_labels known; /**< of the checkpoint; none if their names say nothing */
};

/** Reads the checkpoint's labels, if there is one. */
MUST_CHECK enum status train_labels_open(struct train_labels *labels,
                                         const struct train_options *options, struct error *error);

/** @return where to put the labels of texts that are read; NULL: they are no own ones. */
struct text_labels *train_labels_names(struct train_labels *labels);

/**
 * @brief Decides on the labels after the training texts have been read; then other texts must have
 *        no other labels.
 * @param texts the training texts; their labels may get other ids
 * @param path  their file
 * @return STATUS_OK; STATUS_BAD_FORMAT when there are fewer than two labels
 */
MUST_CHECK enum status train_labels_settle(struct train_labels *labels, struct train_texts *texts,
                                           const char *path, struct error *error);

/**
 * @brief Prints the labels; says if only texts for evaluation have one of them.
 * @param part the texts for training; empty: there are none
 */
void train_labels_print(const struct train_labels *labels, const struct train_part *part);

/** Frees; a zero-initialised one is allowed. */
void train_labels_free(struct train_labels *labels);

#endif

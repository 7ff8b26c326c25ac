/**
 * @file metrics.h
 * @brief Accuracy, precision, recall, F1 and confusion matrix of a classifier.
 *
 * For one label: precision = right answers / texts answered with it, recall = right answers / texts
 * that have it, F1 = their harmonic mean. A quotient with denominator 0 counts as 0. Macro F1 is
 * the mean F1 of the labels that a text has or that were answered, as in scikit-learn.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_METRICS_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_METRICS_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

/** Counts of answers. */
struct metrics {
    size_t labels;
    uint64_t *confusion; /**< (labels, labels): [label given][answer] */
};

struct metrics_label {
    double precision, recall, f1;
    uint64_t count;    /**< texts that have the label */
    uint64_t answered; /**< texts that were answered with it */
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status metrics_create(struct metrics *metrics, size_t labels);

/** Counts one answer; both in [0, labels). */
void metrics_add(struct metrics *metrics, size_t label, size_t answer);

/** @return answers counted. */
uint64_t metrics_count(const struct metrics *metrics);

/** @return share of right answers; 0 without answers. */
double metrics_accuracy(const struct metrics *metrics);

struct metrics_label metrics_of(const struct metrics *metrics, size_t label);

/** @return mean F1 of the labels that occur; 0 without answers. */
double metrics_macro_f1(const struct metrics *metrics);

/** Frees; a zero-initialised one is allowed. */
void metrics_free(struct metrics *metrics);

#endif

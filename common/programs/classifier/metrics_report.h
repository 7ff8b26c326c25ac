/**
 * @file metrics_report.h
 * @brief Metrics by label name: as tables for people, and as a JSON object for programs.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_METRICS_REPORT_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_METRICS_REPORT_H_

#include <stdio.h>

#include "common/programs/classifier/metrics.h"

struct cJSON;

/** Most labels of a printed confusion matrix, and most pairs that are printed instead. */
enum { METRICS_MOST_COLUMNS = 20 };

/**
 * @brief Prints precision, recall and F1 of each label, accuracy and macro F1, and the confusion
 *        matrix; of more than METRICS_MOST_COLUMNS labels only those that occur, and instead of the
 *        matrix the pairs most often confused.
 *
 * The columns of the matrix are headed by the labels' names, or by their numbers where names would
 * be too wide.
 *
 * @param names (labels), UTF-8
 */
void metrics_print(const struct metrics *metrics, const char *const *names, FILE *stream);

/**
 * @brief Adds to an object: "accuracy", "macro_f1", "labels" (an array of objects with "label",
 *        "precision", "recall", "f1", "texts") and "confusion" (an array of objects with "label",
 *        "answer", "texts": each pair that occurs).
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status metrics_add_json(const struct metrics *metrics, const char *const *names,
                                        struct cJSON *object);

#endif

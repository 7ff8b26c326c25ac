/**
 * @file train_sets.h
 * @brief Reads the texts for training and for evaluation.
 *
 * The texts for evaluation are those of --eval-data or --eval-split if one is given, or the split
 * test of imdb's labelled reviews or of a folder of agnews. Otherwise one file or split is divided:
 * the first --train-rows texts (default: all but the last tenth) are for training, and --eval-rows
 * of the texts after them for evaluation.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_SETS_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_SETS_H_

#include "common/train/data/train_data.h"
#include "common/train/program/train_options.h"

struct train_sets {
    struct train_texts texts, others;         /**< others: of another file or split */
    struct train_part train, evaluate;        /**< count 0: not wanted */
    char train_name[160], evaluate_name[160]; /**< descriptions for output */
};

/**
 * @return STATUS_OK; the failures of train_texts_read(); STATUS_INVALID_ARGUMENT, with the numbers,
 *         when there are fewer texts than asked for
 */
MUST_CHECK enum status train_sets_read(struct train_sets *sets, const struct train_options *options,
                                       const struct train_vocabulary *vocabulary,
                                       struct error *error);

/** Frees; a zero-initialised one is allowed. */
void train_sets_free(struct train_sets *sets);

#endif

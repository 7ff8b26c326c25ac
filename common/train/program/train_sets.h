/**
 * @file train_sets.h
 * @brief Which texts train and which evaluate.
 *
 * Evaluated on is: --eval-data or --eval-split where one is given; the split test of imdb's
 * labelled reviews and of a folder of agnews; else the same file or split, cut in two: the first
 * --train-rows texts train, without it all but the last tenth, and --eval-rows of those behind them
 * evaluate.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_SETS_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_SETS_H_

#include "common/train/data/train_data.h"
#include "common/train/program/train_options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct train_sets {
    struct train_texts texts, others;         /**< others: of another file or split */
    struct train_part train, evaluate;        /**< count 0: not wanted */
    char train_name[160], evaluate_name[160]; /**< what they are, for people */
};

/**
 * @return STATUS_OK; as train_texts_read(); STATUS_INVALID_ARGUMENT when the rows asked for are not
 *         there, with the numbers
 */
MUST_CHECK enum status train_sets_read(struct train_sets *sets, const struct train_options *options,
                                       const struct train_vocabulary *vocabulary,
                                       struct error *error);

/** Frees; a zero-initialised one is allowed. */
void train_sets_free(struct train_sets *sets);

#ifdef __cplusplus
}
#endif

#endif

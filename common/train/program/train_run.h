/**
 * @file train_run.h
 * @brief A run of `train`: everything made ready, then steps, evaluations and checkpoints.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_RUN_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_RUN_H_

#include "common/train/program/train_options.h"
#include "common/train/program/train_places.h"

/**
 * @brief Trains and evaluates as the options say.
 * @return STATUS_OK; STATUS_INTERRUPTED after a signal, when a checkpoint has been written; else
 *         what failed, with one line
 */
MUST_CHECK enum status train_run(const struct train_options *options,
                                 const struct train_places *places, struct error *error);

#endif

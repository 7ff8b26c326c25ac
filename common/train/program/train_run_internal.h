/**
 * @file train_run_internal.h
 * @brief What a run consists of, and its texts; private to the program.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_RUN_INTERNAL_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_RUN_INTERNAL_H_

#include "common/train/data/train_batches.h"
#include "common/train/data/train_data.h"
#include "common/train/program/train_checkpoint.h"
#include "common/train/program/train_labels.h"
#include "common/train/program/train_profile.h"
#include "common/train/program/train_program.h"
#include "common/train/program/train_report.h"

/** The texts of a run. */
struct train_sets {
    struct train_texts texts, others;         /**< others: of another file or split */
    struct train_part train, evaluate;        /**< count 0: not wanted */
    char train_name[160], evaluate_name[160]; /**< descriptions for output */
};

/**
 * @brief Reads the texts for training and for evaluation.
 *
 * The texts for evaluation are those of --eval-data or --eval-split if one is given, or the split
 * test of imdb's labelled reviews or of a folder of agnews. Otherwise one file or split is divided:
 * the first --train-rows texts (default: all but the last tenth) are for training, and --eval-rows
 * of the texts after them for evaluation.
 *
 * @param labels opened; settled here
 * @return STATUS_OK; the failures of train_texts_read() and train_labels_settle();
 *         STATUS_INVALID_ARGUMENT, with the numbers, when there are fewer texts than asked for
 */
MUST_CHECK enum status train_sets_read(struct train_sets *sets, const struct train_options *options,
                                       const struct train_vocabulary *vocabulary,
                                       struct train_labels *labels, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void train_sets_free(struct train_sets *sets);

/** A run. */
struct train_run {
    const struct train_options *options;
    struct ranks *ranks;      /**< NULL: one GPU */
    struct train_peers peers; /**< context NULL: none */
    struct train_store store;
    struct train_vocabulary vocabulary;
    struct train_labels labels;
    struct train_sets sets;
    struct train_config config;
    struct train_engine engine;
    struct train_profile profile; /**< around the engine, with --do-profile */
    struct train_where where;
    struct train_model *model;
    struct train_batches batches, evaluation;
    struct train_batch_memory *memory; /**< (batches of a step) */
    struct cJSON *settings;
    struct train_schedule schedule;
    struct train_report report;
    struct train_point point;
    uint64_t batch_count; /**< of an epoch */
    double norm;          /**< gradient norm of the last update whose loss was read */
    double last_loss;     /**< of the last line, or NAN */
};

/** Prepares a run: texts, model, weights, and the position in the run. */
MUST_CHECK enum status train_run_prepare(struct train_run *run, const struct train_places *places,
                                         struct error *error);

/** Frees all of it. */
void train_run_free(struct train_run *run);

/** @return batches of a step: --accumulate of each rank. */
uint64_t train_run_batches(const struct train_run *run);

/** @return whether this is the rank that prints and writes: the only one, or rank 0. */
bool train_run_speaks(const struct train_run *run);

/** @return the model and settings for a checkpoint. */
struct train_subject train_run_subject(const struct train_run *run);

#endif

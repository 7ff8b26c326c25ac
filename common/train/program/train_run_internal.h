/**
 * @file train_run_internal.h
 * @brief What a run consists of; private to train_run.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_RUN_INTERNAL_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_RUN_INTERNAL_H_

#include "common/train/data/train_batches.h"
#include "common/train/program/train_checkpoint.h"
#include "common/train/program/train_places.h"
#include "common/train/program/train_profile.h"
#include "common/train/program/train_report.h"
#include "common/train/program/train_sets.h"

struct train_run {
    const struct train_options *options;
    struct train_store store;
    struct train_vocabulary vocabulary;
    struct train_sets sets;
    struct train_config config;
    struct train_engine engine;
    struct train_profile profile; /**< around the engine, with --do-profile */
    struct train_where where;
    struct train_model *model;
    struct train_batches batches, evaluation;
    struct train_batch_memory *memory; /**< (accumulate) */
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

/** @return the model and settings for a checkpoint. */
struct train_subject train_run_subject(const struct train_run *run);

#endif

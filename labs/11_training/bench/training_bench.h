/**
 * @file training_bench.h
 * @brief Lab 11's bench: its own flags, and the training steps that it measures after the ladder.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_BENCH_TRAINING_BENCH_H_
#define WARPBOOK_LABS_11_TRAINING_BENCH_TRAINING_BENCH_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/bench/device/kernel_totals.h"
#include "common/bench/ladder/ladder_bench.h"
#include "common/device/device.h"
#include "common/train/models/train_model.h"
#include "labs/11_training/training.h"

/** The lab's own flags: the options of struct ladder_setup. */
struct training_options {
    const char *op_text, *dtype_text;
    int op, dtype;        /**< enum bench_op, enum nn_dtype; -1: all */
    bool model;           /**< training steps alone */
    int batch, length;    /**< of training steps: texts, tokens of each; 0: the default */
    int kernels;          /**< of training steps: how many kernels are shown; 0: none */
    const char *launches; /**< of the step whose kernels are shown: file of its launches; or NULL */
};

/** A model in training, with one batch. */
struct bench_trainer {
    struct train_engine engine;
    struct train_model *model;
    const struct train_batch *batch;
    device_stream stream; /**< of the engine */
};

/** @param config, batch of the model; the batch outlives the trainer */
MUST_CHECK enum status bench_trainer_create(struct bench_trainer *t,
                                            const struct train_config *config, enum nn_dtype dtype,
                                            const struct training_functions *functions,
                                            const struct train_batch *batch, struct error *error);
/** Frees; a zero-initialised one is allowed. */
void bench_trainer_free(struct bench_trainer *t);

/**
 * @brief Times training steps that follow each other without waiting, each between two events.
 * @param results receives the loss and the gradients' norm, the same in every step
 */
MUST_CHECK enum status bench_trainer_time(struct bench_trainer *t, const struct ladder_setup *setup,
                                          struct bench_timing *timing, float results[2],
                                          struct error *error);

/**
 * @brief Counts a step's kernels, copies and fills without running them. After this function and
 *        the next one, whose steps are recorded, no step may be timed.
 * @return STATUS_DEVICE when a function waits, so that its launches are not seen
 */
MUST_CHECK enum status bench_trainer_launches(struct bench_trainer *t, size_t *launches,
                                              struct error *error);

/**
 * @brief Runs a step launch by launch, and adds up the time of each kernel.
 * @return STATUS_UNSUPPORTED when a function waits
 */
MUST_CHECK enum status bench_trainer_kernels(struct bench_trainer *t, struct kernel_totals *totals,
                                             struct error *error);

/** Training steps of a whole model with each step's functions: prints, and appends the records. */
MUST_CHECK enum status bench_model(const struct ladder_setup *setup, struct error *error);

#endif

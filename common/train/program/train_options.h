/**
 * @file train_options.h
 * @brief The command line of `train`.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_OPTIONS_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_OPTIONS_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"
#include "common/texts/text_dataset.h"
#include "common/train/models/train_model.h"
#include "common/train/program/schedule.h"

/** The flags as they are given, then the values derived from them. */
struct train_options {
    const char *task_name, *dataset, *data, *split, *eval_data, *eval_split, *vocab;
    const char *model_name; /**< of a new model of lm: llama2 or gpt-neox */
    int train_rows, eval_rows, max_length;
    int batch_size, accumulate, epochs;
    int gpus, zero; /**< ranks, a GPU each; stage of ZeRO: 0 or 1 */
    uint64_t max_steps, seed, save_every, eval_every, log_every;
    float rate, decay, warmup, dropout, asked, clip, beta1, beta2, eps;
    const char *schedule_name, *dtype_name, *save_dtype_name, *device;
    const char *config, *load, *output, *log;
    int hidden, layers, heads, kv_heads, intermediate, positions;
    bool tied, train, evaluate, profile, resume;
    struct text_columns columns;

    enum train_task task;
    enum text_dataset_kind kind;
    enum train_decay schedule;
    enum nn_dtype dtype, save_dtype;
};

/**
 * @brief Reads the command line and checks everything that can be checked without opening files.
 * @param help receives whether --help was given; then the help has been printed
 * @return STATUS_OK or STATUS_INVALID_ARGUMENT with a message that names the flag
 */
MUST_CHECK enum status train_options_parse(struct train_options *options, int argc, char **argv,
                                           bool *help, struct error *error);

/** @return whether a new model of lm is a GPT-NeoX. */
bool train_options_new_gpt_neox(const struct train_options *options);

/** @return "classify", "mlm", "lm". */
const char *train_task_name(enum train_task task);

#endif

/**
 * @file schedule.h
 * @brief The learning rate of each step: linear warm-up to its maximum, then decay to 0.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_SCHEDULE_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_SCHEDULE_H_

#include <stdint.h>

#include "common/base/status.h"

enum train_decay { TRAIN_LINEAR, TRAIN_COSINE };

/** Steps count from 1 to total. */
struct train_schedule {
    enum train_decay decay;
    double rate; /**< maximum */
    uint64_t warmup, total;
};

/** @return STATUS_OK, or STATUS_INVALID_ARGUMENT with the names there are. */
MUST_CHECK enum status train_decay_parse(const char *name, enum train_decay *decay,
                                         struct error *error);

/** @return "linear", "cosine". */
const char *train_decay_name(enum train_decay decay);

/**
 * @brief Steps of warm-up from the value of a flag: a number of steps or, below 1, a share of all.
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT for less than 0 or more than @p total
 */
MUST_CHECK enum status train_warmup_steps(double warmup, uint64_t total, uint64_t *steps,
                                          struct error *error);

/**
 * @return the rate of step @p step. During warm-up it is rate * step / warmup; after that, with the
 *         share x = (step - 1 - warmup) / (total - warmup) of the fall done: rate * (1 - x), or
 *         rate * (1 + cos(pi x)) / 2. Neither the first step nor the last is wasted on a rate of 0.
 */
double train_schedule_rate(const struct train_schedule *schedule, uint64_t step);

#endif

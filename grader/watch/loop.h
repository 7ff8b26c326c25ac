/**
 * @file loop.h
 * @brief The program between its start and its end: rounds, one after a save, one child at a time.
 */
#ifndef WARPBOOK_GRADER_WATCH_LOOP_H_
#define WARPBOOK_GRADER_WATCH_LOOP_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "grader/watch/steps.h"

struct watch_options {
    struct watch_setup setup;
    bool labs[LAB_COUNT]; /**< that are watched */
    size_t first;         /**< of them, which is graded at once */
    bool plain;           /**< no page */
    bool bench;           /**< run benches */
};

/**
 * @brief Watches until somebody quits; then no child is left.
 * @param code receives the exit status: 0, or 128 and the signal's number
 */
MUST_CHECK enum status watch_loop(const struct watch_options *options, int *code,
                                  struct error *error);

#endif

/**
 * @file round.h
 * @brief What became of the latest save: each step's state, the points, the first failure, the
 *        bench.
 */
#ifndef WARPBOOK_GRADER_WATCH_ROUND_H_
#define WARPBOOK_GRADER_WATCH_ROUND_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/report/score.h"
#include "grader/watch/lines.h"
#include "grader/watch/steps.h"
#include "grader/watch/table.h"

enum step_state { ROUND_WAITING, ROUND_RUNNING, ROUND_GOOD, ROUND_RED, ROUND_LEFT_OUT };

struct round_step {
    enum step_state state;
    double begun, seconds;
    char note[160]; /**< "18 of 18 tests", or why it was left out */
};

/** One round. Of a zeroed one nothing was run. */
struct round {
    const struct watch_setup *setup;
    const struct lab *lab;
    double saved;   /**< events_now() of the save */
    char clock[16]; /**< "23:01:12" of it */
    struct round_step steps[WATCH_STEPS];
    struct lab_run run;
    struct lab_score score; /**< points into `run` */
    bool scored;
    struct lines failure; /**< of the first step that is red; or why the kernel is not faster */
    struct lines bench;
    bool has_bench;
};

/** Begins a round of @p lab. The grades of the round before are freed. */
void round_begin(struct round *round, const struct watch_setup *setup, const struct lab *lab,
                 bool bench);

/** @return the step to run now; WATCH_STEPS: all is done */
enum watch_step round_next(const struct round *round);

/** Notes that a step has begun. */
void round_started(struct round *round, enum watch_step step);

/**
 * @brief Notes how a step's program ended and reads what it left.
 * @param state   of waitpid()
 * @param late    it ran past its limit and was killed
 * @param command of the step
 * @param last    the lab's tables before; receives the new ones
 */
void round_ended(struct round *round, enum watch_step step, int state, bool late,
                 const struct watch_command *command, struct bench_tables *last);

/** Notes that a step could not be started. */
void round_failed(struct round *round, enum watch_step step, const char *why);

/** Frees the grades. */
void round_free(struct round *round);

#endif

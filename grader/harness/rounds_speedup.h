/**
 * @file rounds_speedup.h
 * @brief Measures a case on the CPU in rounds, and gives the verdict; see rounds.h.
 */
#ifndef WARPBOOK_GRADER_HARNESS_ROUNDS_SPEEDUP_H_
#define WARPBOOK_GRADER_HARNESS_ROUNDS_SPEEDUP_H_

#include "grader/harness/rounds.h"
#include "grader/harness/speedup.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Milliseconds of one round: each the fastest of some runs or calls. */
struct round_times {
    double ideal_ms;    /**< least time of the work, by the probes */
    double baseline_ms; /**< infinite: not timed in this round */
    double subject_ms;
    double called_ms; /**< all of the subject's calls together */
    double ran_ms;    /**< ideal_ms by the time that the probes were on a processor; 0: not known */
    double waited_ms; /**< what they waited for a processor: remote_waited_ms() */
};

/** Times round @p number. When it goes wrong, the running test fails. */
typedef struct round_times round_function(void *argument, int number);

/**
 * @brief Calls @p time_round until the verdict is settled or half a minute is over, and sets the
 *        times and the limit.
 *
 * Other work on the machine often ends soon: behind the first rounds there are pauses. Where it
 * leaves no verdict these get longer, and the end is two minutes away.
 *
 * @param speedup lab, measure and margin are set; a row of the threshold table
 * The baseline is as fast as it was before the submission began or beside it, whichever is faster.
 *
 * @param rounds  zero-initialised, but for before_ms and baseline_before_ms
 */
void rounds_measure(struct rounds *rounds, struct speedup *speedup, round_function *time_round,
                    void *argument);

/**
 * @brief The verdict of speedup_check(), with the noise of these rounds: what passes within it is
 *        marked. Where other work on the machine leaves no verdict, the test fails with a line that
 *        says so and not that the submission is slow.
 */
void rounds_check(const struct rounds *rounds, const struct speedup *speedup, const char *file,
                  int line);

#ifdef __cplusplus
}
#endif

#endif

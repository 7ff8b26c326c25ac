/**
 * @file rounds.h
 * @brief Measures in rounds, until a verdict is certain or a limit is reached.
 *
 * A round times the probe of a limit and the subject, close together. The fastest of all rounds
 * counts on both sides, because everything else that happens on a machine only adds time. How well
 * the two are known is seen from the rounds themselves: the even and the odd ones are two
 * measurements of the same thing, and the noise is how far their results lie apart.
 */
#ifndef WARPBOOK_GRADER_HARNESS_ROUNDS_H_
#define WARPBOOK_GRADER_HARNESS_ROUNDS_H_

#include <stdbool.h>

#include "grader/thresholds.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ROUNDS_LEAST = 4,  /**< where all that is asked is reached */
    ROUNDS_CLEAR = 6,  /**< where each step is either reached or missed by far */
    ROUNDS_CLOSE = 10, /**< otherwise */
    ROUNDS_MOST = 32
};

/** Noise above this is not believed: the starter is at half of the threshold or below. */
#define ROUNDS_NOISE_MOST 0.2

/** Zero-initialised: no round yet. */
struct rounds {
    double before_ms; /**< the limit, by probes before the subject was there to disturb them; 0:
                         none */
    double ran_ms; /**< the limit by the time that probes were on a processor, least of all; 0: not
                      known. Counts where the subject is faster than ROUNDS_MOST_SHARE allows */
    double baseline_before_ms; /**< the baseline, likewise; 0: not timed */
    int count;
    double ideal_ms[2], subject_ms[2]; /**< fastest of the even and of the odd rounds */
    int improved;        /**< rounds up to the last that improved the fastest by a hundredth */
    double ideal_sum_ms; /**< of all rounds */
    double called_ms,
        waited_ms; /**< of all the subject's calls, and what they waited for a processor
                    */
};

/** What a share says of a step that is asked for. */
enum verdict {
    VERDICT_REACHED,
    VERDICT_IN_NOISE, /**< missed by no more than the noise: counts as reached, and is to be marked
                       */
    VERDICT_TOO_BUSY, /**< neither passed nor failed, because nobody can tell beside so much other
                         work: missed, but reached if the limit were what most rounds' probes found,
                         or if calls had not waited for processors; or the share is above
                         ROUNDS_MOST_SHARE */
    VERDICT_MISSED
};

/**
 * @brief Adds a round.
 * @param ideal_ms   least milliseconds of the work, by the fastest of this round's probes
 * @param subject_ms the subject's fastest call of this round
 */
void rounds_add(struct rounds *rounds, double ideal_ms, double subject_ms);

/** Adds a round's limit by the time that its probes were on a processor. */
void rounds_add_ran(struct rounds *rounds, double ran_ms);

/** @return the least of all rounds, the limit's also of before_ms, or ran_ms where the probes
 * waited for processors and the subject did not; infinite before the first. */
double rounds_ideal_ms(const struct rounds *rounds);
double rounds_subject_ms(const struct rounds *rounds);

/** @return whether ran_ms counts: the subject is faster than ROUNDS_MOST_SHARE allows by the clock.
 */
bool rounds_probes_waited(const struct rounds *rounds);

/** @return rounds_ideal_ms() / rounds_subject_ms(): 1 is the limit; 0 before the first round. */
double rounds_share(const struct rounds *rounds);

/** Adds what a round's calls of the subject took, and what they waited for a processor meanwhile.
 */
void rounds_add_calls(struct rounds *rounds, double called_ms, double waited_ms);

/**
 * @return relative uncertainty of rounds_share(): 0.05 is 5%; at most ROUNDS_NOISE_MOST, and that
 *         much before there are ROUNDS_LEAST rounds
 */
double rounds_noise(const struct rounds *rounds);

/**
 * @brief Whether more rounds would not change the verdict.
 *
 * A share that reaches all that is asked, by more than the noise, is settled after ROUNDS_LEAST
 * rounds; so is one after ROUNDS_CLEAR that is far from each step. Any other share may be one that
 * other work on the machine holds down: it is settled when the second half of the rounds, and of
 * ROUNDS_CLOSE at least, improved nothing. Nothing is settled early while the noise is as large as
 * it can be, or while the subject beats the limit: then the probes were disturbed. What would be
 * VERDICT_TOO_BUSY, or above ROUNDS_MOST_SHARE, is settled after ROUNDS_MOST rounds: other work may
 * end.
 *
 * @param shares what passes, is good, is gold; 0: there is no such step
 * @param margin factor on them, 1.25 for solutions
 */
bool rounds_settled(const struct rounds *rounds, const struct steps *shares, double margin);

/**
 * @return how many times slower other work makes the machine: the mean round's limit over the best
 *         one's, or the subject's calls over what they ran of that time, whichever is more; 1 on an
 *         idle machine, 1 before any round, at most ROUNDS_MOST_SLOWDOWN
 */
double rounds_slowdown(const struct rounds *rounds);

/** Beside so much other work nothing is known any more. */
#define ROUNDS_MOST_SLOWDOWN 20.0

/** Nothing is faster than its limit: with a larger share the probes were disturbed, not the calls.
 */
#define ROUNDS_MOST_SHARE 1.25

/** Slowdown from which on a miss may be the machine's fault. */
#define ROUNDS_BUSY 1.2

/** @return the verdict on a share of @p required, margin included. */
enum verdict rounds_verdict(const struct rounds *rounds, double required);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file speedup.h
 * @brief Verdict on a measured or modelled speedup.
 */
#ifndef WARPBOOK_GRADER_HARNESS_SPEEDUP_H_
#define WARPBOOK_GRADER_HARNESS_SPEEDUP_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/harness/work.h"
#include "grader/thresholds.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whose times these are; defined by program.c, from what BUILD says. */
struct graded_subject {
    const char *name; /**< "labs" or "solutions" */
    double margin;    /**< factor on the share that is required: 1.25 for solutions */
};
extern const struct graded_subject graded_subject;

/**
 * Two times from one run, each the fastest of several calls, and the least time that the work takes
 * on this machine. What is required is a share of that limit; as a speedup over the baseline it
 * differs from GPU to GPU.
 */
struct speedup {
    const char *lab;     /**< "01_cpu_matmul" */
    const char *subject; /**< as graded_subject.name */
    const char *measure; /**< row of the threshold table: "kernel", "end_to_end" */
    double margin;       /**< as graded_subject.margin */
    const char *clock;   /**< whose time it is, as grader_gpu.clock has it; NULL: this machine's */
    bool modelled;       /**< by simt, not measured: the table's other column */
    bool one_cpu;        /**< a lab on the CPU, on a machine with one: likewise */
    double baseline_ms;
    double subject_ms;
    bool recorded;  /**< baseline_ms is known from the build: the baseline does not run */
    double rest_ms; /**< of a model without the lab's operators; 0: no model, or not known */
    struct least_time least; /**< see work.h */
    /** Looks at the machine once more when a time misses: whether it is no longer what it was when
     * @p least was found, or somebody else is busy on it; NULL: there is nothing to look at. */
    bool (*disturbed)(const struct least_time *least);
    /** Writes why the longest kernel of the subject is not faster, "" where that is not known;
     * NULL: nobody knows. */
    void (*why)(char *text, size_t size);
};

/** @return the shares that are asked of it, without margin. */
struct steps speedup_shares(const struct speedup *speedup, const struct threshold *threshold);

/** @return true when the threshold times the margin is reached; false also without a threshold. */
bool speedup_reached(const struct speedup *speedup);

/**
 * @return the speedup over the baseline that @p share of the limit amounts to; margin aside. At
 *         least 1: where launches are nearly all of a model's time, a slower one has not passed
 */
double speedup_at_share(const struct speedup *speedup, double share);

/**
 * @brief Fails the running test, naming the speedup and the required one, the share of the limit
 *        and the required one, and whether it was measured or modelled, unless the threshold times
 *        the margin is reached. Prints the figures either way, unless the test has failed already:
 *        the time of a wrong result is no time.
 *
 * A measured time that misses by no more than times vary from run to run passes, and is marked. One
 * that misses on a machine that others disturb fails the test with a line that says so, and not
 * that the submission is slow.
 */
void speedup_check(const struct speedup *speedup, const char *file, int line);

/**
 * @brief How often a call is timed: @p calls, or $WARPBOOK_CALLS where that is fewer. `./grade
 *        --quick` sets it; the fastest call counts, so fewer calls make a speedup less certain.
 * @return at least 1
 */
int speedup_calls(int calls);

/**
 * @brief Milliseconds of one call, of the subject or of the baseline.
 *
 * When it goes wrong, the running test fails and the time is infinite.
 */
typedef double speedup_function(void *argument, bool subject);

/**
 * @brief Times both in turn; each side's fastest call becomes its time. A baseline whose time is
 *        recorded is not called.
 *
 * Other work on the machine can only add time. So where a measured verdict is near its threshold,
 * on either side, the same number of calls is added, three times at most.
 *
 * @param calls of each side where time is measured, after one that does not count: it loads the
 *              kernels and wakes the clock. Where time is modelled, one is as good as many
 */
void speedup_measure(struct speedup *speedup, int calls, speedup_function *time_ms, void *argument);

#ifdef __cplusplus
}
#endif

#endif

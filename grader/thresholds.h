/**
 * @file thresholds.h
 * @brief The one table of what a lab must reach.
 */
#ifndef WARPBOOK_GRADER_THRESHOLDS_H_
#define WARPBOOK_GRADER_THRESHOLDS_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a measure may reach, and what that is called: shares of a limit, or speedups. */
struct steps {
    double pass; /**< required; 0: nothing is timed */
    double good; /**< 0: the measure has no steps */
    double gold;
};

/** What one measurement must reach. */
struct threshold {
    const char *lab;     /**< "01_cpu_matmul" */
    const char *measure; /**< "kernel" or "end_to_end"; the test of lab_speedup of that name */
    int points;          /**< for all of it */
    struct steps shares; /**< of what the machine can do at best: see harness/work.h */
    struct steps other;  /**< the same where there is less: of simt's modelled time, whose cases are
                              smaller; for a lab on the CPU, where there is one; pass 0: as shares */
    const char *limit;   /**< what the machine's least time is made of */
    const char *what;    /**< what is measured against what */
    const char *why;     /**< where pass comes from */
    const char *gold;    /**< where good and gold come from; NULL without them */
};

/** What a lab's parity test brings; with its other rows, 100. */
enum { PARITY_POINTS = 20, LAB_POINTS = 100 };

/** @return the threshold, or NULL when the table has none. */
const struct threshold *threshold_find(const char *lab, const char *measure);

/** @return row @p index of the table, or NULL behind its end. */
const struct threshold *threshold_at(size_t index);

/** @return the shares that count; @p other: for modelled time, or where there is one CPU. */
struct steps threshold_shares(const struct threshold *threshold, bool other);

/** Which step a speedup reaches. */
enum step { STEP_NONE, STEP_PASS, STEP_GOOD, STEP_GOLD };

/** @return the highest step; a measure without good and gold is gold as soon as it passes. */
enum step threshold_step(const struct steps *steps, double reached);

/** @return points of a step: 60, 80 and 100 percent of the row's. */
int threshold_points(const struct threshold *threshold, enum step step);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file score.h
 * @brief Points, state and next step of a lab, from its grades and the table of thresholds.
 */
#ifndef WARPBOOK_GRADER_REPORT_SCORE_H_
#define WARPBOOK_GRADER_REPORT_SCORE_H_

#include "grader/report/run.h"
#include "grader/thresholds.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lab_state {
    STATE_NOT_RUN,
    STATE_NOT_BUILT,
    STATE_BROKEN,    /**< a graded program crashed, hung or left too early */
    STATE_NOT_BEGUN, /**< the starter as it was handed out */
    STATE_WRONG,     /**< parity is red */
    STATE_SLOW,      /**< parity is green, speedup is red */
    STATE_PASSED,
    STATE_GOLD, /**< all points */
    STATES
};

/** @return "not run" ... "gold". */
const char *state_name(enum lab_state state);

enum { MOST_ROWS = 6 };

/** One row of the table of thresholds and what became of it. */
struct row_score {
    const struct threshold *row;
    const struct grade *grade; /**< NULL: there is none */
    struct steps steps;        /**< as speedups on this machine; pass 0: nothing was timed */
    enum step step;
    int points;
};

struct lab_score {
    enum lab_state state;
    int points;        /**< of LAB_POINTS */
    int parity_points; /**< of PARITY_POINTS; with those of rows it makes `points`, unless the
                            machine cannot do all rows: then the others are scaled up */
    struct row_score rows[MOST_ROWS];
    size_t count;
    const struct row_score *kernel; /**< the timed row furthest from its threshold, or NULL */
    const struct row_score *model;  /**< the row end_to_end, or NULL */
    const char *bottleneck; /**< of a right kernel short of gold: why it is not faster; or "" */
    char device[224];       /**< "NVIDIA H200, modelled", "AMD EPYC, measured", or "" */
    char next[256];         /**< what to do now */
    char why[640];          /**< the first thing that is not as it should be, or "" */
    char explanation[512];  /**< a faster kernel in a slower model, or "" */
};

/**
 * @brief Scores a lab that was asked for.
 * @param s       points into itself and into @p lab
 * @param subject "labs" or "solutions"
 */
void score_lab(struct lab_score *s, const struct lab_run *lab, const char *subject);

struct run_score {
    struct lab_score labs[LAB_COUNT]; /**< of labs that were asked for */
    int points, most;
    int red; /**< labs that are not passed */
};

/** Scores a whole run; the result points into it. */
void score_run(struct run_score *score, const struct run *run);

#ifdef __cplusplus
}
#endif

#endif

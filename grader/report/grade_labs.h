/**
 * @file grade_labs.h
 * @brief Runs the graded programs of labs one after the other and remembers how they ended.
 */
#ifndef WARPBOOK_GRADER_REPORT_GRADE_LABS_H_
#define WARPBOOK_GRADER_REPORT_GRADE_LABS_H_

#include "grader/report/run.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grade_options {
    const char *graders;   /**< folder of the programs: NN_topic_parity, NN_topic_speedup */
    const char *results;   /**< folder for what is left behind */
    const char *workspace; /**< folder with labs/ and solutions/ */
    const char *subject;   /**< "labs" or "solutions" */
    bool again;            /**< run what is remembered, too */
    bool isolated;         /**< refuse where the sandbox does not hold all that it should */
    bool warmups;          /**< also ask how many warm-ups are done */
    double limit;          /**< seconds of one program */
    const struct lab *chosen[LAB_COUNT]; /**< NULL: not asked for */
};

/**
 * @brief Grades the chosen labs.
 *
 * Leaves in the results folder grade.jsonl (a line a test, appended), report-SUBJECT.json (what is
 * remembered, after each lab) and report/LAB_PART.log (what the programs printed). Where that
 * folder cannot be written, a temporary one takes its place and a line on stderr says so.
 *
 * Whatever one program does, the others run. Ctrl-C leaves the rest not run.
 *
 * @param run receives the grades; run_free() it
 * @return STATUS_OK, or what keeps all programs from running
 */
MUST_CHECK enum status grade_labs(struct run *run, const struct grade_options *options,
                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif

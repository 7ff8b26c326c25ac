/**
 * @file warmups.h
 * @brief How many of the warm-ups are done, asked of their own program.
 */
#ifndef WARPBOOK_GRADER_REPORT_WARMUPS_H_
#define WARPBOOK_GRADER_REPORT_WARMUPS_H_

#include "grader/report/grade_labs.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Runs `check --count` of the warm-ups, unless @p memory knows its answer.
 *
 * Nothing is known where the program is missing, as in the bundle, or does not answer.
 *
 * @param folder of results; report/00_warmups.log in it receives the answer
 */
struct warmups_run warmups_try(const struct grade_options *options, const struct run *memory,
                               const char *folder);

#ifdef __cplusplus
}
#endif

#endif

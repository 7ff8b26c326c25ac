/**
 * @file starter.h
 * @brief Is the lab's starter graded in place of the submission? `./grade --starters` of the bundle
 *        asks for that, to see that it misses what is required.
 */
#ifndef WARPBOOK_GRADER_HARNESS_STARTER_H_
#define WARPBOOK_GRADER_HARNESS_STARTER_H_

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @return whether $WARPBOOK_SUBJECT is "starter". */
static inline bool grader_grades_starter(void) {
    const char *subject = getenv("WARPBOOK_SUBJECT");
    return subject != NULL && strcmp(subject, "starter") == 0;
}

#ifdef __cplusplus
}
#endif

#endif

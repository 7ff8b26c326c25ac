/**
 * @file log.h
 * @brief Reads what builds and graded programs print, and finds what a learner must see.
 */
#ifndef WARPBOOK_GRADER_WATCH_LOG_H_
#define WARPBOOK_GRADER_WATCH_LOG_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/report/run.h"
#include "grader/watch/lines.h"

/** @return the first MiB of a file, "" when it cannot be read; the caller frees it; NULL: no memory
 */
char *log_read(const char *path);

/**
 * @brief Finds what a failed build says: the first error, file and line first, with the lines the
 *        compiler shows of it, and how many errors there are. Without one, Bazel's own message.
 */
void log_build_errors(const char *text, struct lines *found);

/**
 * @brief Finds why a graded program is red, in a few lines: its own line "summary:" and what
 * follows it; else the last test that passed, the first that failed and its message. What the code
 *        wrote to standard error, simt's message of a fault, comes before.
 * @param program its grades
 */
void log_failure(const char *text, const struct program *program, struct lines *found);

#endif

/**
 * @file terminal.h
 * @brief Colour and progress lines, only on a terminal.
 */
#ifndef WARPBOOK_COMMON_BASE_TERMINAL_H_
#define WARPBOOK_COMMON_BASE_TERMINAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum colour { COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_BOLD };

/** @return true when @p stream is a terminal and NO_COLOR is not set. */
bool terminal_has_colour(FILE *stream);

/** @return escape sequence that starts @p colour on @p stream, "" where there is no colour. */
const char *terminal_colour(FILE *stream, enum colour colour);

/** @return escape sequence that ends any colour on @p stream, "" where there is no colour. */
const char *terminal_plain(FILE *stream);

/** Progress line on stderr, rewritten in place; silent unless stderr is a terminal. */
struct progress {
    const char *what;
    size_t total;
    bool visible;
    struct timespec start;
    struct timespec shown;
};

/** Starts a progress line; nothing is shown before two seconds have passed. */
struct progress progress_create(const char *what, size_t total);

/** Shows @p done of the total and the estimated time left, at most ten times a second. */
void progress_update(struct progress *progress, size_t done);

/** Clears the progress line. */
void progress_finish(struct progress *progress);

/**
 * @brief Prints "PROGRAM: MESSAGE" on stderr.
 * @return 1, the exit status of a failed program
 */
int report_failure(const char *program, const struct error *error, enum status status);

#ifdef __cplusplus
}
#endif

#endif

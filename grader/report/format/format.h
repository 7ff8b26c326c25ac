/**
 * @file format.h
 * @brief A scored run, written down for people and for programs.
 */
#ifndef WARPBOOK_GRADER_REPORT_FORMAT_FORMAT_H_
#define WARPBOOK_GRADER_REPORT_FORMAT_FORMAT_H_

#include <stdio.h>

#include "grader/report/score.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Writes a run; what goes wrong shows as the stream's error. */
typedef void format_function(FILE *out, const struct run *run, const struct run_score *score);

format_function format_text;       /**< the scoreboard; colours on a terminal */
format_function format_json;       /**< the run as run_load() reads it, with points and states */
format_function format_gradescope; /**< results.json of a Gradescope autograder */
format_function format_junit;      /**< JUnit XML */
format_function format_markdown;   /**< a table, as GitHub shows it */
format_function format_html;       /**< one file with charts, without scripts */

/** The style of format_html(), for pages that show format_html_labs(). */
extern const char format_html_style[];

/** Writes what format_html() says of each lab. */
void format_html_labs(FILE *out, const struct run *run, const struct run_score *score);

/** @return the format of that name, or NULL with a line that lists all. */
format_function *format_find(const char *name, struct error *error);

/** Writes what differs between two runs: points, state, speedups. */
void format_comparison(FILE *out, const struct run *a, const struct run *b);

/** @return "12 of 32", or NULL where nobody tried the warm-ups; in @p text. */
const char *format_warmups(const struct run *run, char *text, size_t size);

/** @return what to do next with the warm-ups. */
const char *format_warmups_next(const struct run *run);

/** @return "12.3x", or "–" for a row that is not timed or NULL; in @p text. */
const char *format_speedup(const struct row_score *row, char *text, size_t size);

/**
 * @brief Which kernel a lab's column "kernel" shows, where the lab has several: "softmax ", "bf16
 * "; else "".
 * @return @p text
 */
const char *format_which(const struct lab_score *score, char *text, size_t size);

/** Writes text with & < > " ' as XML and HTML want them. */
void format_escaped(FILE *out, const char *text);

#ifdef __cplusplus
}
#endif

#endif

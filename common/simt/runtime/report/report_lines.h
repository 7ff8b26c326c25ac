/**
 * @file report_lines.h
 * @brief Which lines of a kernel's source cost memory accesses: a learner's profiler.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_REPORT_LINES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_REPORT_LINES_H_

#include <stdint.h>
#include <stdio.h>

#include "common/simt/core/launch/launch.h"
#include "common/simt/memory/counters.h"

/** Sums of one source line; `sum.source` is not used. */
struct report_line {
    char *file;
    uint32_t line;
    struct simt_site sum;
    struct report_line *next; /**< in the order of first sight */
};

/** Adds a launch's counts to their source lines; a new line is dropped when out of memory. */
void report_lines_add(struct report_line **lines, const struct simt_sites *sites);

/**
 * @brief Prints the lines that move most sectors, and those that take most wavefronts of shared
 *        memory, beyond what side-by-side addresses would; nothing where there are none.
 *
 * With the line's text where the source can be read.
 */
void report_lines_print(const struct report_line *lines, FILE *stream);

/** Prints a JSON array with every line that touched memory. */
void report_lines_print_json(const struct report_line *lines, FILE *stream);

/** Frees a list. */
void report_lines_free(struct report_line *lines);

/** Prints a JSON string. */
void report_print_quoted(const char *text, FILE *stream);

#endif

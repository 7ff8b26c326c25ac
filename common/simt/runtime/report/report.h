/**
 * @file report.h
 * @brief What all launches and copies of the process did, printed at its end.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_REPORT_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_REPORT_H_

#include <stdint.h>
#include <stdio.h>

#include "common/simt/core/launch/launch.h"
#include "common/simt/memory/counters.h"
#include "common/simt/profile.h"
#include "common/simt/runtime/report/sarif.h"
#include "common/simt/runtime/settings.h"

/* Which lines of a kernel's source cost memory accesses: a learner's profiler. */

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

/** Sums of one kernel's launches. */
struct kernel_total {
    char *name; /**< as the source spells it where it can be told */
    uint64_t launches;
    double nanoseconds; /**< modelled */
    struct simt_counters counters;
    struct report_line *lines;
    struct simt_profile longest; /**< launch; the caller keeps it */
    struct kernel_total *next;   /**< in the order of first launches */
};

struct report {
    struct kernel_total *kernels;
    uint64_t copies_to_device, copies_to_host, copies_on_device, sets;
    uint64_t bytes_to_device, bytes_to_host, bytes_on_device, bytes_set;
    struct sarif findings;          /**< with SIMT_REPORT=sarif only */
    uint64_t allocations, releases; /**< of device, managed, pinned, registered memory, arrays */
};

/** Adds one launch; without memory for a new kernel's sum it is dropped. */
void report_launch(struct report *report, const char *kernel, double nanoseconds,
                   const struct simt_counters *counters, const struct simt_sites *sites);

/** @return where the profile of a kernel's longest launch is kept, or NULL without memory. */
struct simt_profile *report_longest(struct report *report, const char *kernel);

/** Prints a JSON object of the counters, as SIMT_REPORT=json names them. */
void report_print_counters(const struct simt_counters *counters, FILE *stream);

/** @return a kernel's name as the source spells it, if the program can tell; free() it. */
char *report_source_name(const char *mangled);

/** Prints the report: a table, or one JSON object on one line, of counts or of findings. */
void report_print(const struct report *report, const struct simt_settings *settings, double clock,
                  FILE *stream);

#endif

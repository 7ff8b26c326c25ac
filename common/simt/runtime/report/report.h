/**
 * @file report.h
 * @brief What all launches and copies of the process did, printed at its end.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_REPORT_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_REPORT_H_

#include <stdint.h>
#include <stdio.h>

#include "common/simt/memory/counters.h"
#include "common/simt/runtime/report/report_lines.h"
#include "common/simt/runtime/settings.h"

/** Sums of one kernel's launches. */
struct kernel_total {
    char *name; /**< as the source spells it where it can be told */
    uint64_t launches;
    double nanoseconds; /**< modelled */
    struct simt_counters counters;
    struct report_line *lines;
    struct kernel_total *next; /**< in the order of first launches */
};

struct report {
    struct kernel_total *kernels;
    uint64_t copies_to_device, copies_to_host, copies_on_device, sets;
    uint64_t bytes_to_device, bytes_to_host, bytes_on_device, bytes_set;
};

/** Adds one launch; without memory for a new kernel's sum it is dropped. */
void report_launch(struct report *report, const char *kernel, double nanoseconds,
                   const struct simt_counters *counters, const struct simt_sites *sites);

/** @return a kernel's name as the source spells it, if the program can tell; free() it. */
char *report_source_name(const char *mangled);

/** Prints the report: a table, or one JSON object on one line. */
void report_print(const struct report *report, const struct simt_settings *settings, double clock,
                  FILE *stream);

#endif

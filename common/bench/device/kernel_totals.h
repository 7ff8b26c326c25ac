/**
 * @file kernel_totals.h
 * @brief Sums up the reports of kernel_times.h by name, launches and time, and prints a table.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TOTALS_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TOTALS_H_

#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** All launches of one name. */
struct kernel_total {
    char *name;
    size_t launches;
    double ms; /**< of all launches */
};

/** Zero-initialised, it is empty. */
struct kernel_totals {
    struct kernel_total *rows; /**< (count), in order of their first launch until printed */
    size_t count, launches;
    double ms;
    FILE *list; /**< NULL, or where each launch is written as a line of CSV: number, "name", ms */
    enum status status; /**< STATUS_OUT_OF_MEMORY after a failed allocation: rows are missing */
};

/** Adds one launch, and writes it to the list; is a kernel_times_observer. @param totals a struct
 * kernel_totals */
void kernel_totals_add(void *totals, const char *name, double ms);

/**
 * @brief Writes a table: launches, ms, share of the total, name; longest first, then one row for
 *        all others.
 * @param most rows before the row of all others
 */
void kernel_totals_print(struct kernel_totals *totals, size_t most, FILE *stream);

/** Frees the rows; a zero-initialised one is allowed. */
void kernel_totals_free(struct kernel_totals *totals);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file ladder_rows.h
 * @brief A ladder of kernels in a bench: its steps checked and timed one after another, as rows of
 * a table and points under the roofline.
 */
#ifndef WARPBOOK_COMMON_BENCH_LADDER_LADDER_ROWS_H_
#define WARPBOOK_COMMON_BENCH_LADDER_LADDER_ROWS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/roofline.h"
#include "common/device/device.h"
#include "common/simt/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a row shows of one step. */
struct ladder_row {
    const char *name;
    struct bench_timing timing;
    double peer_ms;  /**< of a yardstick, measured right after; NAN: none */
    double expected; /**< seconds a call, when that was too long to measure; else 0 */
    double own;      /**< a figure of the lab's own, or 0 */
    char wrong[320]; /**< "" or what is wrong */
    bool explained;  /**< the profile is known */
    struct simt_profile profile;
};

/** @return whether the row has a time. */
bool ladder_row_is_measured(const struct ladder_row *row);

/** How a step is measured: functions of one case, which knows the step. */
struct ladder_case {
    void *argument;
    size_t rows; /**< of the whole problem, at least 1 */
    /** Puts the first @p rows of the problem on the default stream. */
    enum status (*run_rows)(void *argument, size_t rows, struct error *error);
    /** Runs once and compares; @p wrong receives what is wrong, or "". */
    enum status (*check)(void *argument, char *wrong, size_t size, struct error *error);
    device_bench_function *run; /**< what is timed */
};

/**
 * @brief Checks a step, then times it. One that gives wrong results is not timed; one that would
 *        take more than 4 s a call, going by 1/16 of its rows, is left out unless @p all is given.
 *        One that returns STATUS_UNSUPPORTED counts as wrong, with its message.
 * @param options changed to few runs for a step that takes more than 0.1 s a call
 * @param row     its name stays
 * @return STATUS_OK, also for a step that is wrong or left out; the first failure of a function
 */
MUST_CHECK enum status ladder_measure_step(const struct ladder_case *c, bool all,
                                           struct device_bench_options *options,
                                           struct ladder_row *row, struct error *error);

/** @return how many steps the ladder has. */
size_t ladder_count_steps(bench_step_name *steps);

/** @return whether step @p i belongs to the table. */
typedef bool ladder_filter_function(void *argument, size_t i);

/** Measures step @p i of the ladder into @p row. */
typedef enum status ladder_step_function(void *argument, size_t i, struct ladder_row *row,
                                         struct error *error);

/**
 * @brief Calls @p measure for each step, or for the one called @p only, and shows how far it is.
 * @param only  a step's name, or NULL
 * @param has   asked about each step unless @p only names one; NULL: the table has all
 * @param rows  as many as the ladder has steps
 * @param count receives how many were measured
 * @return STATUS_OK or the first failure, with the step's name before it
 */
MUST_CHECK enum status ladder_measure(bench_step_name *steps, const char *only,
                                      ladder_filter_function *has, ladder_step_function *measure,
                                      void *argument, struct ladder_row *rows, size_t *count,
                                      struct error *error);

/** Prints a measured row and records it. The times of the row before and of the first: NAN: none */
typedef enum status ladder_row_function(void *argument, const struct ladder_row *row,
                                        double last_ms, double first_ms, struct error *error);

/**
 * @brief Prints the rows: those that were measured with @p show, of the others why they were not.
 * @param width of the first column
 * @return after all rows: the first failure of @p show; STATUS_MISMATCH when a row is wrong
 */
MUST_CHECK enum status ladder_report(const struct ladder_row *rows, size_t count, int width,
                                     ladder_row_function *show, void *argument,
                                     struct error *error);

/** Prints " 1.23x", or a dash for what is not finite, in @p width columns after a space. */
void ladder_print_ratio(int width, double ratio);

/** The same for a share, as " 45.6%". */
void ladder_print_percent(int width, double share);

/**
 * @brief Writes where the measured rows lie under the roofs, see roofline_plot(), and says so.
 * @param flops, bytes of one call
 */
MUST_CHECK enum status ladder_plot(const struct ladder_row *rows, size_t count, const char *title,
                                   const struct device_properties *gpu,
                                   const struct roofline *roofs, double flops, double bytes,
                                   const char *path, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

#include "common/bench/ladder/ladder_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/terminal.h"

/* A call that is expected to take longer than this is left out, unless --all is given. */
enum { LONGEST_SECONDS = 4 };

bool ladder_row_is_measured(const struct ladder_row *row) {
    return row->wrong[0] == '\0' && row->expected == 0.0;
}

/* An x-ray page has the first launch of each grid and block: it must not be one of fewer rows. */
static bool page_is_made(void) {
    return getenv("SIMT_XRAY") != NULL || getenv("WARPBOOK_PROFILED") != NULL;
}

/* Wall-clock seconds that a call will take, from one of 1/16 of the rows. */
static enum status expect_seconds(const struct ladder_case *c, double *seconds,
                                  struct error *error) {
    size_t rows = page_is_made() ? c->rows : ceil_div(c->rows, 16);
    double start = bench_now();
    TRY(c->run_rows(c->argument, rows, error));
    TRY(device_synchronize(NULL, error));
    *seconds = (bench_now() - start) * (double)c->rows / (double)rows;
    return STATUS_OK;
}

enum status ladder_measure_step(const struct ladder_case *c, bool all,
                                struct device_bench_options *options, struct ladder_row *row,
                                struct error *error) {
    double seconds;
    row->peer_ms = NAN;
    enum status status = expect_seconds(c, &seconds, error);
    if (status == STATUS_UNSUPPORTED) {
        snprintf(row->wrong, sizeof row->wrong, "%s", error_text(error, status));
        return STATUS_OK;
    }
    TRY(status);
    /* The first call also loads the step's kernels, which counts little in one of all rows. */
    if (seconds > LONGEST_SECONDS && !all && !page_is_made()) {
        TRY(expect_seconds(c, &seconds, error));
    }
    if (seconds > LONGEST_SECONDS && !all) {
        row->expected = seconds;
        return STATUS_OK;
    }
    TRY(c->check(c->argument, row->wrong, sizeof row->wrong, error));
    if (row->wrong[0] != '\0') {
        return STATUS_OK;
    }
    if (seconds > 0.1) {
        options->min_runs = 3;
        options->warmup = 1;
    }
    return device_bench_run(options, c->run, c->argument, NULL, &row->timing, error);
}

size_t ladder_count_steps(bench_step_name *steps) {
    size_t count = 0;
    while (steps(count) != NULL) {
        count++;
    }
    return count;
}

enum status ladder_measure(bench_step_name *steps, const char *only, ladder_filter_function *has,
                           ladder_step_function *measure, void *argument, struct ladder_row *rows,
                           size_t *count, struct error *error) {
    size_t steps_count = ladder_count_steps(steps);
    struct progress progress = progress_create("steps", steps_count);
    enum status status = STATUS_OK;
    *count = 0;
    for (size_t i = 0; i < steps_count && status == STATUS_OK; i++) {
        if (only != NULL ? strcmp(only, steps(i)) == 0 : has == NULL || has(argument, i)) {
            rows[*count] = (struct ladder_row){.name = steps(i)};
            status = measure(argument, i, &rows[(*count)++], error);
            error_prefix(error, status, steps(i));
        }
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

/* Why a row has no time. */
static void print_unmeasured(const struct ladder_row *row, int width) {
    if (row->wrong[0] != '\0') {
        printf("  %-*s %sWRONG%s: %s\n", width, row->name, terminal_colour(stdout, COLOUR_RED),
               terminal_plain(stdout), row->wrong);
    } else {
        printf("  %-*s left out: a call would take about %.0f s; --all measures it\n", width,
               row->name, row->expected);
    }
}

enum status ladder_report(const struct ladder_row *rows, size_t count, int width,
                          ladder_row_function *show, void *argument, struct error *error) {
    bool wrong = false;
    enum status shown = STATUS_OK; /* a row that cannot be recorded does not hide the others */
    double first_ms = NAN, last_ms = NAN;
    for (size_t i = 0; i < count; i++) {
        wrong = wrong || rows[i].wrong[0] != '\0';
        if (!ladder_row_is_measured(&rows[i])) {
            print_unmeasured(&rows[i], width);
            continue;
        }
        enum status status =
            show(argument, &rows[i], last_ms, first_ms, shown == STATUS_OK ? error : NULL);
        shown = shown == STATUS_OK ? status : shown;
        last_ms = rows[i].timing.median_ms;
        first_ms = isnan(first_ms) ? last_ms : first_ms;
    }
    TRY(shown);
    return wrong ? error_set(error, STATUS_MISMATCH, "a step of the ladder gives wrong results")
                 : STATUS_OK;
}

void ladder_print_ratio(int width, double ratio) {
    if (isfinite(ratio)) {
        printf(" %*.2fx", width - 1, ratio);
    } else {
        printf(" %*s", width + 2, "–"); /* three bytes, one column */
    }
}

void ladder_print_percent(int width, double share) {
    if (isfinite(share)) {
        printf(" %*.1f%%", width - 1, 100.0 * share);
    } else {
        printf(" %*s", width + 2, "–");
    }
}

enum status ladder_plot(const struct ladder_row *rows, size_t count, const char *title,
                        const struct device_properties *gpu, const struct roofline *roofs,
                        double flops, double bytes, const char *path, struct error *error) {
    char subtitle[400];
    struct roofline_point *points = calloc(count + 1, sizeof *points);
    if (points == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the picture");
    }
    struct roofline_plot plot = {
        .title = title,
        .subtitle = device_bench_headline(gpu, subtitle, sizeof subtitle),
        .roofs = *roofs,
        .points = points,
    };
    for (size_t i = 0; i < count; i++) {
        if (ladder_row_is_measured(&rows[i])) {
            points[plot.count++] = (struct roofline_point){.name = rows[i].name,
                                                           .flops = flops,
                                                           .bytes = bytes,
                                                           .ms = rows[i].timing.median_ms};
        }
    }
    enum status status = roofline_plot(&plot, path, error);
    if (status == STATUS_OK) {
        printf("  picture: %s\n", path);
    }
    free(points);
    return status;
}

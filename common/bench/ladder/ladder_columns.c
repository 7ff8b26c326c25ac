/* One table: its steps measured, printed, recorded and drawn. */
#include "common/bench/ladder/ladder_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bench/device/kernel_profile.h"
#include "common/bench/ladder/ladder_rows.h"

struct table {
    const struct ladder_bench *bench;
    const struct ladder_setup *setup;
    const struct ladder_shape *shape;
    struct ladder_text text;
    const struct ladder_column *columns;
    double flops, bytes;
    void *problem;
    struct ladder_row *rows;
    size_t count;
    size_t step;    /* the one at hand */
    double peer_ms; /* timed before or after the steps; NAN: not */
};

static struct device_bench_options options_of(const struct table *t) {
    struct device_bench_options options = device_bench_defaults();
    /* Without a flush simt's report shows the learner's kernels alone. */
    options.flush_l2 = t->bench->flush_on_simt || !t->setup->gpu.modelled;
    options.min_seconds = t->setup->quick ? t->bench->quick_seconds : t->bench->seconds;
    return options;
}

static bool has_peer(const struct table *t) {
    const struct ladder_peer *peer = &t->bench->peer;
    return peer->run != NULL && (peer->has == NULL || peer->has(t->shape)) &&
           (!peer->cublas || t->setup->cublas != NULL);
}

static enum status measure_peer(const struct table *t, double *ms, struct error *error) {
    struct bench_timing timing;
    const struct device_bench_options options = options_of(t);
    TRY(device_bench_run(&options, t->bench->peer.run, t->problem, NULL, &timing, error));
    *ms = timing.median_ms;
    return STATUS_OK;
}

static enum status run_rows(void *argument, size_t rows, struct error *error) {
    struct table *t = argument;
    return t->bench->problem.run(t->problem, t->step, rows, NULL, error);
}

static enum status run_step(void *argument, device_stream stream, struct error *error) {
    struct table *t = argument;
    return t->bench->problem.run(t->problem, t->step, t->shape->sizes[0], stream, error);
}

static enum status check_step(void *argument, char *wrong, size_t size, struct error *error) {
    struct table *t = argument;
    return t->bench->problem.check(t->problem, t->step, wrong, size, error);
}

static enum status measure_step(void *argument, size_t i, struct ladder_row *row,
                                struct error *error) {
    struct table *t = argument;
    const struct ladder_bench *b = t->bench;
    const struct ladder_case c = {.argument = t,
                                  .rows = t->shape->sizes[0],
                                  .run_rows = run_rows,
                                  .check = check_step,
                                  .run = run_step};
    struct device_bench_options options = options_of(t);
    const bool always = t->setup->all || t->setup->step != NULL; /* it was asked for by name */
    t->step = i;
    TRY(ladder_measure_step(&c, always, &options, row, error));
    if (!ladder_row_is_measured(row)) {
        return STATUS_OK;
    }
    if (b->problem.own != NULL) {
        TRY(b->problem.own(t->problem, i, &row->own, error));
    }
    if (t->setup->why || t->setup->step != NULL) {
        row->explained = kernel_profile(run_step, t, &row->profile);
    }
    return has_peer(t) && b->peer.order == LADDER_PEER_AFTER_EACH_STEP
               ? measure_peer(t, &row->peer_ms, error)
               : STATUS_OK;
}

static bool has_step(void *argument, size_t i) {
    const struct table *t = argument;
    return t->bench->has_step == NULL || t->bench->has_step(t->shape, i);
}

/* The peer and the steps in the order that the bench asks for. */
static enum status measure(struct table *t, struct error *error) {
    const struct ladder_bench *b = t->bench;
    if (has_peer(t) && b->peer.order == LADDER_PEER_BEFORE_STEPS) {
        TRY(measure_peer(t, &t->peer_ms, error));
    }
    TRY(ladder_measure(b->step, t->setup->step, has_step, measure_step, t, t->rows, &t->count,
                       error));
    return has_peer(t) && b->peer.order == LADDER_PEER_AFTER_STEPS
               ? measure_peer(t, &t->peer_ms, error)
               : STATUS_OK;
}

/* ---- Printing ---- */

static void print_head(const struct table *t) {
    const struct ladder_bench *b = t->bench;
    printf("\n%s", t->text.title);
    if (b->peer.in_title && isfinite(t->peer_ms)) {
        printf("; the %s: %.4f ms", b->peer.name, t->peer_ms);
    }
    printf("\n  %-*s", b->name_width, "step");
    for (size_t i = 0; i < b->columns_count; i++) {
        printf(" %*s", t->columns[i].width, t->columns[i].title);
    }
    printf("\n");
}

/* A time, or a rate; false: the column is something else. */
static bool print_rate(const struct table *t, const struct ladder_column *column, double ms) {
    switch (column->figure) {
    case LADDER_MS:
        printf(" %*.4f", column->width, ms);
        return true;
    case LADDER_GFLOP_PER_S:
        printf(" %*.1f", column->width, 1e-6 * t->flops / ms);
        return true;
    case LADDER_TFLOP_PER_S:
        printf(" %*.2f", column->width, 1e-9 * t->flops / ms);
        return true;
    case LADDER_GB_PER_S:
        printf(" %*.1f", column->width, 1e-6 * t->bytes / ms);
        return true;
    default:
        return false;
    }
}

/* The peer's own row: its time and its rates. */
static void print_peer(const struct table *t) {
    const struct ladder_bench *b = t->bench;
    printf("  %-*s", b->name_width, b->peer.row);
    for (size_t i = 0; i < b->columns_count; i++) {
        if (!print_rate(t, &t->columns[i], t->peer_ms)) {
            break;
        }
    }
    printf("\n");
}

/* fp32 multiply-adds at the clock the GPU really had. */
static double peak_of(const struct ladder_setup *setup, const struct bench_timing *timing) {
    double mhz = 1e-3 * setup->gpu.clock_khz;
    return setup->gpu.peak_flops * (timing->clock_mhz > 0.0 ? timing->clock_mhz / mhz : 1.0);
}

static double peer_ms_of(const struct table *t, const struct ladder_row *row) {
    return t->bench->peer.order == LADDER_PEER_AFTER_EACH_STEP ? row->peer_ms : t->peer_ms;
}

static void print_column(const struct table *t, const struct ladder_column *column,
                         const struct ladder_row *row, double last_ms, double first_ms) {
    const int width = column->width;
    const double ms = row->timing.median_ms, peer_ms = peer_ms_of(t, row);
    switch (column->figure) {
    case LADDER_PERCENT_OF_PEER:
        return ladder_print_percent(width, peer_ms / ms);
    case LADDER_SPEED_OF_PEER:
        return ladder_print_ratio(width, peer_ms / ms);
    case LADDER_TIME_OF_PEER:
        return ladder_print_ratio(width, ms / peer_ms);
    case LADDER_ROOFLINE:
        return ladder_print_percent(width,
                                    roofline_share(&t->setup->roofs, t->flops, t->bytes, ms));
    case LADDER_PEAK:
        return ladder_print_percent(width, 1e3 * t->flops / ms / peak_of(t->setup, &row->timing));
    case LADDER_STEP_UP:
        return ladder_print_ratio(width, last_ms / ms);
    case LADDER_IN_ALL:
        return ladder_print_ratio(width, first_ms / ms);
    case LADDER_SPEEDUP:
        return ladder_print_ratio(width, isnan(first_ms) ? 1.0 : first_ms / ms);
    case LADDER_OWN:
        printf(" %*.0f", width, row->own);
        return;
    case LADDER_NONE:
        return ladder_print_percent(width, NAN);
    default:
        print_rate(t, column, ms);
    }
}

static enum status append_row(const struct table *t, const struct ladder_row *row,
                              struct error *error) {
    const struct ladder_bench *b = t->bench;
    const struct bench_gpu gpu = bench_gpu_of(&t->setup->gpu);
    const double peer_ms = peer_ms_of(t, row);
    const char *peer = b->peer.name != NULL ? b->peer.name : t->setup->cublas_name;
    const struct bench_record record = {
        .lab = b->lab,
        .subject = b->subject,
        .stage = row->name,
        .op = t->text.op,
        .shape = t->text.shape,
        .dtype = t->text.dtype,
        .threads = 1,
        .gpu = &gpu,
        .timing = row->timing,
        .bytes = t->bytes,
        .flops = t->flops,
        .peer = isnan(peer_ms) ? NULL : peer,
        .peer_ratio = peer_ms / row->timing.median_ms,
        .figure = b->own_name,
        .figure_value = row->own,
    };
    return bench_append(&record, error);
}

static enum status show_row(void *argument, const struct ladder_row *row, double last_ms,
                            double first_ms, struct error *error) {
    const struct table *t = argument;
    const struct ladder_bench *b = t->bench;
    printf("  %-*s", b->name_width, row->name);
    for (size_t i = 0; i < b->columns_count; i++) {
        print_column(t, &t->columns[i], row, last_ms, first_ms);
    }
    printf("\n");
    if (row->explained) {
        kernel_profile_print(&row->profile);
    }
    return append_row(t, row, error);
}

static enum status run_table(struct table *t, bool plot, struct error *error) {
    const struct ladder_bench *b = t->bench;
    TRY(b->problem.create(t->problem, t->setup, t->shape, error));
    TRY(measure(t, error));
    print_head(t);
    if (b->peer.row != NULL && isfinite(t->peer_ms)) {
        print_peer(t);
    }
    TRY(ladder_report(t->rows, t->count, b->name_width, show_row, t, error));
    return plot && t->setup->plot != NULL
               ? ladder_plot(t->rows, t->count, t->text.plot_title, &t->setup->gpu,
                             &t->setup->roofs, t->flops, t->bytes, t->setup->plot, error)
               : STATUS_OK;
}

enum status ladder_table(const struct ladder_bench *bench, const struct ladder_setup *setup,
                         const struct ladder_shape *shape, bool plot, struct error *error) {
    struct table t = {.bench = bench,
                      .setup = setup,
                      .shape = shape,
                      .columns =
                          bench->columns_of != NULL ? bench->columns_of(shape) : bench->columns,
                      .flops = bench->flops(shape),
                      .bytes = bench->bytes(shape),
                      .problem = calloc(1, bench->problem.bytes),
                      .rows = calloc(ladder_count_steps(bench->step), sizeof *t.rows),
                      .peer_ms = NAN};
    enum status status = STATUS_OUT_OF_MEMORY;
    bench->describe(setup, shape, &t.text);
    if (t.problem != NULL && t.rows != NULL) {
        status = run_table(&t, plot, error);
        bench->problem.free(t.problem);
    }
    free(t.problem);
    free(t.rows);
    return status;
}

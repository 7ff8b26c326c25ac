/* Part (a) of the bench: every step of the ladder on every shape, beside a copy of the same rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/ladder_rows.h"
#include "labs/05_layernorm_softmax/bench/case.h"

/* Activations of models, then batches from BERT's width to a vocabulary. */
static const struct bench_shape gpu_shapes[] = {
    {256, 2560, "[2, 128, 2560]"},
    {1, 2560, "[1, 1, 2560]"},
    {1024, 2560, "[4, 256, 2560]"},
    {2048, 2560, "[1, 2048, 2560]"},
    {8192, 768, NULL},
    {32768, 1024, NULL},
    {16384, 4096, NULL},
    {8192, 16384, NULL},
    {4096, 50257, NULL},
};
static const struct bench_shape gpu_quick_shapes[] = {{2048, 2560, "[1, 2048, 2560]"},
                                                      {8192, 768, NULL}};
static const struct bench_shape simt_shapes[] = {
    {1, 2560, "[1, 1, 2560]"}, {256, 2560, "[2, 128, 2560]"}, {2048, 768, NULL}, {1024, 33, NULL}};
static const struct bench_shape simt_quick_shapes[] = {{256, 768, NULL}};

/* What a list without --op and --dtype goes through. */
static const struct {
    enum rows_op op;
    enum nn_dtype type;
} kinds[] = {{ROWS_LAYERNORM, NN_F32},
             {ROWS_LAYERNORM, NN_BF16},
             {ROWS_RMSNORM, NN_F32},
             {ROWS_SOFTMAX, NN_F32},
             {ROWS_SOFTMAX, NN_BF16}};

/* What simt does in about a minute a step, and in memory that is the host's. */
#define SIMT_ELEMENTS ((size_t)1 << 27)
#define SIMT_BYTES ((size_t)1 << 30)

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* One table: a shape, an operator, a type. */
struct table {
    const struct bench_setup *setup;
    const struct bench_shape *shape;
    enum rows_op op;
    enum nn_dtype type;
    struct bench_case c;
    double copy_ms;
    struct ladder_row *rows;
    size_t count;
};

enum status bench_parse_shape(const char *text, struct bench_shape *s, struct error *error) {
    *s = (struct bench_shape){0};
    size_t *const sizes[] = {&s->rows, &s->C};
    if (!bench_parse_sizes(text, sizes, 2)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape wants two sizes ROWS,C, each at least 1, not '%s'", text);
    }
    if (s->C > ROWS_MAX_C || s->rows > ROWS_MAX_ELEMENTS / s->C) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %s: C is at most %zu, all elements together %zu", text,
                         ROWS_MAX_C, ROWS_MAX_ELEMENTS);
    }
    return STATUS_OK;
}

enum status bench_check_shape(const struct bench_setup *setup, const struct bench_shape *s,
                              struct error *error) {
    /* Below 2^44 bytes: elements are at most 2^40. */
    size_t size = setup->type > NN_F32 ? 2 : 4;
    size_t bytes = size * (2 * s->rows * s->C + 2 * s->C) + ROWS_WORKSPACE_BYTES;
    size_t limit = setup->gpu.modelled ? SIMT_BYTES : setup->gpu.memory_bytes;
    if (setup->gpu.modelled && s->rows * s->C > SIMT_ELEMENTS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %zu,%zu: %zu elements take simt very long; at most %zu here",
                         s->rows, s->C, s->rows * s->C, SIMT_ELEMENTS);
    }
    if (bytes > limit) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "--shape %zu,%zu needs %zu bytes of device memory, %s has %zu", s->rows,
                         s->C, bytes, setup->gpu.modelled ? "simt" : setup->gpu.name, limit);
    }
    return STATUS_OK;
}

static const char *step_name(size_t i) {
    size_t count;
    const struct rows_step *steps = layernorm_softmax_ladder(&count);
    return i < count ? steps[i].name : NULL;
}

enum status bench_check_step(const char *name, struct error *error) {
    return bench_program_check_step(name, step_name, error);
}

static enum status run_rows(void *argument, size_t rows, struct error *error) {
    struct bench_case *c = argument;
    const struct rows_problem problem = bench_case_problem(c, rows);
    return c->run(&problem, c->workspace, NULL, error);
}

static enum status run_step(void *argument, device_stream stream, struct error *error) {
    struct bench_case *c = argument;
    const struct rows_problem problem = bench_case_problem(c, c->shape.rows);
    return c->run(&problem, c->workspace, stream, error);
}

static enum status run_copy(void *argument, device_stream stream, struct error *error) {
    struct bench_case *c = argument;
    size_t bytes = c->shape.rows * c->shape.C * nn_dtype_bytes(c->data.type);
    return device_copy(c->out, c->in, bytes, stream, error);
}

static enum status check_step(void *argument, char *wrong, size_t size, struct error *error) {
    return bench_case_check(argument, wrong, size, error);
}

static struct device_bench_options options_of(const struct bench_setup *setup) {
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = !setup->gpu.modelled; /* simt's report then shows your kernels alone */
    options.min_seconds = setup->quick ? 0.02 : 0.1;
    return options;
}

static enum status measure_step(void *argument, size_t i, struct ladder_row *row,
                                struct error *error) {
    size_t count;
    struct table *t = argument;
    const struct ladder_case c = {.argument = &t->c,
                                  .rows = t->shape->rows,
                                  .run_rows = run_rows,
                                  .check = check_step,
                                  .run = run_step};
    struct device_bench_options options = options_of(t->setup);
    t->c.run = layernorm_softmax_ladder(&count)[i].run;
    return ladder_measure_step(&c, t->setup->all, &options, row, error);
}

static enum status append_row(const struct table *t, const char *stage,
                              const struct bench_timing *timing, struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&t->setup->gpu);
    snprintf(shape, sizeof shape, "%zux%zu", t->shape->rows, t->shape->C);
    const struct bench_record record = {
        .lab = "05_layernorm_softmax",
        .subject = WARPBOOK_SUBJECT,
        .stage = stage,
        .op = rows_op_name(t->op),
        .shape = shape,
        .dtype = nn_dtype_name(t->type),
        .threads = 1,
        .gpu = &gpu,
        .timing = *timing,
        .bytes = bench_bytes(t->shape, t->type),
        .flops = bench_flops(t->shape, t->op),
        .peer = "device-to-device copy",
        .peer_ratio = t->copy_ms / timing->median_ms,
    };
    return bench_append(&record, error);
}

static void print_head(const struct table *t) {
    const struct bench_shape *s = t->shape;
    printf("\n%s %s, %zu rows of %zu%s%s, %s\n", rows_op_name(t->op), nn_dtype_name(t->type),
           s->rows, s->C, s->name != NULL ? ", " : "", s->name != NULL ? s->name : "",
           device_bench_verb(&t->setup->gpu));
    printf("  %-20s %9s %9s %9s %9s %9s %9s\n", "step", "ms", "GB/s", "of copy", "roofline",
           "step up", "in all");
    printf("  %-20s %9.4f %9.1f\n", "(copy)", t->copy_ms,
           1e-6 * bench_bytes(s, t->type) / t->copy_ms);
}

static enum status show_row(void *argument, const struct ladder_row *row, double last_ms,
                            double first_ms, struct error *error) {
    const struct table *t = argument;
    double ms = row->timing.median_ms, bytes = bench_bytes(t->shape, t->type);
    double share = roofline_share(&t->setup->roofs, bench_flops(t->shape, t->op), bytes, ms);
    printf("  %-20s %9.4f %9.1f", row->name, ms, 1e-6 * bytes / ms);
    ladder_print_ratio(9, t->copy_ms / ms);
    ladder_print_percent(9, share);
    ladder_print_ratio(9, last_ms / ms);
    ladder_print_ratio(9, first_ms / ms);
    printf("\n");
    return append_row(t, row->name, &row->timing, error);
}

static enum status plot_rows(const struct table *t, struct error *error) {
    char title[128];
    snprintf(title, sizeof title, "%s %s, %zu rows of %zu", rows_op_name(t->op),
             nn_dtype_name(t->type), t->shape->rows, t->shape->C);
    return ladder_plot(t->rows, t->count, title, &t->setup->gpu, &t->setup->roofs,
                       bench_flops(t->shape, t->op), bench_bytes(t->shape, t->type), t->setup->plot,
                       error);
}

static enum status measure_copy(struct table *t, struct error *error) {
    struct bench_timing timing;
    const struct device_bench_options options = options_of(t->setup);
    TRY(device_bench_run(&options, run_copy, &t->c, NULL, &timing, error));
    t->copy_ms = timing.median_ms;
    return STATUS_OK;
}

static enum status measure_rows(struct table *t, bool plot, struct error *error) {
    TRY(measure_copy(t, error));
    TRY(ladder_measure(step_name, t->setup->step, measure_step, t, t->rows, &t->count, error));
    print_head(t);
    TRY(ladder_report(t->rows, t->count, 20, show_row, t, error));
    return plot && t->setup->plot != NULL ? plot_rows(t, error) : STATUS_OK;
}

static enum status measure_table(struct table *t, bool plot, struct error *error) {
    size_t count;
    (void)layernorm_softmax_ladder(&count);
    t->rows = calloc(count, sizeof *t->rows);
    enum status status = t->rows != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        status = bench_case_create(&t->c, *t->shape, t->op, t->type, error);
    }
    if (status == STATUS_OK) {
        status = measure_rows(t, plot, error);
    }
    bench_case_free(&t->c);
    free(t->rows);
    return status;
}

/* Whether a table is asked for: by name, or as one of the list. */
static bool is_wanted(const struct bench_setup *setup, enum rows_op op, enum nn_dtype type) {
    bool listed = setup->type >= 0; /* a type that is named is shown of every operator */
    for (size_t i = 0; i < COUNT(kinds); i++) {
        listed = listed || (kinds[i].op == op && kinds[i].type == type);
    }
    return listed && (setup->op < 0 || setup->op == (int)op) &&
           (setup->type < 0 || setup->type == (int)type);
}

/* All operators and types that are asked for, on one shape. */
static enum status measure_shape(const struct bench_setup *setup, const struct bench_shape *shape,
                                 bool last, struct error *error) {
    enum status status = STATUS_OK, wrong = STATUS_OK;
    for (int i = 0; i < ROWS_OPS * ROWS_TYPES && status == STATUS_OK; i++) {
        struct table t = {.setup = setup,
                          .shape = shape,
                          .op = (enum rows_op)(i / ROWS_TYPES),
                          .type = (enum nn_dtype)(i % ROWS_TYPES)};
        if (is_wanted(setup, t.op, t.type)) {
            status = measure_table(&t, last, error);
        }
        if (status == STATUS_MISMATCH) {
            wrong = status;
            status = STATUS_OK;
        }
    }
    return status != STATUS_OK ? status : wrong;
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    const struct bench_shape *lists[] = {gpu_shapes, gpu_quick_shapes, simt_shapes,
                                         simt_quick_shapes};
    const size_t counts[] = {COUNT(gpu_shapes), COUNT(gpu_quick_shapes), COUNT(simt_shapes),
                             COUNT(simt_quick_shapes)};
    int list = 2 * setup->gpu.modelled + setup->quick;
    const struct bench_shape *shapes = setup->shape != NULL ? setup->shape : lists[list];
    size_t count = setup->shape != NULL ? 1 : counts[list];
    enum status status = STATUS_OK, wrong = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        if (bench_check_shape(setup, &shapes[i], NULL) != STATUS_OK) {
            continue; /* a small GPU */
        }
        status = measure_shape(setup, &shapes[i], i + 1 == count, error);
        if (status == STATUS_MISMATCH) {
            wrong = status;
            status = STATUS_OK;
        }
    }
    return status != STATUS_OK ? status : wrong;
}

/* Part (a) of the bench: each of the three functions, every step that has a new one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/ladder_rows.h"
#include "labs/11_training/bench/parts.h"

/* BERT-base with 16 texts of 128 and of 512 tokens, and its parameters. */
static const struct bench_shape gpu_shapes[] = {
    {BENCH_LAYERNORM, {2048, 768}},       {BENCH_LAYERNORM, {8192, 768}},
    {BENCH_ATTENTION, {16, 12, 128, 64}}, {BENCH_ATTENTION, {16, 12, 512, 64}},
    {BENCH_ADAMW, {109483778}},
};

/* What simt does in seconds. */
static const struct bench_shape simt_shapes[] = {
    {BENCH_LAYERNORM, {512, 768}},
    {BENCH_ATTENTION, {2, 12, 128, 64}},
    {BENCH_ADAMW, {1 << 20}},
};
static const struct bench_shape simt_quick_shapes[] = {
    {BENCH_LAYERNORM, {64, 768}},
    {BENCH_ATTENTION, {1, 1, 64, 64}},
    {BENCH_ADAMW, {1 << 15}},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Operations that simt does in about a minute a step. */
#define SIMT_FLOPS 2e9

/* One table: a function, a shape, a type. */
struct table {
    const struct bench_setup *setup;
    const struct bench_function *function;
    struct bench_case c;
    struct ladder_row *rows;
    size_t count;
};

const struct bench_function *bench_function_of(enum bench_op op) {
    static const struct bench_function *const functions[] = {&bench_layernorm, &bench_attention,
                                                             &bench_adamw};
    return functions[op];
}

static const char *step_name(size_t i) {
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    return i < count ? steps[i].name : NULL;
}

enum status bench_check_step(const char *name, struct error *error) {
    return bench_program_check_step(name, step_name, error);
}

enum status bench_check_shape(const struct bench_setup *setup, const struct bench_shape *shape,
                              enum nn_dtype dtype, struct error *error) {
    const struct bench_function *function = bench_function_of(shape->op);
    double bytes = function->memory(shape, dtype), flops = function->flops(shape);
    if (bytes > 0.9 * (double)setup->gpu.memory_bytes) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "--shape needs %.1f GB on the GPU, which has %.1f", 1e-9 * bytes,
                         1e-9 * (double)setup->gpu.memory_bytes);
    }
    if (setup->gpu.modelled && flops > SIMT_FLOPS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape has %.1f GFLOP: too many for simt, which does up to %.0f",
                         1e-9 * flops, 1e-9 * SIMT_FLOPS);
    }
    return STATUS_OK;
}

/* ---- Measuring ---- */

static enum status run_rows(void *argument, size_t rows, struct error *error) {
    struct table *t = argument;
    return t->function->run(&t->c, rows, NULL, error);
}

static enum status run_step(void *argument, device_stream stream, struct error *error) {
    struct table *t = argument;
    return t->function->run(&t->c, t->c.shape.sizes[0], stream, error);
}

static enum status check_step(void *argument, char *wrong, size_t size, struct error *error) {
    struct table *t = argument;
    return t->function->check(&t->c, wrong, size, error);
}

/* Of the ladder's step i; its name is the row's. */
static enum status measure_step(struct table *t, size_t i, struct ladder_row *row,
                                struct error *error) {
    size_t count;
    const struct ladder_case c = {.argument = t,
                                  .rows = t->c.shape.sizes[0],
                                  .run_rows = run_rows,
                                  .check = check_step,
                                  .run = run_step};
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = !t->setup->gpu.modelled; /* simt's report then shows your kernels alone */
    options.min_seconds = t->setup->quick ? 0.02 : 0.1;
    const struct training_step *step = &training_ladder(&count)[i];
    *row = (struct ladder_row){.name = step->name};
    t->c.functions = &step->functions;
    enum status status = ladder_measure_step(&c, t->setup->all, &options, row, error);
    error_prefix(error, status, step->name);
    return status;
}

/* Steps that have a new function; or the one that is asked for. */
static bool is_wanted(const struct table *t, size_t i) {
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    if (t->setup->step != NULL) {
        return strcmp(t->setup->step, steps[i].name) == 0;
    }
    return i == 0 || t->function->differ(&steps[i].functions, &steps[i - 1].functions);
}

static enum status measure_steps(struct table *t, struct error *error) {
    size_t count;
    (void)training_ladder(&count);
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(t, i)) {
            TRY(measure_step(t, i, &t->rows[t->count++], error));
        }
    }
    return STATUS_OK;
}

/* ---- The table ---- */

static bool counts_flops(const struct table *t) {
    return t->c.shape.op == BENCH_ATTENTION;
}

/* Of the roofs of fp32 and of memory; products in bf16 have another roof than these. */
static double share_of_roof(const struct table *t, double ms) {
    if (counts_flops(t) && t->c.dtype != NN_F32) {
        return NAN;
    }
    return roofline_share(&t->setup->roofs, t->function->flops(&t->c.shape),
                          t->function->bytes(&t->c.shape, t->c.dtype), ms);
}

static enum status append_row(const struct table *t, const struct ladder_row *row,
                              struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&t->setup->gpu);
    t->function->describe(&t->c.shape, shape, sizeof shape);
    const struct bench_record record = {.lab = "11_training",
                                        .subject = WARPBOOK_SUBJECT,
                                        .stage = row->name,
                                        .op = t->function->name,
                                        .shape = shape,
                                        .dtype = nn_dtype_name(t->c.dtype),
                                        .threads = 1,
                                        .gpu = &gpu,
                                        .timing = row->timing,
                                        .bytes = t->function->bytes(&t->c.shape, t->c.dtype),
                                        .flops = t->function->flops(&t->c.shape),
                                        .peer_ratio = NAN};
    return bench_append(&record, error);
}

static void print_head(const struct table *t) {
    char shape[96];
    t->function->describe(&t->c.shape, shape, sizeof shape);
    printf("\n%s %s, %s, %s\n", t->function->name, nn_dtype_name(t->c.dtype), shape,
           device_bench_verb(&t->setup->gpu));
    printf("  %-20s %9s %9s %9s %9s %9s\n", "step", "ms", t->function->unit, "roofline", "step up",
           "in all");
}

static enum status show_row(void *argument, const struct ladder_row *row, double last_ms,
                            double first_ms, struct error *error) {
    const struct table *t = argument;
    double ms = row->timing.median_ms;
    double rate = counts_flops(t) ? 1e-9 * t->function->flops(&t->c.shape) / ms
                                  : 1e-6 * t->function->bytes(&t->c.shape, t->c.dtype) / ms;
    printf("  %-20s %9.4f %9.1f", row->name, ms, rate);
    ladder_print_percent(9, share_of_roof(t, ms));
    ladder_print_ratio(9, last_ms / ms);
    ladder_print_ratio(9, first_ms / ms);
    printf("\n");
    fflush(stdout);
    return append_row(t, row, error);
}

static enum status measure_table(const struct bench_setup *setup, const struct bench_shape *shape,
                                 enum nn_dtype dtype, struct error *error) {
    size_t count;
    struct table t = {.setup = setup,
                      .function = bench_function_of(shape->op),
                      .c = {.shape = *shape, .dtype = dtype}};
    const struct training_step *steps = training_ladder(&count);
    t.rows = calloc(count, sizeof *t.rows);
    t.c.functions = &steps[0].functions;
    enum status status = t.rows != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        status = t.function->create(&t.c, error);
    }
    if (status == STATUS_OK) {
        status = measure_steps(&t, error);
    }
    if (status == STATUS_OK) {
        print_head(&t);
        status = ladder_report(t.rows, t.count, 20, show_row, &t, error);
    }
    t.function->destroy(&t.c);
    free(t.rows);
    return status;
}

static bool is_asked_for(const struct bench_setup *setup, const struct bench_shape *shape,
                         enum nn_dtype dtype) {
    return (setup->op < 0 || setup->op == (int)shape->op) &&
           (setup->dtype < 0 || setup->dtype == (int)dtype);
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    static const enum nn_dtype dtypes[] = {NN_F32, NN_BF16};
    const struct bench_shape *list = !setup->gpu.modelled ? gpu_shapes
                                     : setup->quick       ? simt_quick_shapes
                                                          : simt_shapes;
    size_t count = setup->gpu.modelled ? COUNT(simt_shapes) : COUNT(gpu_shapes);
    list = setup->shape != NULL ? setup->shape : list;
    count = setup->shape != NULL ? 1 : count;
    enum status status = STATUS_OK, wrong = STATUS_OK;
    for (size_t i = 0; i < 2 * count && status == STATUS_OK; i++) {
        const struct bench_shape *shape = &list[i / 2];
        if (is_asked_for(setup, shape, dtypes[i % 2]) &&
            bench_check_shape(setup, shape, dtypes[i % 2], NULL) == STATUS_OK) { /* a small GPU */
            status = measure_table(setup, shape, dtypes[i % 2], error);
        }
        if (status == STATUS_MISMATCH) {
            wrong = status;
            status = STATUS_OK;
        }
    }
    return status != STATUS_OK ? status : wrong;
}

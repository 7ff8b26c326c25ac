/**
 * @file bench.c
 * @brief Lab 11's bench: the steps of the ladder, function by function, and training steps of BERT
 *        with each of them.
 *
 * Built once for the learner's ladder and once for the solution's. Every step is checked against
 * the double reference before it is timed. Each row is appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <string.h>

#include "labs/11_training/bench/problem.h"
#include "labs/11_training/bench/training_bench.h"

enum {
    MOST_TEXTS = 1024,
    MOST_LENGTH = 4096,
    MOST_KERNELS = 1000,
    MOST_BATCH = 4096,
    MOST_HEADS = 1024
};
#define MOST_PARAMETERS ((size_t)1 << 40)

/* Operations that simt does in about a minute a step. */
#define SIMT_FLOPS 2e9

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* BERT-base with 16 texts of 128 and of 512 tokens, and its parameters. */
static const struct ladder_shape gpu_shapes[] = {
    {.op = BENCH_LAYERNORM, .sizes = {2048, 768}},
    {.op = BENCH_LAYERNORM, .sizes = {8192, 768}},
    {.op = BENCH_ATTENTION, .sizes = {16, 12, 128, 64}},
    {.op = BENCH_ATTENTION, .sizes = {16, 12, 512, 64}},
    {.op = BENCH_ADAMW, .sizes = {109483778}},
};

/* What simt does in seconds. */
static const struct ladder_shape simt_shapes[] = {
    {.op = BENCH_LAYERNORM, .sizes = {512, 768}},
    {.op = BENCH_ATTENTION, .sizes = {2, 12, 128, 64}},
    {.op = BENCH_ADAMW, .sizes = {1 << 20}},
};
static const struct ladder_shape simt_quick_shapes[] = {
    {.op = BENCH_LAYERNORM, .sizes = {64, 768}},
    {.op = BENCH_ATTENTION, .sizes = {1, 1, 64, 64}},
    {.op = BENCH_ADAMW, .sizes = {1 << 15}},
};

static const enum nn_dtype dtypes[] = {NN_F32, NN_BF16};

static const struct bench_function *function_of(const struct ladder_shape *shape) {
    static const struct bench_function *const functions[] = {&bench_layernorm, &bench_attention,
                                                             &bench_adamw};
    return functions[shape->op];
}

/* ---- The command line ---- */

static const char *op_name(size_t i) {
    const struct ladder_shape shape = {.op = (int)i};
    return i < BENCH_OPS ? function_of(&shape)->flag : NULL;
}

static const char *dtype_name(size_t i) {
    return i < COUNT(dtypes) ? nn_dtype_name(dtypes[i]) : NULL;
}

/* Flags of training steps. */
static enum status check_model(const struct ladder_setup *setup, struct error *error) {
    struct training_options *o = setup->options;
    const struct {
        const char *name;
        int value, most;
    } numbers[] = {{"batch-size", o->batch, MOST_TEXTS},
                   {"max-length", o->length, MOST_LENGTH},
                   {"kernels", o->kernels, MOST_KERNELS}};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        if (numbers[i].value < 0 || numbers[i].value > numbers[i].most) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "--%s %d: from 1 to %d, or 0",
                             numbers[i].name, numbers[i].value, numbers[i].most);
        }
        o->model = o->model || numbers[i].value > 0;
    }
    if (o->launches != NULL && o->kernels == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--launches goes with --kernels");
    }
    if (o->model && (o->op_text != NULL || setup->shape_text != NULL)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--op and --shape are a function's; --model, --batch-size, --max-length "
                         "and --kernels are training steps'");
    }
    return STATUS_OK;
}

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct training_options *o = setup->options;
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    TRY(check_model(setup, error));
    if (o->op_text != NULL) {
        TRY(ladder_parse_name(o->op_text, op_name, "--op is 'layernorm', 'attention' or 'adamw'",
                              &o->op, error));
    }
    if (o->dtype_text != NULL) {
        int i = 0;
        TRY(ladder_parse_name(o->dtype_text, dtype_name, "--dtype is 'fp32' or 'bf16'", &i, error));
        o->dtype = (int)dtypes[i];
    }
    if (setup->step != NULL && strcmp(setup->step, "last") == 0) {
        setup->step = steps[count - 1].name; /* the one that training runs */
    }
    return STATUS_OK;
}

/* The contract's limits, and for attention the bench's. Whether the GPU has memory for rows and
   parameters is checked later. */
static bool is_possible(const struct ladder_shape *s) {
    const size_t *sizes = s->sizes;
    switch (s->op) {
    case BENCH_LAYERNORM:
        return sizes[0] <= TRAINING_MAX_ROWS && sizes[1] <= TRAINING_MAX_C;
    case BENCH_ATTENTION:
        return sizes[0] <= MOST_BATCH && sizes[1] <= MOST_HEADS && sizes[2] <= MOST_LENGTH &&
               sizes[3] <= TRAINING_MAX_HS && sizes[3] % 8 == 0;
    default:
        return sizes[0] <= MOST_PARAMETERS;
    }
}

/* The same in words. */
static void say_possible(int op, char *text, size_t size) {
    switch (op) {
    case BENCH_LAYERNORM:
        snprintf(text, size, "ROWS up to %zu, C up to %zu", TRAINING_MAX_ROWS, TRAINING_MAX_C);
        break;
    case BENCH_ATTENTION:
        snprintf(text, size, "B up to %d, NH up to %d, T up to %d, HS a multiple of 8 up to %zu",
                 MOST_BATCH, MOST_HEADS, MOST_LENGTH, TRAINING_MAX_HS);
        break;
    default:
        snprintf(text, size, "up to %zu", MOST_PARAMETERS);
    }
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    const struct training_options *o = setup->options;
    char limits[120];
    if (o->op < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape wants --op");
    }
    shape->op = o->op;
    const struct bench_function *function = function_of(shape);
    if (ladder_parse_sizes(setup->shape_text, function->example, shape, NULL) == STATUS_OK &&
        is_possible(shape)) {
        return STATUS_OK;
    }
    say_possible(shape->op, limits, sizeof limits);
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--shape of --op %s is %s, numbers from 1 on, %s; not '%s'", function->flag,
                     function->example, limits, setup->shape_text);
}

/* ---- Tables ---- */

/* Is there memory for a table, and on simt the time? */
static enum status check_table(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    const struct bench_function *function = function_of(shape);
    double bytes = function->memory(shape), flops = function->flops(shape);
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

/* Default shapes are left out table by table, because their types need different memory. */
static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    const struct training_options *o = setup->options;
    struct ladder_shape table = *shape;
    table.dtype = o->dtype == NN_BF16 ? NN_BF16 : NN_F32;
    return setup->shape_text != NULL ? check_table(setup, &table, error) : STATUS_OK;
}

static bool choose_table(const struct ladder_setup *setup, struct ladder_shape *shape, size_t i) {
    const struct training_options *o = setup->options;
    shape->dtype = (int)dtypes[i];
    return (o->op < 0 || o->op == shape->op) && (o->dtype < 0 || o->dtype == shape->dtype) &&
           check_table(setup, shape, NULL) == STATUS_OK;
}

/* With --shape, --op, --dtype or --step only the ladder is run, unless --model is asked for. */
static enum ladder_scope scope_of(const struct ladder_setup *setup) {
    const struct training_options *o = setup->options;
    bool whole = o->op < 0 && o->dtype < 0 && setup->step == NULL;
    return o->model ? LADDER_PARTS_ALONE : whole ? LADDER_AND_PARTS : LADDER_ALONE;
}

LADDER_STEP_NAME(training_ladder)

/* Steps that have a new function. */
static bool has_step(const struct ladder_shape *shape, size_t i) {
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    return i == 0 || function_of(shape)->differ(&steps[i].functions, &steps[i - 1].functions);
}

static double flops_of(const struct ladder_shape *shape) {
    return function_of(shape)->flops(shape);
}

static double bytes_of(const struct ladder_shape *shape) {
    return function_of(shape)->bytes(shape);
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text) {
    text->op = function_of(shape)->name;
    text->dtype = nn_dtype_name((enum nn_dtype)shape->dtype);
    function_of(shape)->describe(shape, text->shape, sizeof text->shape);
    snprintf(text->title, sizeof text->title, "%s %s, %s, %s", text->op, text->dtype, text->shape,
             device_bench_verb(&setup->gpu));
}

static const char *conditions(const struct ladder_setup *setup, char *text, size_t size) {
    snprintf(text, size, "\nroofs, %s: %.0f GB/s, %.1f TFLOP/s fp32%s",
             setup->roofs.modelled ? "from clocks and widths" : "measured",
             1e-9 * setup->roofs.bytes_per_s, 1e-12 * setup->roofs.flops_per_s,
             setup->gpu.modelled ? "" : "; L2 is flushed before each run");
    return text;
}

/* The roofs are those of fp32 and of memory; products in bf16 have another roof. */
#define COLUMNS(figure, unit, roofline)                                     \
    {                                                                       \
        {LADDER_MS, 9, "ms"}, {figure, 9, unit}, {roofline, 9, "roofline"}, \
            {LADDER_STEP_UP, 9, "step up"}, {LADDER_IN_ALL, 9, "in all"},   \
    }
static const struct ladder_column by_bytes[] = COLUMNS(LADDER_GB_PER_S, "GB/s", LADDER_ROOFLINE);
static const struct ladder_column by_flops[] =
    COLUMNS(LADDER_TFLOP_PER_S, "TFLOP/s", LADDER_ROOFLINE);
static const struct ladder_column by_bf16_flops[] =
    COLUMNS(LADDER_TFLOP_PER_S, "TFLOP/s", LADDER_NONE);

static const struct ladder_column *columns_of(const struct ladder_shape *shape) {
    return !function_of(shape)->counts_flops ? by_bytes
           : shape->dtype == NN_F32          ? by_flops
                                             : by_bf16_flops;
}

/* ---- Problems ---- */

static enum status create_problem(void *problem, const struct ladder_setup *setup,
                                  const struct ladder_shape *shape, struct error *error) {
    (void)setup;
    ((struct bench_problem *)problem)->function = function_of(shape);
    return function_of(shape)->create(problem, shape, error);
}

static void free_problem(void *problem) {
    ((struct bench_problem *)problem)->function->free(problem);
}

static const struct training_functions *functions_of(size_t step) {
    size_t count;
    return &training_ladder(&count)[step].functions;
}

static enum status run(void *problem, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    struct bench_problem *p = problem;
    return p->function->run(p, functions_of(step), rows, stream, error);
}

static enum status check(void *problem, size_t step, char *wrong, size_t size,
                         struct error *error) {
    struct bench_problem *p = problem;
    return p->function->check(p, functions_of(step), wrong, size, error);
}

/* ---- The bench ---- */

static const struct ladder_bench bench = {
    .lab = "11_training",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 11 with each other, alone and in training BERT",
    .epilogue = "Without --op, --dtype and --step: the ladder on BERT-base's shapes (on simt: "
                "small ones), and training steps.\nWith --model, --batch-size, --max-length "
                "or --kernels: training steps alone, of BERT-base; on simt\nof a tiny BERT, "
                "with 2 texts of 24 tokens unless said otherwise.",
    .check_options = check_options,
    .scope = scope_of,
    .shapes = {LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(simt_shapes),
               LADDER_SHAPES(simt_quick_shapes)},
    .parse_shape = parse_shape,
    .check_shape = check_shape,
    .tables = COUNT(dtypes),
    .table = choose_table,
    .step = step_name,
    .has_step = has_step,
    .problem = LADDER_PROBLEM(struct bench_problem, create_problem, free_problem, run, check),
    .seconds = 0.1,
    .quick_seconds = 0.02,
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 20,
    .columns_count = COUNT(by_bytes),
    .columns_of = columns_of,
    .needs_roofs = true,
    .conditions = conditions,
    LADDER_PARTS(bench_model),
};

int main(int argc, char **argv) {
    struct training_options o = {.op = -1, .dtype = -1};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        {"op", 'o', FLAG_STRING, &o.op_text, "NAME", "'layernorm', 'attention' or 'adamw'"},
        {"shape", 's', FLAG_STRING, &setup.shape_text, "SIZES",
         "of --op: ROWS,C, or B,NH,T,HS, or PARAMETERS"},
        {"dtype", 'd', FLAG_STRING, &o.dtype_text, "TYPE", "only 'fp32' or 'bf16'"},
        {"step", 0, FLAG_STRING, &setup.step, "NAME", "only this step of the ladder, or 'last'"},
        {"model", 'm', FLAG_SWITCH, &o.model, NULL, "only training steps"},
        {"batch-size", 'b', FLAG_INT, &o.batch, "N", "training steps of N texts; 0: 16"},
        {"max-length", 'l', FLAG_INT, &o.length, "N",
         "training steps of texts of N tokens; 0: 128 and 512"},
        {"kernels", 'k', FLAG_INT, &o.kernels, "N",
         "the N kernels that take longest in a training step of the last row"},
        {"launches", 0, FLAG_STRING, &o.launches, "FILE",
         "with --kernels: also each of its launches, as CSV, in FILE"},
        LADDER_FLAG_ALL(&setup),
        {"quick", 'q', FLAG_SWITCH, &setup.quick, NULL, "smaller shapes, shorter runs"},
    };
    return ladder_bench_main(&bench, flags, COUNT(flags), &setup, argc, argv);
}

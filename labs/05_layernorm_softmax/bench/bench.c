/**
 * @file bench.c
 * @brief Lab 05's bench: the steps of the ladder beside a copy, and the models' speed with them.
 *
 * Built once for the learner's ladder and once for the solution's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/bench/ladder/ladder_bench.h"
#include "labs/05_layernorm_softmax/bench/bench_internal.h"
#include "labs/05_layernorm_softmax/given/engine.h"
#include "labs/05_layernorm_softmax/problem/oracle.h"

/* Activations of models, then batches from BERT's width to a vocabulary. */
static const struct ladder_shape gpu_shapes[] = {
    {.sizes = {256, 2560}, .name = "[2, 128, 2560]"},
    {.sizes = {1, 2560}, .name = "[1, 1, 2560]"},
    {.sizes = {1024, 2560}, .name = "[4, 256, 2560]"},
    {.sizes = {2048, 2560}, .name = "[1, 2048, 2560]"},
    LADDER_SHAPE(8192, 768),
    LADDER_SHAPE(32768, 1024),
    LADDER_SHAPE(16384, 4096),
    LADDER_SHAPE(8192, 16384),
    LADDER_SHAPE(4096, 50257),
};
static const struct ladder_shape gpu_quick_shapes[] = {
    {.sizes = {2048, 2560}, .name = "[1, 2048, 2560]"}, LADDER_SHAPE(8192, 768)};
static const struct ladder_shape simt_shapes[] = {{.sizes = {1, 2560}, .name = "[1, 1, 2560]"},
                                                  {.sizes = {256, 2560}, .name = "[2, 128, 2560]"},
                                                  LADDER_SHAPE(2048, 768),
                                                  LADDER_SHAPE(1024, 33)};
static const struct ladder_shape simt_quick_shapes[] = {LADDER_SHAPE(256, 768)};

/* The tables of each shape without --op and --dtype. */
static const struct {
    enum rows_op op;
    enum nn_dtype type;
} default_tables[] = {{ROWS_LAYERNORM, NN_F32},
                      {ROWS_LAYERNORM, NN_BF16},
                      {ROWS_RMSNORM, NN_F32},
                      {ROWS_SOFTMAX, NN_F32},
                      {ROWS_SOFTMAX, NN_BF16}};

/* What simt does in about a minute a step. */
#define SIMT_ELEMENTS ((size_t)1 << 27)

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The lab's own flags. */
struct options {
    const char *op_text, *type_text;
    int op, type; /* of enum rows_op and nn_dtype; -1: the default tables */
    bool stability;
};

/* ---- The problem ---- */

/*
 * Device operands, and host copies of the few rows that are different: the
 * device's input is those rows over and over, because gigabytes of different
 * rows take the host minutes.
 */
struct trial {
    size_t rows;
    struct rows_data data;                      /* of the first rows */
    void *in, *out, *weight, *bias, *workspace; /* device */
    unsigned char *bytes;                       /* host, one row */
    double *want;                               /* (C) */
    float *got;                                 /* (C) */
};

/* Different rows, at most; and rows that are checked. */
enum { MOST_DIFFERENT = 64, CHECKED = 16 };

static size_t row_bytes(const struct trial *t) {
    return t->data.C * nn_dtype_bytes(t->data.type);
}

/* Copies the different rows again and again, each time twice as many. */
static enum status repeat_rows(const struct trial *t, struct error *error) {
    const size_t bytes = row_bytes(t);
    for (size_t done = t->data.rows; done < t->rows;) {
        size_t more = done < t->rows - done ? done : t->rows - done;
        TRY(device_copy((char *)t->in + done * bytes, t->in, more * bytes, NULL, error));
        done += more;
    }
    return STATUS_OK;
}

/* Encodes on the host and copies to the device. */
static enum status write_values(const struct trial *t, void *d, const float *values, size_t count,
                                struct error *error) {
    size_t size = nn_dtype_bytes(t->data.type);
    void *bytes = malloc(count * size);
    if (bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    nn_dtype_store(bytes, values, count, t->data.type);
    enum status status = device_write(d, bytes, count * size, NULL, error);
    free(bytes);
    return status;
}

static enum status upload(struct trial *t, struct error *error) {
    const size_t C = t->data.C, row = row_bytes(t);
    const size_t bytes[] = {t->rows * row, t->rows * row, row, row, ROWS_WORKSPACE_BYTES};
    void **memory[] = {&t->in, &t->out, &t->weight, &t->bias, &t->workspace};
    for (int i = 0; i < 5; i++) {
        TRY(device_alloc(memory[i], bytes[i], error));
    }
    TRY(write_values(t, t->in, t->data.in, t->data.rows * C, error));
    TRY(write_values(t, t->weight, t->data.weight, C, error));
    TRY(write_values(t, t->bias, t->data.bias, C, error));
    return repeat_rows(t, error);
}

static enum status create(void *trial, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    (void)setup;
    struct trial *t = trial;
    struct rng rng = rng_create(1);
    const size_t rows = shape->sizes[0], C = shape->sizes[1];
    t->rows = rows;
    TRY(rows_data_create(&t->data, (enum rows_op)shape->op, (enum nn_dtype)shape->dtype,
                         rows < MOST_DIFFERENT ? rows : MOST_DIFFERENT, C,
                         (struct rows_flavour){.mean = 0.0f}, &rng, error));
    t->bytes = malloc(C * sizeof(float));
    t->want = malloc(C * sizeof *t->want);
    t->got = malloc(C * sizeof *t->got);
    if (t->bytes == NULL || t->want == NULL || t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    return upload(t, error);
}

static void free_trial(void *trial) {
    struct trial *t = trial;
    device_free(t->in);
    device_free(t->out);
    device_free(t->weight);
    device_free(t->bias);
    device_free(t->workspace);
    rows_data_free(&t->data);
    free(t->bytes);
    free(t->want);
    free(t->got);
}

static enum status run(void *trial, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    size_t count;
    const struct trial *t = trial;
    const struct rows_problem problem = {.op = t->data.op,
                                         .type = t->data.type,
                                         .rows = rows,
                                         .C = t->data.C,
                                         .in = t->in,
                                         .out = t->out,
                                         .weight = t->weight,
                                         .bias = t->bias,
                                         .eps = t->data.eps};
    rows_name_tensors(&problem);
    return layernorm_softmax_ladder(&count)[step].run(&problem, t->workspace, stream, error);
}

static enum status run_copy(void *trial, device_stream stream, struct error *error) {
    const struct trial *t = trial;
    return device_copy(t->out, t->in, t->rows * row_bytes(t), stream, error);
}

/* Reads and compares one row of the output. */
static enum status check_row(const struct trial *t, size_t row, char *wrong, size_t size,
                             struct error *error) {
    const size_t same = row % t->data.rows, C = t->data.C;
    TRY(device_read(t->bytes, (const char *)t->out + row * row_bytes(t), row_bytes(t), NULL,
                    error));
    rows_expect(&t->data, same, t->want, t->got);
    nn_dtype_load(t->got, t->bytes, C, t->data.type);
    struct comparison result = compare_f32(t->got, t->want, C, rows_tolerance(&t->data, same));
    if (!result.pass) {
        char text[256];
        comparison_describe(&result, C, text, sizeof text);
        snprintf(wrong, size, "row %zu: %s", row, text);
    }
    return STATUS_OK;
}

static enum status check(void *trial, size_t step, char *wrong, size_t size, struct error *error) {
    const struct trial *t = trial;
    const size_t count = t->rows < CHECKED ? t->rows : CHECKED;
    wrong[0] = '\0';
    /* Bytes of ones are NaN in every type: an element that nobody writes is found. */
    TRY(device_set(t->out, 0xff, t->rows * row_bytes(t), NULL, error));
    TRY(run(trial, step, t->rows, NULL, error));
    /* The first row, the last one, and some between. */
    for (size_t i = 0; i < count && wrong[0] == '\0'; i++) {
        TRY(check_row(t, count < 2 ? 0 : (t->rows - 1) * i / (count - 1), wrong, size, error));
    }
    return STATUS_OK;
}

/* ---- The ladder ---- */

static const char *op_name(size_t i) {
    return i < ROWS_OPS ? rows_op_name((enum rows_op)i) : NULL;
}

static const char *type_name(size_t i) {
    return i < ROWS_TYPES ? nn_dtype_name((enum nn_dtype)i) : NULL;
}

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct options *o = setup->options;
    if (o->op_text != NULL) {
        TRY(ladder_parse_name(o->op_text, op_name, "--op is 'layernorm', 'rmsnorm' or 'softmax'",
                              &o->op, error));
    }
    if (o->type_text != NULL) {
        TRY(ladder_parse_name(o->type_text, type_name, "--dtype is 'fp32', 'fp16' or 'bf16'",
                              &o->type, error));
    }
    return STATUS_OK;
}

static bool run_stability(const struct ladder_setup *setup) {
    const struct options *o = setup->options;
    if (o->stability) {
        bench_stability();
    }
    return o->stability;
}

/* With --shape, --op, --dtype or --step only the ladder is run. */
static enum ladder_scope scope_of(const struct ladder_setup *setup) {
    const struct options *o = setup->options;
    bool whole = setup->shape_text == NULL && setup->step == NULL && o->op < 0 && o->type < 0;
    return whole ? LADDER_AND_PARTS : LADDER_ALONE;
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    TRY(ladder_parse_sizes(setup->shape_text, "ROWS,C", shape, error));
    const size_t rows = shape->sizes[0], C = shape->sizes[1];
    if (C > ROWS_MAX_C || rows > ROWS_MAX_ELEMENTS / C) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %s: C is at most %zu, all elements together %zu",
                         setup->shape_text, ROWS_MAX_C, ROWS_MAX_ELEMENTS);
    }
    return STATUS_OK;
}

static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    const struct options *o = setup->options;
    const size_t rows = shape->sizes[0], C = shape->sizes[1];
    /* Below 2^44 bytes: elements are at most 2^40. */
    size_t bytes = (o->type > NN_F32 ? 2 : 4) * (2 * rows * C + 2 * C) + ROWS_WORKSPACE_BYTES;
    if (setup->gpu.modelled && rows * C > SIMT_ELEMENTS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %zu,%zu: %zu elements take simt very long; at most %zu here",
                         rows, C, rows * C, SIMT_ELEMENTS);
    }
    return ladder_check_memory(setup, shape, 2, bytes, error);
}

/* Operators and types in turn; without flags those of the default tables. */
static bool choose_table(const struct ladder_setup *setup, struct ladder_shape *shape, size_t i) {
    const struct options *o = setup->options;
    bool listed = o->type >= 0; /* --dtype shows that type of every operator */
    shape->op = (int)(i / ROWS_TYPES);
    shape->dtype = (int)(i % ROWS_TYPES);
    for (size_t k = 0; k < COUNT(default_tables); k++) {
        listed = listed || ((int)default_tables[k].op == shape->op &&
                            (int)default_tables[k].type == shape->dtype);
    }
    return listed && (o->op < 0 || o->op == shape->op) && (o->type < 0 || o->type == shape->dtype);
}

LADDER_STEP_NAME(layernorm_softmax_ladder)

/* Bytes of the rows, read once and written once: no kernel can move less. */
static double bytes_of(const struct ladder_shape *s) {
    return 2.0 * (double)s->sizes[0] * (double)s->sizes[1] *
           (double)nn_dtype_bytes((enum nn_dtype)s->dtype);
}

/* Operations, about: 7 an element for LayerNorm, 4 for RMSNorm, 5 for softmax. */
static double flops_of(const struct ladder_shape *s) {
    static const double each[] = {7.0, 4.0, 5.0};
    return each[s->op] * (double)s->sizes[0] * (double)s->sizes[1];
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *s,
                     struct ladder_text *text) {
    text->op = op_name((size_t)s->op);
    text->dtype = type_name((size_t)s->dtype);
    snprintf(text->plot_title, sizeof text->plot_title, "%s %s, %zu rows of %zu", text->op,
             text->dtype, s->sizes[0], s->sizes[1]);
    snprintf(text->title, sizeof text->title, "%s%s%s, %s", text->plot_title,
             s->name != NULL ? ", " : "", s->name != NULL ? s->name : "",
             device_bench_verb(&setup->gpu));
    snprintf(text->shape, sizeof text->shape, "%zux%zu", s->sizes[0], s->sizes[1]);
}

static const char *conditions(const struct ladder_setup *setup, char *text, size_t size) {
    snprintf(text, size,
             "\nroof, %s: %.0f GB/s; yardstick: a device-to-device copy of the same rows%s",
             setup->roofs.modelled ? "from clocks and widths" : "measured",
             1e-9 * setup->roofs.bytes_per_s,
             setup->gpu.modelled ? "" : "; L2 is flushed before each run");
    return text;
}

static const struct ladder_column columns[] = {
    {LADDER_MS, 9, "ms"},
    {LADDER_GB_PER_S, 9, "GB/s"},
    {LADDER_SPEED_OF_PEER, 9, "of copy"},
    {LADDER_ROOFLINE, 9, "roofline"},
    {LADDER_STEP_UP, 9, "step up"},
    {LADDER_IN_ALL, 9, "in all"},
};

static const struct ladder_bench bench = {
    .lab = "05_layernorm_softmax",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 05 with each other, with a copy and in the models",
    .epilogue = "Without --shape, --op, --dtype and --step: the ladder on a list of shapes (on "
                "simt: small ones), then BERT and Llama2.",
    .check_options = check_options,
    .instead = run_stability,
    .scope = scope_of,
    .shapes = {LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(gpu_quick_shapes),
               LADDER_SHAPES(simt_shapes), LADDER_SHAPES(simt_quick_shapes)},
    .parse_shape = parse_shape,
    .check_shape = check_shape,
    .tables = ROWS_OPS * ROWS_TYPES,
    .table = choose_table,
    .step = step_name,
    .problem = LADDER_PROBLEM(struct trial, create, free_trial, run, check),
    .peer = {.run = run_copy,
             .order = LADDER_PEER_BEFORE_STEPS,
             .name = "device-to-device copy",
             .row = "(copy)"},
    .seconds = 0.1,
    .quick_seconds = 0.02,
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 20,
    LADDER_COLUMNS(columns),
    .needs_roofs = true,
    .conditions = conditions,
    LADDER_PARTS(bench_models),
};

int main(int argc, char **argv) {
    struct options o = {.op = -1, .type = -1};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        LADDER_FLAG_SHAPE(&setup, "ROWS,C"),
        {"op", 'o', FLAG_STRING, &o.op_text, "OP", "only 'layernorm', 'rmsnorm' or 'softmax'"},
        {"dtype", 'd', FLAG_STRING, &o.type_text, "TYPE", "only 'fp32', 'fp16' or 'bf16'"},
        LADDER_FLAG_STEP(&setup),
        LADDER_FLAG_PLOT(&setup),
        {"stability", 0, FLAG_SWITCH, &o.stability, NULL,
         "only compare three ways to a variance; needs no GPU"},
        LADDER_FLAG_ALL(&setup),
        LADDER_FLAG_QUICK(&setup),
    };
    return ladder_bench_main(&bench, flags, COUNT(flags), &setup, argc, argv);
}

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

#include "common/base/flags.h"
#include "common/bench/bench_program.h"
#include "common/bench/device_bench.h"
#include "common/bench/device_peaks.h"
#include "labs/11_training/bench_parts.h"

/* The command line before its texts are read. */
struct options {
    const char *shape_text, *op_text, *dtype_text;
    struct bench_shape shape;
    struct bench_setup setup;
};

static enum status parse_op(const char *text, int *op, struct error *error) {
    for (*op = 0; *op < BENCH_OPS; ++*op) {
        if (strcmp(text, bench_function_of((enum bench_op) * op)->flag) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--op is 'layernorm', 'attention' or 'adamw', not '%s'", text);
}

static enum status parse_dtype(const char *text, int *dtype, struct error *error) {
    static const enum nn_dtype dtypes[] = {NN_F32, NN_BF16};
    for (int i = 0; i < 2; i++) {
        *dtype = (int)dtypes[i];
        if (strcmp(text, nn_dtype_name(dtypes[i])) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--dtype is 'fp32' or 'bf16', not '%s'", text);
}

/* What the contract takes: rows and parameters that memory holds are looked at later. */
static bool is_possible(const struct bench_shape *s) {
    const size_t *sizes = s->sizes;
    switch (s->op) {
    case BENCH_LAYERNORM:
        return sizes[0] <= TRAINING_MAX_ROWS && sizes[1] <= TRAINING_MAX_C;
    case BENCH_ATTENTION:
        return sizes[0] <= 1 << 12 && sizes[1] <= 1 << 10 && sizes[2] <= 1 << 12 &&
               sizes[3] <= TRAINING_MAX_HS && sizes[3] % 8 == 0;
    default:
        return sizes[0] <= (size_t)1 << 40;
    }
}

static enum status parse_shape(struct options *o, struct error *error) {
    if (o->setup.op < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape wants --op");
    }
    o->shape.op = (enum bench_op)o->setup.op;
    const struct bench_function *function = bench_function_of(o->shape.op);
    size_t *const sizes[] = {&o->shape.sizes[0], &o->shape.sizes[1], &o->shape.sizes[2],
                             &o->shape.sizes[3]};
    if (!bench_parse_sizes(o->shape_text, sizes, function->sizes) || !is_possible(&o->shape)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape of --op %s is %s, numbers from 1 on that training.h allows, not "
                         "'%s'",
                         function->flag, function->example, o->shape_text);
    }
    o->setup.shape = &o->shape;
    return STATUS_OK;
}

/* What the flags say beyond their types. */
static enum status check(void *options, struct error *error) {
    struct options *o = options;
    if (o->op_text != NULL) {
        TRY(parse_op(o->op_text, &o->setup.op, error));
    }
    if (o->dtype_text != NULL) {
        TRY(parse_dtype(o->dtype_text, &o->setup.dtype, error));
    }
    if (o->shape_text != NULL) {
        TRY(parse_shape(o, error));
    }
    return o->setup.step != NULL ? bench_check_step(o->setup.step, error) : STATUS_OK;
}

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    if (setup->shape != NULL) {
        enum nn_dtype dtype = setup->dtype == (int)NN_BF16 ? NN_BF16 : NN_F32;
        TRY(bench_check_shape(setup, setup->shape, dtype, error));
    }
    return device_peaks(&setup->roofs, error);
}

/* With --shape, --op, --dtype or --step only the ladder is run. */
static bool is_whole(const struct bench_setup *setup) {
    return setup->op < 0 && setup->dtype < 0 && setup->step == NULL;
}

static enum status run(void *options, struct error *error) {
    char text[400];
    struct bench_setup *setup = &((struct options *)options)->setup;
    TRY(open_gpu(setup, error));
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text));
    printf("roofs, %s: %.0f GB/s, %.1f TFLOP/s fp32%s\n",
           setup->roofs.modelled ? "from clocks and widths" : "measured",
           1e-9 * setup->roofs.bytes_per_s, 1e-12 * setup->roofs.flops_per_s,
           setup->gpu.modelled ? "" : "; L2 is flushed before each run");
    TRY(bench_ladder(setup, error));
    if (is_whole(setup)) {
        TRY(bench_model(setup, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.setup = {.op = -1, .dtype = -1}};
    const struct flag table[] = {
        {"op", 'o', FLAG_STRING, &o.op_text, "NAME", "'layernorm', 'attention' or 'adamw'"},
        {"shape", 's', FLAG_STRING, &o.shape_text, "SIZES",
         "of --op: ROWS,C, or B,NH,T,HS, or PARAMETERS"},
        {"dtype", 'd', FLAG_STRING, &o.dtype_text, "TYPE", "only 'fp32' or 'bf16'"},
        {"step", 0, FLAG_STRING, &o.setup.step, "NAME", "only this step of the ladder"},
        {"all", 'a', FLAG_SWITCH, &o.setup.all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &o.setup.quick, NULL, "smaller shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 11 with each other, alone and in training BERT",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "Without --op, --dtype and --step: the ladder on BERT-base's shapes (on simt: "
                    "small ones), and training steps.",
    };
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}

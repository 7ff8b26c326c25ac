/**
 * @file bench.c
 * @brief Lab 05's bench: the steps of the ladder beside a copy, and what they do for the models.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against the double oracle before it is timed. Each row is appended
 * to results/bench.jsonl.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_peaks.h"
#include "labs/05_layernorm_softmax/bench/parts.h"
#include "labs/05_layernorm_softmax/problem/oracle.h"

/* The command line before its texts are read. */
struct options {
    const char *shape_text, *op_text, *type_text;
    bool stability;
    struct bench_shape shape;
    struct bench_setup setup;
};

static enum status parse_op(const char *text, int *op, struct error *error) {
    for (*op = 0; *op < ROWS_OPS; ++*op) {
        if (strcmp(text, rows_op_name((enum rows_op) * op)) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--op is 'layernorm', 'rmsnorm' or 'softmax', not '%s'", text);
}

static enum status parse_type(const char *text, int *type, struct error *error) {
    for (*type = 0; *type < ROWS_TYPES; ++*type) {
        if (strcmp(text, nn_dtype_name((enum nn_dtype) * type)) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--dtype is 'fp32', 'fp16' or 'bf16', not '%s'", text);
}

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    enum status status = device_open(error);
    if (status == STATUS_OK) {
        status = device_properties(&setup->gpu, error);
    }
    if (status == STATUS_OK && setup->shape != NULL) {
        status = bench_check_shape(setup, setup->shape, error);
    }
    return status == STATUS_OK ? device_peaks(&setup->roofs, error) : status;
}

static void print_conditions(const struct bench_setup *setup) {
    char text[400];
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text));
    printf("roof, %s: %.0f GB/s; yardstick: a device-to-device copy of the same rows%s\n",
           setup->roofs.modelled ? "from clocks and widths" : "measured",
           1e-9 * setup->roofs.bytes_per_s,
           setup->gpu.modelled ? "" : "; L2 is flushed before each run");
}

/* With --shape, --op, --dtype or --step only the ladder is run. */
static bool is_whole(const struct bench_setup *setup) {
    return setup->shape == NULL && setup->op < 0 && setup->type < 0 && setup->step == NULL;
}

static enum status run(void *options, struct error *error) {
    struct options *o = options;
    if (o->stability) {
        bench_stability();
        return STATUS_OK;
    }
    TRY(open_gpu(&o->setup, error));
    print_conditions(&o->setup);
    TRY(bench_ladder(&o->setup, error));
    if (is_whole(&o->setup)) {
        TRY(bench_model(&o->setup, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

/* What the flags say beyond their types. */
static enum status check(void *options, struct error *error) {
    struct options *o = options;
    if (o->op_text != NULL) {
        TRY(parse_op(o->op_text, &o->setup.op, error));
    }
    if (o->type_text != NULL) {
        TRY(parse_type(o->type_text, &o->setup.type, error));
    }
    if (o->shape_text != NULL) {
        o->setup.shape = &o->shape;
        TRY(bench_parse_shape(o->shape_text, &o->shape, error));
    }
    return o->setup.step != NULL ? bench_check_step(o->setup.step, error) : STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.setup = {.op = -1, .type = -1}};
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o.shape_text, "ROWS,C", "only the ladder, on this shape"},
        {"op", 'o', FLAG_STRING, &o.op_text, "OP", "only 'layernorm', 'rmsnorm' or 'softmax'"},
        {"dtype", 'd', FLAG_STRING, &o.type_text, "TYPE", "only 'fp32', 'fp16' or 'bf16'"},
        {"step", 0, FLAG_STRING, &o.setup.step, "NAME", "only this step of the ladder"},
        {"plot", 'p', FLAG_STRING, &o.setup.plot, "FILE", "write the last shape's roofline as SVG"},
        {"stability", 0, FLAG_SWITCH, &o.stability, NULL,
         "only compare three ways to a variance; needs no GPU"},
        {"all", 'a', FLAG_SWITCH, &o.setup.all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &o.setup.quick, NULL, "fewer shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 05 with each other, with a copy and in the models",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "Without --shape, --op, --dtype and --step: the ladder on a list of shapes (on "
                    "simt: small ones), then BERT and Llama2.",
    };
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}

/**
 * @file bench.c
 * @brief Lab 06's bench: each fusion beside single operators and the plain matmul, BERT, and fp16.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against sums in double precision before it is timed. Each row is
 * appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "labs/06_fused_epilogues/bench_parts.h"

const char *bench_verb(const struct bench_setup *setup) {
    return setup->gpu.modelled ? "modelled" : "measured";
}

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    return setup->shape != NULL ? bench_check_shape(setup, setup->shape, error) : STATUS_OK;
}

/* With --shape, --op or --step only the ladder is run. */
static enum status run(struct bench_setup *setup, struct error *error) {
    char text[1024];
    TRY(open_gpu(setup, error));
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text));
    TRY(bench_ladder(setup, error));
    if (setup->shape == NULL && setup->step == NULL && setup->op < 0) {
        TRY(bench_model(setup, error));
        TRY(bench_error(setup, error));
    }
    printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", text, sizeof text));
    return STATUS_OK;
}

/* What the flags say beyond their types. */
static enum status check_setup(struct bench_setup *setup, const struct arguments *arguments,
                               const char *shape_text, struct fused_shape *shape,
                               const char *op_text, struct error *error) {
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    if (op_text != NULL) {
        TRY(bench_parse_op(op_text, &setup->op, error));
    }
    if (shape_text != NULL) {
        setup->shape = shape;
        TRY(bench_parse_shape(shape_text, shape, error));
    }
    return setup->step != NULL ? bench_check_step(setup->step, error) : STATUS_OK;
}

/* Reads the command line into setup and *shape; *help: it was printed, nothing else is wanted. */
static enum status read_setup(int argc, char **argv, struct bench_setup *setup,
                              struct fused_shape *shape, bool *help, struct error *error) {
    const char *shape_text = NULL, *op_text = NULL;
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &shape_text, "M,N,K", "only the ladder, on this shape"},
        {"op", 'o', FLAG_STRING, &op_text, "NAME", "only this operation: linear, add_norm, ..."},
        {"step", 0, FLAG_STRING, &setup->step, "NAME", "only this step of the ladder"},
        {"all", 'a', FLAG_SWITCH, &setup->all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &setup->quick, NULL, "fewer shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 06 with each other, with the plain matmul, in BERT",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue =
            "Without --shape, --op and --step: every operation on BERT's shapes, then BERT, "
            "then errors in fp16.",
    };
    struct arguments arguments = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    enum status status = arguments.values != NULL
                             ? flags_parse(&flags, argc, argv, &arguments, error)
                             : STATUS_OUT_OF_MEMORY;
    *help = status == STATUS_OK && arguments.help;
    if (*help) {
        flags_help(&flags, stdout);
    } else if (status == STATUS_OK) {
        status = check_setup(setup, &arguments, shape_text, shape, op_text, error);
    }
    free(arguments.values);
    return status;
}

int main(int argc, char **argv) {
    struct bench_setup setup = {.op = -1};
    struct fused_shape shape;
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    /* Races are the tests' business; without that search simt is several times as fast. */
    setenv("SIMT_CHECK", "bounds", 0);
    enum status status = read_setup(argc, argv, &setup, &shape, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&setup, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}

/**
 * @file bench.c
 * @brief Lab 05's bench: the steps of the ladder beside a copy, and what they do for the models.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against the double oracle before it is timed. Each row is appended
 * to results/bench.jsonl.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/device_bench.h"
#include "common/bench/device_peaks.h"
#include "labs/05_layernorm_softmax/bench_parts.h"
#include "labs/05_layernorm_softmax/oracle.h"

const char *bench_verb(const struct bench_setup *setup) {
    return setup->gpu.modelled ? "modelled" : "measured";
}

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

static enum status run(struct bench_setup *setup, struct error *error) {
    char path[1024];
    enum status status = open_gpu(setup, error);
    if (status == STATUS_OK) {
        print_conditions(setup);
        status = bench_ladder(setup, error);
    }
    if (status == STATUS_OK && is_whole(setup)) {
        status = bench_model(setup, error);
    }
    if (status == STATUS_OK) {
        printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", path, sizeof path));
    }
    return status;
}

/* What the flags say beyond their types. */
struct texts {
    const char *shape, *op, *type;
};

static enum status check_setup(struct bench_setup *setup, const struct arguments *arguments,
                               const struct texts *texts, struct bench_shape *shape,
                               struct error *error) {
    enum status status = STATUS_OK;
    setup->op = setup->type = -1;
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    if (texts->op != NULL) {
        status = parse_op(texts->op, &setup->op, error);
    }
    if (status == STATUS_OK && texts->type != NULL) {
        status = parse_type(texts->type, &setup->type, error);
    }
    if (status == STATUS_OK && texts->shape != NULL) {
        setup->shape = shape;
        status = bench_parse_shape(texts->shape, shape, error);
    }
    if (status == STATUS_OK && setup->step != NULL) {
        status = bench_check_step(setup->step, error);
    }
    return status;
}

/* Reads the command line into setup and *shape; *done: nothing else is wanted. */
static enum status read_setup(int argc, char **argv, struct bench_setup *setup,
                              struct bench_shape *shape, bool *done, struct error *error) {
    struct texts texts = {0};
    bool stability = false;
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &texts.shape, "ROWS,C", "only the ladder, on this shape"},
        {"op", 'o', FLAG_STRING, &texts.op, "OP", "only 'layernorm', 'rmsnorm' or 'softmax'"},
        {"dtype", 'd', FLAG_STRING, &texts.type, "TYPE", "only 'fp32', 'fp16' or 'bf16'"},
        {"step", 0, FLAG_STRING, &setup->step, "NAME", "only this step of the ladder"},
        {"plot", 'p', FLAG_STRING, &setup->plot, "FILE", "write the last shape's roofline as SVG"},
        {"stability", 0, FLAG_SWITCH, &stability, NULL,
         "only compare three ways to a variance; needs no GPU"},
        {"all", 'a', FLAG_SWITCH, &setup->all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &setup->quick, NULL, "fewer shapes, shorter runs"},
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
    struct arguments arguments = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    enum status status = arguments.values != NULL
                             ? flags_parse(&flags, argc, argv, &arguments, error)
                             : STATUS_OUT_OF_MEMORY;
    *done = status == STATUS_OK && arguments.help;
    if (*done) {
        flags_help(&flags, stdout);
    } else if (status == STATUS_OK) {
        status = check_setup(setup, &arguments, &texts, shape, error);
    }
    if (status == STATUS_OK && stability && !*done) {
        bench_stability();
        *done = true;
    }
    free(arguments.values);
    return status;
}

int main(int argc, char **argv) {
    struct bench_setup setup = {0};
    struct bench_shape shape;
    struct error error = {0};
    bool done = false;
    file_enter_working_directory();
    /* Races are the parity test's business; without that search simt is several times as fast. */
    setenv("SIMT_CHECK", "bounds", 0);
    enum status status = read_setup(argc, argv, &setup, &shape, &done, &error);
    if (status == STATUS_OK && !done) {
        status = run(&setup, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}

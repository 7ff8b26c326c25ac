/**
 * @file bench.c
 * @brief Lab 04's bench: the steps of the ladder beside cuBLAS and the roofline, and BERT's speed.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against sums in double precision before it is timed. Each row is
 * appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/device_bench.h"
#include "common/bench/device_peaks.h"
#include "labs/04_sgemm/bench_parts.h"

const char *bench_verb(const struct bench_setup *setup) {
    return setup->gpu.modelled ? "modelled" : "measured";
}

static enum status parse_form(const char *text, enum sgemm_form *form, struct error *error) {
    if (strcmp(text, "plain") == 0) {
        *form = SGEMM_B_PLAIN;
    } else if (strcmp(text, "transposed") == 0) {
        *form = SGEMM_B_TRANSPOSED;
    } else {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--form is 'plain' or 'transposed', not '%s'", text);
    }
    return STATUS_OK;
}

/* Finds the GPU, its roofs, and cuBLAS where there is one. */
static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    enum status status = device_open(error);
    if (status == STATUS_OK) {
        status = device_properties(&setup->gpu, error);
    }
    if (status == STATUS_OK && setup->shape != NULL) {
        status = bench_check_shape(setup, setup->shape, error);
    }
    if (status == STATUS_OK) {
        status = device_peaks(&setup->roofs, error);
    }
    struct error absent = {0};
    if (status == STATUS_OK && cublas_open(&setup->cublas, &absent) == STATUS_OK) {
        cublas_name(setup->cublas, setup->peer, sizeof setup->peer);
    }
    return status;
}

static void print_conditions(const struct bench_setup *setup) {
    char text[400];
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text));
    printf("roofs, %s: %.1f TFLOP/s fp32, %.0f GB/s; yardstick: %s\n",
           setup->roofs.modelled ? "from clocks and widths" : "measured",
           1e-12 * setup->roofs.flops_per_s, 1e-9 * setup->roofs.bytes_per_s,
           setup->cublas != NULL ? setup->peer : "none (no cuBLAS here)");
}

/* With --shape or --step only the ladder is run. */
static enum status run(struct bench_setup *setup, struct error *error) {
    char path[1024];
    enum status status = open_gpu(setup, error);
    if (status == STATUS_OK) {
        print_conditions(setup);
        status = bench_ladder(setup, error);
    }
    if (status == STATUS_OK && setup->shape == NULL && setup->step == NULL) {
        status = bench_model(setup, error);
    }
    if (status == STATUS_OK) {
        printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", path, sizeof path));
    }
    cublas_close(setup->cublas);
    return status;
}

/* What the flags say beyond their types. */
static enum status check_setup(struct bench_setup *setup, const struct arguments *arguments,
                               const char *shape_text, struct bench_shape *shape,
                               const char *form_text, struct error *error) {
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    enum status status = parse_form(form_text, &setup->form, error);
    if (status == STATUS_OK && shape_text != NULL) {
        setup->shape = shape;
        status = bench_parse_shape(shape_text, shape, error);
    }
    if (status == STATUS_OK && setup->step != NULL) {
        status = bench_check_step(setup->step, error);
    }
    return status;
}

/* Reads the command line into setup and *shape; *help: it was printed, nothing else is wanted. */
static enum status read_setup(int argc, char **argv, struct bench_setup *setup,
                              struct bench_shape *shape, bool *help, struct error *error) {
    const char *shape_text = NULL, *form_text = "transposed";
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &shape_text, "M,N,K", "only the ladder, on this shape"},
        {"form", 'f', FLAG_STRING, &form_text, "FORM", "B: 'transposed', as weights, or 'plain'"},
        {"step", 0, FLAG_STRING, &setup->step, "NAME", "only this step of the ladder"},
        {"plot", 'p', FLAG_STRING, &setup->plot, "FILE", "write the last shape's roofline as SVG"},
        {"all", 'a', FLAG_SWITCH, &setup->all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &setup->quick, NULL, "fewer shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 04 with each other, with cuBLAS and in BERT",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "Without --shape and --step: the ladder on cubes and BERT's shapes (on simt: "
                    "small cubes), then BERT.",
    };
    struct arguments arguments = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    enum status status = arguments.values != NULL
                             ? flags_parse(&flags, argc, argv, &arguments, error)
                             : STATUS_OUT_OF_MEMORY;
    *help = status == STATUS_OK && arguments.help;
    if (*help) {
        flags_help(&flags, stdout);
    } else if (status == STATUS_OK) {
        status = check_setup(setup, &arguments, shape_text, shape, form_text, error);
    }
    free(arguments.values);
    return status;
}

int main(int argc, char **argv) {
    struct bench_setup setup = {0};
    struct bench_shape shape;
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    /* Races are the parity test's business; without that search simt is several times as fast. */
    setenv("SIMT_CHECK", "bounds", 0);
    enum status status = read_setup(argc, argv, &setup, &shape, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&setup, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}

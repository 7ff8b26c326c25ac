/**
 * @file bench.c
 * @brief Lab 04's bench: the steps of the ladder beside cuBLAS and the roofline, and BERT's speed.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against sums in double precision before it is timed. Each row is
 * appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_peaks.h"
#include "labs/04_sgemm/bench/parts.h"

/* The command line before its texts are read. */
struct options {
    const char *shape_text, *form_text;
    struct bench_shape shape;
    struct bench_setup setup;
};

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
static enum status measure(struct bench_setup *setup, struct error *error) {
    TRY(open_gpu(setup, error));
    print_conditions(setup);
    TRY(bench_ladder(setup, error));
    if (setup->shape == NULL && setup->step == NULL) {
        TRY(bench_model(setup, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

static enum status run(void *options, struct error *error) {
    struct bench_setup *setup = &((struct options *)options)->setup;
    enum status status = measure(setup, error);
    cublas_close(setup->cublas);
    return status;
}

/* What the flags say beyond their types. */
static enum status check(void *options, struct error *error) {
    struct options *o = options;
    TRY(parse_form(o->form_text, &o->setup.form, error));
    if (o->shape_text != NULL) {
        o->setup.shape = &o->shape;
        TRY(bench_parse_shape(o->shape_text, &o->shape, error));
    }
    return o->setup.step != NULL ? bench_check_step(o->setup.step, error) : STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.form_text = "transposed"};
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o.shape_text, "M,N,K", "only the ladder, on this shape"},
        {"form", 'f', FLAG_STRING, &o.form_text, "FORM", "B: 'transposed', as weights, or 'plain'"},
        {"step", 0, FLAG_STRING, &o.setup.step, "NAME", "only this step of the ladder"},
        {"plot", 'p', FLAG_STRING, &o.setup.plot, "FILE", "write the last shape's roofline as SVG"},
        {"all", 'a', FLAG_SWITCH, &o.setup.all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &o.setup.quick, NULL, "fewer shapes, shorter runs"},
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
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}

/**
 * @file bench.c
 * @brief Lab 06's bench: each fusion beside single operators and the plain matmul, BERT, and fp16.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against sums in double precision before it is timed. Each row is
 * appended to results/bench.jsonl.
 */
#include <stdio.h>

#include "common/base/flags.h"
#include "common/bench/bench_program.h"
#include "labs/06_fused_epilogues/bench/parts.h"

/* The command line before its texts are read. */
struct options {
    const char *shape_text, *op_text;
    struct fused_shape shape;
    struct bench_setup setup;
};

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    return setup->shape != NULL ? bench_check_shape(setup, setup->shape, error) : STATUS_OK;
}

/* With --shape, --op or --step only the ladder is run. */
static enum status run(void *options, struct error *error) {
    char text[400];
    struct bench_setup *setup = &((struct options *)options)->setup;
    TRY(open_gpu(setup, error));
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text));
    TRY(bench_ladder(setup, error));
    if (setup->shape == NULL && setup->step == NULL && setup->op < 0) {
        TRY(bench_model(setup, error));
        TRY(bench_error(setup, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

/* What the flags say beyond their types. */
static enum status check(void *options, struct error *error) {
    struct options *o = options;
    if (o->op_text != NULL) {
        TRY(bench_parse_op(o->op_text, &o->setup.op, error));
    }
    if (o->shape_text != NULL) {
        o->setup.shape = &o->shape;
        TRY(bench_parse_shape(o->shape_text, &o->shape, error));
    }
    return o->setup.step != NULL ? bench_check_step(o->setup.step, error) : STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.setup = {.op = -1}};
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o.shape_text, "M,N,K", "only the ladder, on this shape"},
        {"op", 'o', FLAG_STRING, &o.op_text, "NAME", "only this operation: linear, add_norm, ..."},
        {"step", 0, FLAG_STRING, &o.setup.step, "NAME", "only this step of the ladder"},
        {"all", 'a', FLAG_SWITCH, &o.setup.all, NULL, "also steps that take seconds a call"},
        {"quick", 'q', FLAG_SWITCH, &o.setup.quick, NULL, "fewer shapes, shorter runs"},
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
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}

/**
 * @file bench.c
 * @brief Lab 01's bench: the steps of the ladder beside OpenBLAS, and Llama2's decode speed.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against the double oracle before it is timed. Each measured row is
 * appended to results/bench.jsonl.
 */
#include <stdio.h>

#include "common/base/flags.h"
#include "common/bench/bench.h"
#include "common/bench/bench_program.h"
#include "common/bench/models/decode_model.h"
#include "common/bench/openblas.h"
#include "labs/01_cpu_matmul/bench/bench_internal.h"

static enum status check_setup(void *argument, struct error *error) {
    struct bench_setup *setup = argument;
    if (setup->shape_text != NULL) {
        TRY(bench_parse_shape(setup->shape_text, &setup->shape, error));
    }
    TRY(bench_program_check_threads(setup->threads, error));
    if (setup->steps < 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--steps %d: at least 1", setup->steps);
    }
    return setup->checkpoint != NULL ? decode_checkpoint_check(setup->checkpoint, error)
                                     : STATUS_OK;
}

/* Measures the machine's peaks, which the tables' percentages refer to, and prints them. */
static enum status print_conditions(struct bench_setup *setup, struct error *error) {
    char text[192];
    int cpus = bench_cpu_count();
    int probes = setup->threads < cpus ? setup->threads : cpus;
    TRY(cpu_peaks(probes, &setup->peaks, error));
    printf("%s: %s, %d of %d CPUs\n", WARPBOOK_SUBJECT, bench_cpu_name(text, sizeof text), probes,
           cpus);
    printf("measured peak: %.0f GFLOP/s fp32, %.1f GB/s from memory\n",
           1e-9 * setup->peaks.flops_per_s, 1e-9 * setup->peaks.bytes_per_s);
    if (openblas_note(text, sizeof text) != NULL) {
        printf("note: %s\n", text);
    }
    return STATUS_OK;
}

/* With --shape only the ladder is run, with --checkpoint only the decoders. */
static enum status run(void *argument, struct error *error) {
    struct bench_setup *setup = argument;
    const bool has_shape = setup->shape_text != NULL, has_checkpoint = setup->checkpoint != NULL;
    TRY(print_conditions(setup, error));
    if (has_shape || !has_checkpoint) {
        TRY(bench_ladder(setup, error));
    }
    if (has_checkpoint || !has_shape) {
        TRY(bench_decode(setup, error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct bench_setup setup = {.threads = bench_cpu_count(), .steps = 64};
    const struct flag table[] = {
        {"threads", 't', FLAG_INT, &setup.threads, "N", "most threads"},
        {"shape", 's', FLAG_STRING, &setup.shape_text, "M,N,K", "only the ladder, on this shape"},
        {"checkpoint", 'c', FLAG_STRING, &setup.checkpoint, "FILE",
         "only the decoders, on this llama2.c checkpoint"},
        {"steps", 'n', FLAG_INT, &setup.steps, "N", "tokens to decode"},
        {"quick", 'q', FLAG_SWITCH, &setup.quick, NULL, "fewer shapes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 01 with each other, with OpenBLAS and in Llama2",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "Without --shape and --checkpoint: the ladder on five shapes, then Llama2's "
                    "15M shape.",
    };
    const struct bench_program program = {.flags = &flags, .check = check_setup, .run = run};
    return bench_program_main(&program, argc, argv, &setup);
}

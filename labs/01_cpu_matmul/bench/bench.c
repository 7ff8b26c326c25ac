/**
 * @file bench.c
 * @brief Lab 01's bench: the steps of the ladder beside OpenBLAS, and Llama2's decode speed.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against the double oracle before it is timed. Each measured row is
 * appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/bench/openblas.h"
#include "labs/01_cpu_matmul/bench/parts.h"

static enum status check_setup(const struct bench_setup *setup, const struct arguments *arguments,
                               struct error *error) {
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    if (setup->threads < 1 || setup->threads > 1024) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: from 1 to 1024",
                         setup->threads);
    }
    if (setup->steps < 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--steps %d: at least 1", setup->steps);
    }
    return setup->checkpoint != NULL ? bench_check_checkpoint(setup->checkpoint, error) : STATUS_OK;
}

/* Measures the machine and prints what all that follows is a share of. */
static enum status print_conditions(struct bench_setup *setup) {
    char text[192];
    int cpus = bench_cpu_count();
    int probes = setup->threads < cpus ? setup->threads : cpus;
    enum status status = bench_measure_machine(probes, &setup->machine);
    if (status != STATUS_OK) {
        return status;
    }
    printf("%s: %s, %d of %d CPUs\n", WARPBOOK_SUBJECT, bench_cpu_name(text, sizeof text), probes,
           cpus);
    printf("measured peak: %.0f GFLOP/s fp32, %.1f GB/s from memory\n", setup->machine.gflop_per_s,
           setup->machine.gb_per_s);
    if (openblas_note(text, sizeof text) != NULL) {
        printf("note: %s\n", text);
    }
    return STATUS_OK;
}

/* With --shape only the ladder is run, with --checkpoint only the decoders. */
static enum status run(struct bench_setup *setup, struct error *error) {
    char path[1024];
    enum status status = print_conditions(setup);
    if (status != STATUS_OK) {
        return status;
    }
    enum status wrong = STATUS_OK;
    if (setup->checkpoint == NULL || setup->shape != NULL) {
        wrong = bench_ladder(setup, error);
    }
    if (wrong == STATUS_OK && (setup->shape == NULL || setup->checkpoint != NULL)) {
        status = bench_decode(setup, error);
    }
    if (wrong == STATUS_OK && status == STATUS_OK) {
        printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", path, sizeof path));
    }
    return wrong != STATUS_OK ? wrong : status;
}

/* Reads the command line into setup and *shape; *help: it was printed, nothing else is wanted. */
static enum status read_setup(int argc, char **argv, struct bench_setup *setup,
                              struct bench_shape *shape, bool *help, struct error *error) {
    const char *shape_text = NULL;
    const struct flag table[] = {
        {"threads", 't', FLAG_INT, &setup->threads, "N", "most threads"},
        {"shape", 's', FLAG_STRING, &shape_text, "M,N,K", "only the ladder, on this shape"},
        {"checkpoint", 'c', FLAG_STRING, &setup->checkpoint, "FILE",
         "only the decoders, on this llama2.c checkpoint"},
        {"steps", 'n', FLAG_INT, &setup->steps, "N", "tokens to decode"},
        {"quick", 'q', FLAG_SWITCH, &setup->quick, NULL, "fewer shapes, shorter runs"},
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
    struct arguments arguments = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    enum status status = arguments.values != NULL
                             ? flags_parse(&flags, argc, argv, &arguments, error)
                             : STATUS_OUT_OF_MEMORY;
    *help = status == STATUS_OK && arguments.help;
    if (*help) {
        flags_help(&flags, stdout);
    } else if (status == STATUS_OK && shape_text != NULL) {
        setup->shape = shape;
        status = bench_parse_shape(shape_text, shape, error);
    }
    if (status == STATUS_OK && !*help) {
        status = check_setup(setup, &arguments, error);
    }
    free(arguments.values);
    return status;
}

int main(int argc, char **argv) {
    struct bench_setup setup = {.threads = bench_cpu_count(), .steps = 64};
    struct bench_shape shape;
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    enum status status = read_setup(argc, argv, &setup, &shape, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&setup, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}

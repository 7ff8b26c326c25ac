/**
 * @file bench_program.h
 * @brief What every bench program does around its own measurements: command line, sizes, failures.
 */
#ifndef WARPBOOK_COMMON_BENCH_BENCH_PROGRAM_H_
#define WARPBOOK_COMMON_BENCH_BENCH_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/flags.h"
#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One part of a program. @param setup the program's own */
typedef enum status bench_part(void *setup, struct error *error);

/** A program that takes flags and no other arguments. */
struct bench_program {
    const struct flags *flags; /**< variables in it belong to the setup */
    bench_part *check;         /**< what the flags say beyond their types */
    bench_part *run;           /**< measures and prints */
};

/**
 * @brief All of a bench's main(): reads the flags, checks them, runs, reports a failure.
 *
 * With --help it prints that and does nothing else. Paths mean the folder that
 * `bazel run` was called in. On simt no races are looked for, unless SIMT_CHECK
 * asks for that: they are the tests' business, and without that search simt is
 * several times as fast.
 *
 * Every bench has one flag more than its table: `--xray FILE` asks simt, or on a GPU Nsight
 * Compute, for the page that common/simt/README.md describes.
 *
 * @param setup handed to the parts
 * @return the exit status: 0, or 1 after one line on standard error
 */
int bench_program_main(const struct bench_program *program, int argc, char **argv, void *setup);

/**
 * @brief Reads "64,48,32": numbers from 1 on with commas between, no signs, no spaces.
 * @param sizes (count) receive them; undefined where false is returned
 * @return whether @p text is that and nothing else
 */
bool bench_parse_sizes(const char *text, size_t *const *sizes, size_t count);

/** @return name of the ladder's step @p i, or NULL when there are no more. */
typedef const char *bench_step_name(size_t i);

/** @return STATUS_INVALID_ARGUMENT, naming what there is, when no step is called @p name. */
MUST_CHECK enum status bench_program_check_step(const char *name, bench_step_name *steps,
                                                struct error *error);

/** @return STATUS_INVALID_ARGUMENT unless @p threads, of --threads, is from 1 to 1024. */
MUST_CHECK enum status bench_program_check_threads(int threads, struct error *error);

/**
 * @brief Prints a space and a number of a table's row, or a dash for NAN.
 * @param format of the width and the number: "%*.3f"
 * @param unit   printed after the number, "" or "%"; after a dash as many spaces
 */
void bench_print_number(const char *format, int width, double value, const char *unit);

/** Prints, after an empty line, where the records are. */
void bench_print_recorded(void);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file bench_internal.h
 * @brief What the files of lab 01's bench share.
 */
#ifndef WARPBOOK_LABS_01_CPU_MATMUL_BENCH_BENCH_INTERNAL_H_
#define WARPBOOK_LABS_01_CPU_MATMUL_BENCH_BENCH_INTERNAL_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "common/bench/cpu_peaks.h"
#include "labs/01_cpu_matmul/problem/oracle.h"

/** The command line, and the machine. */
struct bench_setup {
    int threads;
    bool quick;
    const char *shape_text;    /**< --shape, or NULL: the default list */
    struct matmul_shape shape; /**< parsed from shape_text */
    const char *checkpoint;    /**< path, or NULL: random weights of the 15M shape */
    int steps;                 /**< tokens to decode */
    struct cpu_peaks peaks;    /**< of as many threads */
};

/**
 * @brief Reads "M,N,K".
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT for anything else, for a matrix of more than 1 GiB
 *         and for a product that takes a step more than about a minute
 */
MUST_CHECK enum status bench_parse_shape(const char *text, struct matmul_shape *shape,
                                         struct error *error);

/**
 * @brief Prints the table of all steps of the ladder, and appends their records.
 * @return STATUS_MISMATCH if a step gives a wrong result, after the table is complete
 */
MUST_CHECK enum status bench_ladder(const struct bench_setup *setup, struct error *error);

/** Prints decode speed and profiles, and appends their records. */
MUST_CHECK enum status bench_decode(const struct bench_setup *setup, struct error *error);

#endif

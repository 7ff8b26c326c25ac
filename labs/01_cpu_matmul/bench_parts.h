/**
 * @file bench_parts.h
 * @brief What the files of lab 01's bench share.
 */
#ifndef WARPBOOK_LABS_01_CPU_MATMUL_BENCH_PARTS_H_
#define WARPBOOK_LABS_01_CPU_MATMUL_BENCH_PARTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

/** What this machine can do, measured just before the benches. */
struct machine {
    double gflop_per_s; /**< fused multiply-adds on vectors, all threads together */
    double gb_per_s;    /**< reading memory, all threads together */
};

/** The command line, and the machine. */
struct bench_setup {
    int threads;
    bool quick;
    const char *shape;      /**< "M,N,K", or NULL: the default list */
    const char *checkpoint; /**< path, or NULL: random weights of the 15M shape */
    int steps;              /**< tokens to decode */
    struct machine machine;
};

/** Measures @p machine with @p threads threads at once. */
MUST_CHECK enum status measure_machine(int threads, struct machine *machine);

/**
 * @brief Prints the table of all steps of the ladder, and appends their records.
 * @return STATUS_MISMATCH when a step gives a wrong result, after the table is complete
 */
MUST_CHECK enum status bench_ladder(const struct bench_setup *setup, struct error *error);

/** Prints decode speed and profiles, and appends their records. */
MUST_CHECK enum status bench_decode(const struct bench_setup *setup, struct error *error);

#endif

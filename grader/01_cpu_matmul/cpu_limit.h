/**
 * @file cpu_limit.h
 * @brief What lab 01's work takes at least on this machine's CPUs, by probes beside the timed
 * calls.
 */
#ifndef WARPBOOK_GRADER_01_CPU_MATMUL_CPU_LIMIT_H_
#define WARPBOOK_GRADER_01_CPU_MATMUL_CPU_LIMIT_H_

#include "common/base/status.h"
#include "common/bench/cpu_peaks.h"

/** What one call has to do. */
struct cpu_work {
    double flops; /**< fp32 */
    double bytes; /**< least that must be read */
    int loops;    /**< parallel loops, one after the other, that it consists of */
};

/**
 * Probes, and the work that they are for. One uses all threads, one a single thread: beside much
 * other work, threads that wait for each other are slower than one alone.
 */
struct cpu_limit {
    struct cpu_probe *all, *single;
    struct cpu_work work;
};

/** Starts the probes, one of them on so many threads; a buffer has the size of the operands. */
MUST_CHECK enum status cpu_limit_create(struct cpu_limit *limit, int threads, struct cpu_work work,
                                        struct error *error);

/** Ends the probes; a zero-initialised limit is allowed. */
void cpu_limit_free(struct cpu_limit *limit);

/**
 * @brief Runs the probes @p times times, each run with as many FLOPs, bytes and loops as the work
 *        has.
 * @param ran_ms receives the same by the time that the probes were on a processor
 * @return least milliseconds of the work: the roofline of the fastest runs, of either probe
 */
double cpu_limit_ms(struct cpu_limit *limit, int times, double *ran_ms);

#endif

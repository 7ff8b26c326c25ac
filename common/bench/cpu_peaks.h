/**
 * @file cpu_peaks.h
 * @brief The peaks of this machine's CPUs, by probes short enough to repeat beside timed work.
 *
 * Two probes: fp32 multiply-adds in registers, with the widest vectors that this CPU and
 * CPU_CLONES allow, and reading memory. All threads work at once. The clock runs from waking the
 * threads to the end of the last one, as it does for a parallel loop, so other work on the machine
 * slows a probe as it slows the code beside it.
 */
#ifndef WARPBOOK_COMMON_BENCH_CPU_PEAKS_H_
#define WARPBOOK_COMMON_BENCH_CPU_PEAKS_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What all threads together reach at most. */
struct cpu_peaks {
    double flops_per_s; /**< fp32; a multiply-add counts as two */
    double bytes_per_s; /**< reading memory */
};

/** Threads, each on a CPU of its own, and a buffer to read. Only one thread may use it. */
struct cpu_probe;

/** What a probe is made for. */
struct cpu_probe_options {
    int threads;         /**< at least 1 */
    size_t buffer_bytes; /**< to read, shared by the threads; 0: no reading */
    size_t lanes;        /**< floats in a vector: 4, 8 or 16; 0: as many as the CPU has */
};

/**
 * @brief Starts the threads and fills the buffer: each thread writes the pages that it will read.
 * @param probe receives the probe; NULL on failure
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT, or STATUS_OUT_OF_MEMORY when there is not enough
 *         memory or a thread cannot be started
 */
MUST_CHECK enum status cpu_probe_create(struct cpu_probe **probe,
                                        const struct cpu_probe_options *options,
                                        struct error *error);

/** Ends the threads and frees; NULL is allowed. */
void cpu_probe_free(struct cpu_probe *probe);

/** @return FLOP/s of one run of at least @p flops fp32 operations, divided among the threads. */
double cpu_probe_arithmetic(struct cpu_probe *probe, double flops);

/**
 * @brief Reads about @p bytes, divided among the threads, from where the last run ended; behind the
 *        end of the buffer it goes on at the beginning.
 *
 * A buffer several times the size of the last-level cache gives the speed of memory. A small one
 * gives the speed at which a model of that size is read again and again, from wherever it lies.
 *
 * @param loops parallel loops that the reading is divided into, at least 1; after each of them the
 *              threads wait for each other, which other work on the machine delays
 * @return bytes/s; 0 without a buffer
 */
double cpu_probe_read(struct cpu_probe *probe, size_t bytes, int loops);

/**
 * @return how many times longer the last run took than the slowest of its threads was on a
 * processor for its own part: 1 on an idle machine, more where other work took the processors away
 */
double cpu_probe_stretch(const struct cpu_probe *probe);

/**
 * @brief Both peaks of @p threads threads, each the best of several runs of some milliseconds.
 *
 * Takes a few tenths of a second, and memory of at least 64 MiB a thread: four times the last-level
 * cache, but not more than an eighth of the machine's memory or 1 GiB.
 *
 * @return as cpu_probe_create()
 */
MUST_CHECK enum status cpu_peaks(int threads, struct cpu_peaks *peaks, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

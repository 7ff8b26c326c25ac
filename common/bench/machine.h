/**
 * @file machine.h
 * @brief What this machine's CPUs can do: every measured figure is a share of these two.
 */
#ifndef WARPBOOK_COMMON_BENCH_MACHINE_H_
#define WARPBOOK_COMMON_BENCH_MACHINE_H_

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bench_machine {
    double gflop_per_s; /**< fp32 fused multiply-adds on vectors, all threads together */
    double gb_per_s;    /**< reading memory, all threads together */
};

/**
 * @brief Measures with @p threads threads at once; takes 64 MiB a thread and some tenths of a
 *        second.
 * @param threads at least 1; more than the machine has CPUs adds nothing
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT, or STATUS_OUT_OF_MEMORY when memory or threads
 *         are not to be had
 */
MUST_CHECK enum status bench_measure_machine(int threads, struct bench_machine *machine);

#ifdef __cplusplus
}
#endif

#endif

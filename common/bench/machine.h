/**
 * @file machine.h
 * @brief The peaks of this machine's CPUs; measured figures are given as shares of them.
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
 * @brief Measures with @p threads threads at once; takes 64 MiB a thread and a few tenths of a
 *        second.
 * @param threads at least 1; more threads than CPUs do not raise the figures
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT, or STATUS_OUT_OF_MEMORY when there is not enough
 *         memory or a thread cannot be started
 */
MUST_CHECK enum status bench_measure_machine(int threads, struct bench_machine *machine);

#ifdef __cplusplus
}
#endif

#endif

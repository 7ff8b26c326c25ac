/**
 * @file calls.h
 * @brief The calls that the grader of lab 01 makes in its workers.
 */
#ifndef WARPBOOK_GRADER_01_CPU_MATMUL_CALLS_H_
#define WARPBOOK_GRADER_01_CPU_MATMUL_CALLS_H_

#include <stddef.h>

#include "common/bench/bench.h"

/**
 * @return threads of graded calls: two where there are so many CPUs. With more, starting them would
 *         be a part of the time that grows with the machine, and a matmul on one core would be
 *         worth less there; two show whether a matmul uses threads.
 */
static inline int graded_threads(void) {
    int cpus = bench_cpu_count();
    return cpus < 2 ? cpus : 2;
}

/** "matmul" */
struct matmul_call {
    float *out;               /**< arena, (M, N) */
    const float *in, *weight; /**< arena, (M, K) and (N, K) */
    size_t M, N, K;
    int threads;
};

#endif

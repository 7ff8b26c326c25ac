/**
 * @file cpu_probe_kernels.h
 * @brief The inner loops of cpu_peaks.c, for one thread.
 */
#ifndef WARPBOOK_COMMON_BENCH_CPU_PROBE_KERNELS_H_
#define WARPBOOK_COMMON_BENCH_CPU_PROBE_KERNELS_H_

#include <stddef.h>

enum {
    CPU_PROBE_READ_STEP = 512 /**< bytes that the reading loop handles at a time */
};

/** @return FLOPs of one round of cpu_probe_multiply_add() */
double cpu_probe_round_flops(size_t lanes);

/**
 * @brief Multiplies and adds in registers.
 * @param lanes 4, 8 or 16
 * @return a value that depends on all results, so that the compiler keeps them
 */
float cpu_probe_multiply_add(size_t lanes, size_t rounds);

/**
 * @brief Reads a buffer of floats, host, 64-byte aligned.
 * @param lanes 4, 8 or 16
 * @param bytes a multiple of CPU_PROBE_READ_STEP
 * @return a value that depends on everything that was read
 */
float cpu_probe_sum(size_t lanes, const float *buffer, size_t bytes);

#endif

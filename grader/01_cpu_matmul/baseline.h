/**
 * @file baseline.h
 * @brief What lab 01's starter does: the baseline of its speedup.
 */
#ifndef WARPBOOK_GRADER_01_CPU_MATMUL_BASELINE_H_
#define WARPBOOK_GRADER_01_CPU_MATMUL_BASELINE_H_

#include "labs/01_cpu_matmul/matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As cpu_matmul(): the naive triple loop, on one thread. */
cpu_matmul_function cpu_matmul_baseline;

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file baseline.h
 * @brief What lab 05's starter does: the baseline of its speedups.
 */
#ifndef WARPBOOK_GRADER_05_LAYERNORM_SOFTMAX_BASELINE_H_
#define WARPBOOK_GRADER_05_LAYERNORM_SOFTMAX_BASELINE_H_

#include "labs/05_layernorm_softmax/layernorm_softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As layernorm_softmax(), for sizes that the contract allows: a thread a row. */
rows_function rows_baseline;

#ifdef __cplusplus
}
#endif

#endif

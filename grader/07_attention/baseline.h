/**
 * @file baseline.h
 * @brief What lab 07's starter does: the baseline of its speedups.
 */
#ifndef WARPBOOK_GRADER_07_ATTENTION_BASELINE_H_
#define WARPBOOK_GRADER_07_ATTENTION_BASELINE_H_

#include "labs/07_attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As attention(), for as many keys as fit into shared memory: a block a query. */
attention_function attention_baseline;

#ifdef __cplusplus
}
#endif

#endif

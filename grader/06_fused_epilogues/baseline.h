/**
 * @file baseline.h
 * @brief What lab 06's starter does: the baseline of its speedup.
 */
#ifndef WARPBOOK_GRADER_06_FUSED_EPILOGUES_BASELINE_H_
#define WARPBOOK_GRADER_06_FUSED_EPILOGUES_BASELINE_H_

#include "labs/06_fused_epilogues/fused_epilogues.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As fused_epilogues(), for FUSED_LINEAR, FUSED_LINEAR_ACTIVATION and FUSED_LINEAR_ADD_NORM with a
 *  product of at most 64 MiB: a launch for each operator, by the solved labs 03 to 05. */
fused_function fused_baseline;

/** in * weight^T by the solved lab 04, and nothing else. */
fused_function fused_plain_matmul;

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file baseline.h
 * @brief What lab 04's starter does: the baseline of its speedups.
 */
#ifndef WARPBOOK_GRADER_04_SGEMM_BASELINE_H_
#define WARPBOOK_GRADER_04_SGEMM_BASELINE_H_

#include "labs/04_sgemm/sgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As sgemm(), for sizes up to SGEMM_MAX_SIZE: a thread an element, x down the rows. */
sgemm_function sgemm_baseline;

#ifdef __cplusplus
}
#endif

#endif

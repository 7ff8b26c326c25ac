/**
 * @file baseline.h
 * @brief What lab 11's starter does: the baseline of its speedups.
 */
#ifndef WARPBOOK_GRADER_11_TRAINING_BASELINE_H_
#define WARPBOOK_GRADER_11_TRAINING_BASELINE_H_

#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As the three functions of training.h. */
extern const struct training_functions training_baseline;

#ifdef __cplusplus
}
#endif

#endif

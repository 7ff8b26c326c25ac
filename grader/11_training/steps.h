/**
 * @file steps.h
 * @brief Training steps one after the other, as worker and reference do them.
 */
#ifndef WARPBOOK_GRADER_11_TRAINING_STEPS_H_
#define WARPBOOK_GRADER_11_TRAINING_STEPS_H_

#include "grader/11_training/calls.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Each a pass forward, a pass back and an update. */
MUST_CHECK enum status training_steps(const struct training_steps_call *call, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

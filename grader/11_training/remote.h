/**
 * @file remote.h
 * @brief Lab 11's functions by the worker in use: what a case calls in their place.
 */
#ifndef WARPBOOK_GRADER_11_TRAINING_REMOTE_H_
#define WARPBOOK_GRADER_11_TRAINING_REMOTE_H_

#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The three; each fails with STATUS_INTERRUPTED when the worker is no more. */
extern const struct training_functions remote_training;

/** As a call of remote_call_timed() wants it: host_starts in the arena of the worker in use. */
MUST_CHECK enum status remote_attention_backward_problem(struct attention_backward_problem *problem,
                                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif

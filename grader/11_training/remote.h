/**
 * @file remote.h
 * @brief Lab 11's functions as calls to the worker in use, for the cases.
 */
#ifndef WARPBOOK_GRADER_11_TRAINING_REMOTE_H_
#define WARPBOOK_GRADER_11_TRAINING_REMOTE_H_

#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The three functions; each fails with STATUS_INTERRUPTED when the worker has ended. */
extern const struct training_functions remote_training;

/** Copies host_starts to the arena of the worker in use, as remote_call_timed() needs it. */
MUST_CHECK enum status remote_attention_backward_problem(struct attention_backward_problem *problem,
                                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file calls.h
 * @brief Calls from the grader of lab 07 to its workers.
 */
#ifndef WARPBOOK_GRADER_07_ATTENTION_CALLS_H_
#define WARPBOOK_GRADER_07_ATTENTION_CALLS_H_

#include "labs/07_attention/attention.h"

/** "attention"; the problem's host_starts lie in the arena. */
struct attention_call {
    struct attention_problem problem;
    device_stream stream;
};

#endif

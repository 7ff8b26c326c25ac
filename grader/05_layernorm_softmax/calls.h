/**
 * @file calls.h
 * @brief What the grader of lab 05 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_05_LAYERNORM_SOFTMAX_CALLS_H_
#define WARPBOOK_GRADER_05_LAYERNORM_SOFTMAX_CALLS_H_

#include "labs/05_layernorm_softmax/layernorm_softmax.h"

/** "rows" */
struct rows_call {
    struct rows_problem problem;
    void *workspace;
    device_stream stream;
};

#endif

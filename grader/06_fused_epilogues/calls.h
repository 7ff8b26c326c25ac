/**
 * @file calls.h
 * @brief Calls from the grader of lab 06 to its workers.
 */
#ifndef WARPBOOK_GRADER_06_FUSED_EPILOGUES_CALLS_H_
#define WARPBOOK_GRADER_06_FUSED_EPILOGUES_CALLS_H_

#include "labs/06_fused_epilogues/fused_epilogues.h"

/** "fused"; in the baseline's worker "plain_matmul", too: in * weight^T and nothing else. */
struct fused_call {
    struct fused_problem problem;
    void *workspace;
    device_stream stream;
};

#endif

/**
 * @file calls.h
 * @brief What the grader of lab 04 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_04_SGEMM_CALLS_H_
#define WARPBOOK_GRADER_04_SGEMM_CALLS_H_

#include "labs/04_sgemm/sgemm.h"

/** "sgemm" */
struct sgemm_call {
    struct sgemm_problem problem;
    void *workspace;
    device_stream stream;
};

#endif

/**
 * @file calls.h
 * @brief What the grader of lab 12 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_12_TENSOR_CORES_CALLS_H_
#define WARPBOOK_GRADER_12_TENSOR_CORES_CALLS_H_

#include "labs/12_tensor_cores/tensor_cores.h"

/** "gemm16" */
struct gemm16_call {
    struct gemm16_problem problem;
    void *workspace;
    device_stream stream;
};

#endif

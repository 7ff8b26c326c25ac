/**
 * @file case.h
 * @brief One graded call of lab 06: its inputs in guarded device memory, and what came of it.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_PROBLEM_CASE_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_PROBLEM_CASE_H_

#include <stdbool.h>

#include "common/testing/device_buffer.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "labs/06_fused_epilogues/problem/oracle.h"

enum fused_buffer {
    FUSED_IN,
    FUSED_WEIGHT,
    FUSED_BIAS,
    FUSED_RESIDUAL,
    FUSED_NORM_WEIGHT,
    FUSED_NORM_BIAS,
    FUSED_SUM,
    FUSED_OUT,
    FUSED_BUFFERS
};

struct fused_case {
    enum fused_op op;
    struct fused_shape shape;
    struct fused_flavour flavour;
    bool in_place; /**< out is the residual; FUSED_ADD_KEEP_NORM: sum is */
    size_t skew;   /**< floats that every pointer is past a 256-byte boundary */
    size_t copies; /**< the device has the M rows so many times; 0 counts as 1 */
    struct fused_data data;
    struct device_buffer buffers[FUSED_BUFFERS];
    struct fused_problem problem; /**< on the device */
    char name[200];
};

/** Makes inputs, expectation and buffers; output that is not the residual is NaN. */
MUST_CHECK enum status fused_case_create(struct fused_case *c, struct rng *rng, bool guarded,
                                         struct error *error);

/** Frees; a case of which fused_case_create() failed is allowed. */
void fused_case_free(struct fused_case *c);

/** Fails the running test unless the output is right and nothing else was written. */
MUST_CHECK enum status fused_case_check(struct fused_case *c, struct error *error);

#endif

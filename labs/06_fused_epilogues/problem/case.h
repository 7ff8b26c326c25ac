/**
 * @file case.h
 * @brief A random call of lab 06 in device memory with canaries, and the check of its result.
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
    bool in_place;      /**< out is the residual; FUSED_ADD_KEEP_NORM: sum is */
    size_t skew;        /**< floats that every pointer is past a 256-byte boundary */
    size_t rows;        /**< on the device: the M different rows over and over; 0: M */
    bool mixed;         /**< these rows are all different: mixes of the data's, which is coarse, as
                             `mixes` says. Not with GELU before the product, nor in place */
    struct rng own_rng; /**< draws the rows that are looked at, where they are many */
    struct fused_mix *mixes; /**< (rows) */
    struct fused_data data;
    struct device_buffer buffers[FUSED_BUFFERS];
    struct fused_problem problem; /**< on the device */
    char name[200];
};

/**
 * @brief Makes inputs, expectation and buffers, and fills the buffers: see fused_case_put().
 * @param guarded whether the buffers have canaries
 */
MUST_CHECK enum status fused_case_create(struct fused_case *c, struct rng *rng, bool guarded,
                                         struct error *error);

/** Frees; a case of which fused_case_create() failed is allowed. */
void fused_case_free(struct fused_case *c);

/** Draws other values for the same call, in the same memory, and writes them: fused_case_put(). */
MUST_CHECK enum status fused_case_redraw(struct fused_case *c, struct rng *rng,
                                         struct error *error);

/** Writes the inputs and the canaries again; output that is not the residual becomes NaN. */
MUST_CHECK enum status fused_case_put(struct fused_case *c, struct error *error);

/**
 * @brief Is the output right, and nothing else written? Waits for the device.
 *
 * Where rows is no multiple of M, the last rows % M rows are not compared. Of many mixed rows some
 * are compared, drawn anew each time.
 *
 * @param text receives what is wrong, or ""
 */
MUST_CHECK enum status fused_case_check(struct fused_case *c, char *text, size_t size,
                                        struct error *error);

/**
 * @brief Are the workspace's first FUSED_ZERO_BYTES zeros, as the next call relies on?
 * @param text receives the first byte that is not, or ""
 */
MUST_CHECK enum status fused_workspace_check(const void *workspace, device_stream stream,
                                             char *text, size_t size, struct error *error);

#endif

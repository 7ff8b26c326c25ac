/**
 * @file case.h
 * @brief One operation's data on the GPU, and the check of a step's result.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_CASE_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_CASE_H_

#include "labs/06_fused_epilogues/bench/parts.h"

/** Rows that are different; the device's are those over and over. */
enum { BENCH_ROWS = 8 };

struct bench_case {
    struct fused_data data;       /**< of the first rows */
    struct fused_problem problem; /**< on the device, all rows */
    void *d_in, *d_weight, *d_bias, *d_residual, *d_norm_weight, *d_norm_bias, *d_sum, *d_out;
    void *workspace;
    fused_function *run; /**< what a timed call calls */
};

/** @return what an operation's shape takes, without the workspace */
size_t bench_case_bytes(const struct fused_shape *shape);

/** Fills inputs with random numbers. */
MUST_CHECK enum status bench_case_create(struct bench_case *c, enum fused_op op,
                                         struct fused_shape shape, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void bench_case_free(struct bench_case *c);

/** A device_bench_function: c->run with the case's problem. @param argument struct bench_case */
MUST_CHECK enum status bench_case_run(void *argument, device_stream stream, struct error *error);

/** The same for lab 04's sgemm(): in * weight^T and nothing else. */
MUST_CHECK enum status bench_case_matmul(void *argument, device_stream stream, struct error *error);

/** Runs once and compares the first rows and the last; @p wrong receives what is wrong, or "". */
MUST_CHECK enum status bench_case_check(struct bench_case *c, char *wrong, size_t size,
                                        struct error *error);

#endif

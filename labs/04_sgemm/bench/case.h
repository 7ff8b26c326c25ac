/**
 * @file case.h
 * @brief One shape's data on the GPU, and the check of a step's result.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_BENCH_CASE_H_
#define WARPBOOK_LABS_04_SGEMM_BENCH_CASE_H_

#include "labs/04_sgemm/bench/parts.h"

/** Device operands, and some rows of the right result. */
struct bench_case {
    struct bench_shape shape;
    enum sgemm_form form;
    void *A, *B, *C, *workspace; /**< device */
    size_t rows;                 /**< rows that are checked: all of a small result */
    size_t *row;                 /**< (rows) which ones */
    double *want;                /**< (rows, N) */
    float *got;                  /**< (N) */
    struct cublas *cublas;       /**< what run_cublas() calls */
    sgemm_function *run;         /**< what run_step() calls */
};

/** Fills A and B with random numbers, and calculates the rows to check. */
MUST_CHECK enum status bench_case_create(struct bench_case *c, struct bench_shape shape,
                                         enum sgemm_form form, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void bench_case_free(struct bench_case *c);

/** @return the problem of the first @p M rows: alpha 1, beta 0. */
struct sgemm_problem bench_case_problem(const struct bench_case *c, size_t M);

/** Runs once and compares; @p wrong receives what is wrong, or "". */
MUST_CHECK enum status bench_case_check(struct bench_case *c, char *wrong, size_t size,
                                        struct error *error);

/** Multiplications of the shape, and bytes of each operand once: no kernel can move less. */
double bench_flops(const struct bench_shape *shape);
double bench_bytes(const struct bench_shape *shape);

#endif

/**
 * @file case.h
 * @brief One shape's data on the GPU, and the check of a step's result.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_CASE_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_CASE_H_

#include "labs/05_layernorm_softmax/bench/parts.h"
#include "labs/05_layernorm_softmax/problem/oracle.h"

/**
 * Device operands, and host copies of the few rows that are different: the
 * device's input is those rows over and over, so that gigabytes of it are made
 * in no time.
 */
struct bench_case {
    struct bench_shape shape;
    struct rows_data data;                      /**< of the first rows */
    void *in, *out, *weight, *bias, *workspace; /**< device */
    unsigned char *bytes;                       /**< host, one row */
    double *want;                               /**< (C) */
    float *got;                                 /**< (C) */
    rows_function *run;                         /**< what a timed call calls */
};

/** Fills inputs with random numbers. */
MUST_CHECK enum status bench_case_create(struct bench_case *c, struct bench_shape shape,
                                         enum rows_op op, enum nn_dtype type, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void bench_case_free(struct bench_case *c);

/** @return the problem of the first @p rows */
struct rows_problem bench_case_problem(const struct bench_case *c, size_t rows);

/** Runs once and compares some rows; @p wrong receives what is wrong, or "". */
MUST_CHECK enum status bench_case_check(struct bench_case *c, char *wrong, size_t size,
                                        struct error *error);

/** Bytes of the rows, read once and written once: no kernel can move less. */
double bench_bytes(const struct bench_shape *shape, enum nn_dtype type);

/** Operations, about: 7 an element for LayerNorm, 4 for RMSNorm, 5 for softmax. */
double bench_flops(const struct bench_shape *shape, enum rows_op op);

#endif

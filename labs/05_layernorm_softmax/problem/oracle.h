/**
 * @file oracle.h
 * @brief Inputs and right results of lab 05, for its tests, its bench and the grader; on the host.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_PROBLEM_ORACLE_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_PROBLEM_ORACLE_H_

#include <stdbool.h>

#include "common/base/rng.h"
#include "common/testing/compare.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

/** @return "layernorm", "rmsnorm", "softmax" */
const char *rows_op_name(enum rows_op op);

/** How the inputs are drawn. */
struct rows_flavour {
    float mean;  /**< of every row, beside a small one of its own */
    bool masked; /**< softmax: a random mask; its first row masks every column, its second none */
    size_t rows_a_mask; /**< 0 counts as 1 */
    bool quiet;         /**< values of about 1e-3: epsilon decides a norm's result */
    bool infinities;    /**< softmax: some -inf; the last row has only -inf */
};

/** Host copies of one problem; every value is rounded to the type. */
struct rows_data {
    enum rows_op op;
    enum nn_dtype type;
    size_t rows, C;
    float *in, *weight, *bias; /**< (rows, C), (C), (C) */
    uint8_t *mask;             /**< (ceil(rows / rows_a_mask), C), or NULL */
    size_t masks, rows_a_mask;
    float eps;
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status rows_data_create(struct rows_data *data, enum rows_op op, enum nn_dtype type,
                                        size_t rows, size_t C, struct rows_flavour flavour,
                                        struct rng *rng, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void rows_data_free(struct rows_data *data);

/** One row of the result, by common/nn in double. @param want (C) @param scratch (C) */
void rows_expect(const struct rows_data *data, size_t row, double *want, float *scratch);

/**
 * @brief Tolerance of one row that is computed in fp32 and stored in data->type.
 *
 * With u = 2^-24. A sum of C terms, in any order, is off by some u sqrt(C) in random data.
 * LayerNorm's mean is off by up to four times as much of |mean|, where one thread adds values of
 * one sign and size, and so is each x - mean; it counts in standard deviations. Squares and
 * softmax's terms are all positive and many of them small: one thread that adds them to a sum of
 * some size rounds many the same way, so the bound is that of a dot product in fp32 (see
 * tolerance_dot_f32()), and half of it for the root. An exponential is off by u times its argument,
 * which the row's range bounds. The result is rounded once: 2^-11 in fp16, 2^-8 in bf16, and in
 * fp16 results below 2^-14 by up to 2^-25.
 */
struct tolerance rows_tolerance(const struct rows_data *data, size_t row);

#endif

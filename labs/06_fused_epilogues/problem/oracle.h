/**
 * @file oracle.h
 * @brief Inputs and right results of lab 06, for its tests, its bench and the grader; on the host.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_PROBLEM_ORACLE_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_PROBLEM_ORACLE_H_

#include <stdbool.h>

#include "common/base/rng.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return "linear", "linear+activation", ..., "?" for another value */
const char *fused_op_name(enum fused_op op);

/** @return whether the operation has a product: all but the last two. */
bool fused_op_multiplies(enum fused_op op);

struct fused_shape {
    size_t M, N, K;
};

/** Properties of the inputs. */
struct fused_flavour {
    enum nn_activation f;
    float eps;
    float mean;  /**< of the residual's rows */
    bool coarse; /**< input and residual are multiples of 2^-12, so that rows can be mixed */
};

/** Host copies of one problem, and its results in double precision. */
struct fused_data {
    struct fused_problem problem; /**< pointers to host memory, NULL where there is nothing; out and
                                       sum are NULL */
    size_t in_columns;            /**< K, or N where nothing is multiplied */
    double *sum;                  /**< (M, N): the input of the LayerNorm, or the result */
    double *out;                  /**< (M, N) */
    float *values;                /**< all inputs */
    float largest_weight;         /**< of the LayerNorm, its absolute value */
    float mean;
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status fused_data_create(struct fused_data *data, enum fused_op op,
                                         struct fused_shape shape, struct fused_flavour flavour,
                                         struct rng *rng, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void fused_data_free(struct fused_data *data);

/**
 * @brief Compares a result with the oracle's.
 *
 * With u = 2^-24. A sum of K products of numbers about 1 is off by 4 u K^(3/4) sqrt(K) at most
 * (tolerance_dot_f32()), the sum with bias and residual by a few u. An activation's slope is
 * below 1.2. A LayerNorm divides the error by the row's standard deviation, and adds that of its
 * own sums, u (8
 * + sqrt(N)) of the row's mean and deviation.
 *
 * @param got  (M, N)
 * @param is_sum whether it is FUSED_ADD_KEEP_NORM's sum
 * @param text receives what is wrong, "" when nothing is
 */
void fused_compare(const struct fused_data *data, const float *got, bool is_sum, char *text,
                   size_t size);

/**
 * A row of its own that costs no product: of coarse data, factors[0] * row rows[0] + factors[1] *
 * row rows[1], of which no bit is lost in fp32. Operations whose input goes through GELU have none.
 */
struct fused_mix {
    size_t rows[2];
    float factors[2];
};

/** @param M rows of the data, at least 1 */
struct fused_mix fused_mix_draw(size_t M, struct rng *rng);

/** @param values of the data's rows. @param row (columns): receives the mix */
void fused_mix_row(const struct fused_mix *mix, const float *values, size_t columns, float *row);

/**
 * @brief Compares row m of the output with what the mix must give.
 * @param scratch (2 * N)
 * @param text    receives what is wrong, "" when nothing is
 */
void fused_compare_mix(const struct fused_data *data, const struct fused_mix *mix, size_t m,
                       const float *got, double *scratch, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif

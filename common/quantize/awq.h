/**
 * @file awq.h
 * @brief Rounding that spares the weights of large inputs (Lin et al. 2023, AWQ: activation-aware
 *        weight quantization), in double.
 *
 * A column of weights is multiplied by s, and the input that it meets divided by it:
 *
 *     W x = (W diag(s)) (diag(1/s) x)
 *
 * Where s is large, a weight is rounded more finely than its neighbours in the group. s is a power
 * of the input's size, s_k = m_k^a / sqrt(max(m^a) min(m^a)), with m_k the root mean square of
 * input k; of the exponents a = 0, 1/20 ... 19/20 the one is taken whose products err least. The
 * division costs nothing: it goes into the norm or the matrix that makes the input.
 */
#ifndef WARPBOOK_COMMON_QUANTIZE_AWQ_H_
#define WARPBOOK_COMMON_QUANTIZE_AWQ_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/low_bit.h"

enum { AWQ_EXPONENTS = 20 };

/** One of the matrices that have the same inputs. */
struct awq_matrix {
    const float *weights; /**< (rows, K) */
    size_t rows;
};

/** What s is chosen for. */
struct awq_problem {
    const struct awq_matrix *matrices; /**< (count) */
    size_t count, K;
    struct low_bit_layout layout; /**< type, group, scales and zero points; sizes are not read */
    const double *hessian;        /**< X^T X (K, K), at and above the diagonal */
    const size_t *same;           /**< (K), below K: columns with the same number get the same s */
};

/**
 * @brief Chooses s, rounding to nearest.
 * @param scales  receives s (K), > 0; 1 where no input was ever anything but 0
 * @param scratch (3 K)
 */
void awq_choose(const struct awq_problem *problem, float *scales, double *scratch);

/**
 * @brief Rounds a matrix that has been multiplied by s, each group with the scale (gptq.h) whose
 *        products err least where inputs are independent.
 * @param weights (rows, K), finite
 * @param inverse (K): 1 / root mean square of what the columns are multiplied with, > 0
 * @param row     scratch (K)
 * @return STATUS_OK, or low_bit_check()'s
 */
MUST_CHECK enum status awq_quantize(const float *weights, const double *inverse,
                                    struct low_bit_matrix *matrix, double *row,
                                    struct error *error);

#endif

/**
 * @file gptq.h
 * @brief Rounding of a matrix's weights so that its products change least (Frantar et al. 2022,
 *        GPTQ), in double.
 *
 * For inputs X (tokens, K) and H = X^T X, the error of a row is (w - q) H (w - q)^T. Columns are
 * rounded in order; what a column's rounding does to the products, the columns behind it make good:
 *
 *     H + damping = R R^T with R upper triangular, U = R^-1
 *     e = (w_j - q_j) / U_jj,   w_k -= e U_jk for k > j
 *
 * This is the exact minimum over the columns behind j, given those before it. In a model whose
 * layers before are rounded already, inputs are no longer those that the weights were made for. For
 * inputs Y of the model as it was, products X q are wanted that come near to Y w, so w is moved
 * first:
 *
 *     D = (Y - X)^T X,   w += w D (H + damping)^-1
 *
 * A group's scale is
 * chosen when its first column comes, from the weights as they then are: of the scale for the
 * largest weight and smaller ones, which cut it off, the one with the least sum of squared errors,
 * a column weighed by 1 / U_jj^2, which is what its error costs.
 */
#ifndef WARPBOOK_COMMON_QUANTIZE_GPTQ_H_
#define WARPBOOK_COMMON_QUANTIZE_GPTQ_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/low_bit.h"

/** Share of the mean of H's diagonal that is added to it. */
#define GPTQ_DAMPING 0.01

/**
 * @brief Adds X^T X to H; only the part at and above the diagonal.
 * @param hessian (K, K)
 * @param in      (tokens, K)
 */
void gptq_add(double *hessian, const float *in, size_t tokens, size_t K);

/**
 * @brief Adds (Y - X)^T X to D.
 * @param drift  (K, K)
 * @param wanted Y (tokens, K): inputs of the model as it was
 * @param in     X (tokens, K): of the model as it is
 */
void gptq_add_drift(double *drift, const float *wanted, const float *in, size_t tokens, size_t K);

/**
 * @brief Makes U of H, in place. Inputs that were always 0 get a diagonal of 1.
 * @param hessian (K, K), at and above the diagonal; receives U, with zeros below
 * @return STATUS_OK; STATUS_BAD_FORMAT if H is not positive definite, or not finite
 */
MUST_CHECK enum status gptq_prepare(double *hessian, size_t K);

/** Scales that are tried for a group: (1 - i / 32) of the scale for its largest weight. */
enum { GPTQ_SCALES = 20 };

/**
 * @brief Chooses a group's scale.
 * @param weights (count)
 * @param upper   U from the group's first diagonal element on; the next is @p stride behind
 * @param zero    receives the zero point
 */
float gptq_choose_scale(const struct low_bit_layout *layout, const double *weights,
                        const double *upper, size_t stride, size_t count, uint8_t *zero);

/**
 * @brief Rounds all rows.
 * @param weights (rows, K), finite
 * @param upper   U (K, K); NULL: to nearest, as low_bit_quantize()
 * @param drift   D (K, K); NULL: the inputs are those that the weights were made for
 * @param matrix  host; its layout says how; its buffers are filled
 * @param scratch (2 K)
 * @return STATUS_OK, or low_bit_check()'s
 */
MUST_CHECK enum status gptq_quantize(const float *weights, const double *upper, const double *drift,
                                     struct low_bit_matrix *matrix, double *scratch,
                                     struct error *error);

#endif

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
 * layers before are rounded already, inputs are no longer those that the weights were made for.
 * Where V (tokens) is what was wanted in the place of X w, w is moved there first:
 *
 *     p = (V - X w)^T X,   w += p (H + damping)^-1
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
 * @brief Adds (V - G)^T X to P.
 * @param pull   P (rows, K): p of each row
 * @param wanted V (tokens, rows): products, or what they are added to, of the model as it was
 * @param got    G (tokens, rows): the same of the model as it is, with this matrix as it was
 * @param in     X (tokens, K)
 */
void gptq_add_pull(double *pull, const float *wanted, const float *got, const float *in,
                   size_t tokens, size_t rows, size_t K);

/**
 * @brief Makes U of H, in place. Inputs that were always 0 get a diagonal of 1.
 * @param hessian (K, K), at and above the diagonal; receives U, with zeros below
 * @return STATUS_OK; STATUS_BAD_FORMAT if H is not positive definite, or not finite
 */
MUST_CHECK enum status gptq_prepare(double *hessian, size_t K);

/** To how much of themselves a group's least and largest weight are cut: 1, 19/20 ... 10/20. Each
 * by itself where there is a zero point, else both alike. */
enum { GPTQ_CUTS = 11 };

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
 * @param pull    P (rows, K); NULL: the products are what is wanted
 * @param matrix  host; its layout says how; its buffers are filled
 * @param row     scratch (K)
 * @return STATUS_OK, or low_bit_check()'s
 */
MUST_CHECK enum status gptq_quantize(const float *weights, const double *upper, const double *pull,
                                     struct low_bit_matrix *matrix, double *row,
                                     struct error *error);

#endif

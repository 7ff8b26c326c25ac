/**
 * @file tensor_sum.h
 * @brief The sums of a tensor core: c += a * b, with the bits that a GPU cuts off.
 *
 * A tensor core adds the products of a group of k and c at once. Products are exact. Each addend is
 * cut off behind `fraction_bits` of the largest exponent among them, where the exponent of a
 * product is the sum of those of its factors; the sum of what is left is exact. It is then cut off
 * to fp32, or rounded to fp16, and is the c of the next group. Which groups and how many bits,
 * GPUs of a generation have in common (MODEL.md).
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_TENSOR_SUM_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_TENSOR_SUM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/ops/tile.h"

/** How a product is added up. */
struct tensor_sum {
    enum tile_format factor, sum; /**< of a (b has the same least exponent or none), and of c */
    int fraction_bits;            /**< 0: in fp64 in the order of k, not rounded */
    int result_bits;              /**< of an fp32 sum: 23, or 13 */
    uint32_t group;               /**< elements of k that are added at once */
};

/**
 * @brief How a GPU adds.
 * @param code       compute capability, 90 for Hopper; 0: as accurately as fp64 does
 * @param warpgroup  wgmma, else mma or wmma
 */
struct tensor_sum tensor_sum_of(uint32_t code, enum tile_format factor, enum tile_format sum,
                                bool warpgroup);

/** The factors, values by row and column. */
struct tensor_factors {
    uint32_t m, n, k; /**< n a multiple of 8; m and k of a, at most 16 and 256 */
    const double *a;  /**< (m, k): element (row, k) at row * a_row + k * a_k */
    size_t a_row, a_k;
    const double *b; /**< (k, n), row by row; with columns (2 * k, n) */
    enum tile_format b_format;
    const uint32_t *columns; /**< (m, k): which row of b an element of a meets; NULL: k */
};

/** @param c (m, n) row by row: values of the sum's format, and so afterwards, but for exact sums */
void tensor_multiply(const struct tensor_sum *sum, const struct tensor_factors *factors, double *c);

#endif

/**
 * @file rows_products.h
 * @brief Launches the product of several texts with a matrix.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_PRODUCTS_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_PRODUCTS_H_

#include "solutions/13_low_bit/decoder/low_bit_model.h"
#include "solutions/13_low_bit/rows/rows_kernels.h"

/* out (rows, N) = the model's matrix `which`, at `weights`, times its input: of qkv, gate and up
 * and classifier the residual stream, normalised. The output product and down are added to the
 * residual stream, of gate and up silu(gate) * up is stored. */
void rows_multiply(const struct rows_decoder *d, enum low_bit_product which, const void *weights,
                   device_stream stream);

#endif

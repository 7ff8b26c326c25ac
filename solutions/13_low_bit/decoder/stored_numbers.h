/**
 * @file stored_numbers.h
 * @brief Finds the numbers that a checkpoint of few bits had stored, from its dequantised weights.
 *
 * A group of weights that are all scale * (q - zero), with a scale of the wanted type and numbers q
 * of the wanted bits, is stored as such numbers: nothing is rounded again. It does not matter which
 * file they come from: GPTQ, compressed-tensors, AWQ, GGUF's Q4_0. What they must have is the
 * groups of the wanted layout, in the order of columns, and scales of 16 bits.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_STORED_NUMBERS_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_STORED_NUMBERS_H_

#include <stdbool.h>

#include "common/nn/low_bit.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Fills a matrix whose weights are exactly those given, if there is one.
 * @param weights host, (rows, columns)
 * @param matrix  host, int8 without or int4 with zero points; undefined where the answer is no
 * @return whether each weight equals scale * (stored - zero) in fp32, to the bit
 */
bool stored_numbers_find(const float *weights, struct low_bit_matrix *matrix);

#ifdef __cplusplus
}
#endif

#endif

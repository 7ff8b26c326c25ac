/**
 * @file sgemm_a_transposed.h
 * @brief Lab 04's solution for training: sgemm() with its left operand transposed.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_GIVEN_SGEMM_A_TRANSPOSED_H_
#define WARPBOOK_LABS_04_SGEMM_GIVEN_SGEMM_A_TRANSPOSED_H_

#include "labs/04_sgemm/sgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief sgemm() of A as (K, M), element (m, k) at A[k * M + m], and B as (K, N).
 * @param problem as for sgemm(); M and N multiples of 4, A and B 16-byte aligned
 * @return as sgemm(), and STATUS_INVALID_ARGUMENT for another form of B, other sizes or pointers
 */
MUST_CHECK enum status sgemm_a_transposed(const struct sgemm_problem *problem, void *workspace,
                                          device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

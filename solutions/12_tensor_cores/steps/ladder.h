/**
 * @file ladder.h
 * @brief The steps of solution 12, each with the signature of gemm16(), and what their hosts share.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_LADDER_H_

#include "labs/12_tensor_cores/tensor_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

gemm16_function gemm16_v1_tile, gemm16_v2_wmma, gemm16_v3_mma, gemm16_v4_ring, gemm16_v5_tma,
    gemm16_v6_wgmma, gemm16_v7_specialised, gemm16_v8_persistent, gemm16_v9_clusters,
    gemm16_v10_shapes;

/** @return STATUS_INVALID_ARGUMENT, with a line that names it, for what gemm16() does not take. */
MUST_CHECK enum status gemm16_check(const struct gemm16_problem *problem, struct error *error);

/** @return STATUS_INVALID_ARGUMENT, with a line, for what is no workspace of gemm16(). */
MUST_CHECK enum status gemm16_check_workspace(const void *workspace, struct error *error);

/** @return STATUS_UNSUPPORTED, with a line, where the GPU runs code older than `code` (80, 90). */
MUST_CHECK enum status gemm16_needs(int code, const char *step, struct error *error);

/** @return STATUS_UNSUPPORTED, with a line, unless there is code of a step for compute_90a. */
MUST_CHECK enum status gemm16_needs_code(bool is_there, const char *step, struct error *error);

#ifdef __cplusplus
}
#endif

#endif

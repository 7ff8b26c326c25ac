/**
 * @file openblas.h
 * @brief OpenBLAS, where it is installed, as the library to compare CPU kernels with.
 */
#ifndef WARPBOOK_COMMON_BENCH_OPENBLAS_H_
#define WARPBOOK_COMMON_BENCH_OPENBLAS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return true when this program was built with OpenBLAS. */
bool openblas_available(void);

/** @return @p name: "OpenBLAS 0.3.21 Cooperlake", the version and the CPU its kernels are for. */
const char *openblas_name(char *name, size_t size);

/**
 * @brief Whether OpenBLAS chose kernels of a much older CPU because it does not know this one.
 * @param core          the CPU that its kernels are for: "Prescott"
 * @param vector_floats floats in a vector register of this CPU
 */
bool openblas_is_outdated(const char *core, size_t vector_floats);

/**
 * @brief Warns when the environment overrides OpenBLAS's choice of kernels, or when OpenBLAS chose
 *        kernels of a much older CPU.
 * @return one line in @p note; NULL without a warning, or without OpenBLAS
 */
const char *openblas_note(char *note, size_t size);

/**
 * @brief out (M, N) = in (M, K) * weight (N, K)^T; fp32, row-major, no overlap.
 *
 * Calls cblas_sgemm, or cblas_sgemv for one row, for which cblas_sgemm is slow.
 *
 * @param threads at least 1
 * @return STATUS_OK, STATUS_OVERFLOW (a size beyond int), STATUS_UNSUPPORTED without OpenBLAS
 */
MUST_CHECK enum status openblas_matmul(float *out, const float *in, const float *weight, size_t M,
                                       size_t N, size_t K, int threads);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file openblas.h
 * @brief The vendor's yardstick: OpenBLAS where it is installed.
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

/** @return "OpenBLAS 0.3.21 Cooperlake": version, and whose kernels it runs, in @p name. */
const char *openblas_name(char *name, size_t size);

/**
 * @brief Whether OpenBLAS took kernels of long ago for a CPU it does not know.
 * @param core          whose kernels it took: "Prescott"
 * @param vector_floats floats in a vector register of this CPU
 */
bool openblas_is_outdated(const char *core, size_t vector_floats);

/**
 * @brief Says whether the environment keeps OpenBLAS from choosing for this CPU, or whether it
 *        chose badly.
 * @return one line in @p note; NULL when there is nothing to say, or no OpenBLAS
 */
const char *openblas_note(char *note, size_t size);

/**
 * @brief out (M, N) = in (M, K) * weight (N, K)^T; fp32, row-major, no overlap.
 *
 * By cblas_sgemm, and for one row, where that is slow, by cblas_sgemv.
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

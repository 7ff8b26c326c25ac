/**
 * @file openblas.h
 * @brief The vendor's yardstick: OpenBLAS where it is installed.
 */
#ifndef WARPBOOK_LABS_01_CPU_MATMUL_OPENBLAS_H_
#define WARPBOOK_LABS_01_CPU_MATMUL_OPENBLAS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

/** @return true when this program was built with OpenBLAS. */
bool openblas_available(void);

/** @return "OpenBLAS 0.3.21 (Haswell)": version, and whose kernels it chose, in @p name. */
const char *openblas_name(char *name, size_t size);

/** As cpu_matmul(), by cblas_sgemm. @return STATUS_UNSUPPORTED without OpenBLAS */
MUST_CHECK enum status openblas_matmul(float *out, const float *in, const float *weight, size_t M,
                                       size_t N, size_t K, int threads);

#endif

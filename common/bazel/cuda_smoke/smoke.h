/**
 * @file smoke.h
 * @brief One kernel with a C interface, to test that nvcc's code links into a C program and runs.
 */
#ifndef WARPBOOK_COMMON_BAZEL_CUDA_SMOKE_SMOKE_H_
#define WARPBOOK_COMMON_BAZEL_CUDA_SMOKE_SMOKE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief y[i] += SMOKE_FACTOR * x[i] on the device.
 * @param x host memory, n elements
 * @param y host memory, n elements, no overlap with x; changed only on success
 * @param n number of elements, at least 1
 * @param arch receives __CUDA_ARCH__ of the code that ran, 900 for compute 9.0
 * @return a cudaError_t, 0 for success
 */
int smoke_axpy(const float *x, float *y, size_t n, int *arch);

#ifdef __cplusplus
}
#endif

#endif

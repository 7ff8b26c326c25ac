/**
 * @file smoke.h
 * @brief One kernel behind a C function: does nvcc's code link into a C program and run?
 */
#ifndef WARPBOOK_COMMON_BAZEL_CUDA_SMOKE_SMOKE_H_
#define WARPBOOK_COMMON_BAZEL_CUDA_SMOKE_SMOKE_H_

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Lets one GPU thread write SMOKE_VALUE.
 * @param value receives it; untouched on failure
 * @return a cudaError_t, 0 for success
 */
int smoke_launch(int *value);

#ifdef __cplusplus
}
#endif

#endif

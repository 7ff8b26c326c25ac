/**
 * @file random_prelude.h
 * @brief CUDA C text that every file of random kernels begins with.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_PRELUDE_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_PRELUDE_H_

/** Types, folds of floats, and instructions that CUDA C has no intrinsic for. */
extern const char *const random_prelude;

/** What kernels with half and bfloat16 values need beside it. */
extern const char *const random_prelude_half;

#endif

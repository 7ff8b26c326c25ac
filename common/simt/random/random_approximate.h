/**
 * @file random_approximate.h
 * @brief The approximate functions that random kernels call.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_APPROXIMATE_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_APPROXIMATE_H_

#include "common/simt/random/random_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct random_approximate random_approximates[];
extern const size_t random_approximate_count;

#ifdef __cplusplus
}
#endif

#endif

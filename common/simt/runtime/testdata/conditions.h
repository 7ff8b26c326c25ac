/**
 * @file conditions.h
 * @brief Kernels that set conditions of graphs, for condition_test. A GPU runs them only where they
 *        are linked with its device runtime.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_TESTDATA_CONDITIONS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_TESTDATA_CONDITIONS_H_

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** (handle, int *n): n -= 1; the condition is whether n > 0. */
const void *kernel_count_down(void);

/** (handle, int *n): n -= 1; at 0 the condition becomes 0, else nothing sets it. */
const void *kernel_stop_at_zero(void);

/** (handle, const int *n): the condition is n. */
const void *kernel_choose(void);

/** (int *to, int amount): to += amount. */
const void *kernel_add(void);

/** (handle): several blocks; the condition is the number of the block that sets it last. */
const void *kernel_set_by_all(void);

#ifdef __cplusplus
}
#endif

#endif

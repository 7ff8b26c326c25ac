/**
 * @file kernel_profile.h
 * @brief The profile of a call's longest kernel: on simt all of it, modelled; on a GPU its shape
 * and occupancy, as the runtime tells them.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_PROFILE_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_PROFILE_H_

#include <stdbool.h>

#include "common/bench/device/device_bench.h"
#include "common/simt/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Finds the longest kernel of one call of @p function. device_open() must have succeeded.
 *
 * On simt the work runs once more. On a GPU it is recorded and does not run; the kernel is the one
 * with most threads, and its unit stays unknown.
 *
 * @param function not one that waits for its stream or uses another: on a GPU that is not recorded
 * @return false when the call launches no kernel, fails, or cannot be recorded
 */
bool kernel_profile(device_bench_function *function, void *argument, struct simt_profile *profile);

/** The same, as on a GPU; on simt it tells the same shape and occupancy. */
bool kernel_profile_recorded(device_bench_function *function, void *argument,
                             struct simt_profile *profile);

/**
 * @brief Takes the longest kernel since this or kernel_profile() was called last, of whatever ran.
 * @return false on a GPU, and when there was none
 */
bool kernel_profile_longest(struct simt_profile *profile);

/**
 * @brief Prints a profile below a table's row, indented: the line, and the sentence if there is
 * one.
 */
void kernel_profile_print(const struct simt_profile *profile);

#ifdef __cplusplus
}
#endif

#endif

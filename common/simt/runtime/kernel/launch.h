/**
 * @file launch.h
 * @brief From a kernel and its arguments to a finished launch.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_KERNEL_LAUNCH_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_KERNEL_LAUNCH_H_

#include <stdbool.h>

#include "common/simt/runtime/stream/work.h"

struct runtime;

/** @return cudaErrorInvalidValue when grid, block or shared memory are more than the GPU has. */
cudaError_t launch_check(struct runtime *runtime, const struct kernel_work *launch);

/** Runs a checked launch; a fault is printed and becomes the pending error. */
cudaError_t launch_run(struct runtime *runtime, const struct kernel_work *launch, bool graph);

/**
 * @brief Makes work of a launch: loads the kernel, copies its arguments.
 * @param arguments one pointer a parameter; may be NULL for a kernel without parameters
 * @param work      receives the work; work_free() it
 */
cudaError_t launch_make(struct runtime *runtime, const void *function,
                        const struct kernel_work *shape, void **arguments, struct work *work);

#endif

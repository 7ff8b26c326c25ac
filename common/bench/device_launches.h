/**
 * @file device_launches.h
 * @brief How many launches does a call make? Counted, not timed, on a GPU and on simt alike.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_LAUNCHES_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_LAUNCHES_H_

#include <stddef.h>

#include "common/bench/device_bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Calls @p function with a stream that records its work in a CUDA graph and runs none of it.
 *
 * Kernels, copies and fills count alike, one each. The function must not wait for its stream, nor
 * use another one, nor launch a graph, which CUDA does not take while it records: one that has a
 * graph asks cudaStreamIsCapturing() and launches what is in it.
 *
 * @return STATUS_OK; the function's failure; STATUS_DEVICE when the work cannot be recorded
 */
MUST_CHECK enum status device_count_launches(device_bench_function *function, void *argument,
                                             size_t *launches, struct error *error);

/** The same for a function whose work goes to a stream of its own: this one, not the default. */
MUST_CHECK enum status device_count_launches_on(device_bench_function *function, void *argument,
                                                device_stream stream, size_t *launches,
                                                struct error *error);

#ifdef __cplusplus
}
#endif

#endif

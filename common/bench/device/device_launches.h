/**
 * @file device_launches.h
 * @brief A call's launches, recorded: how many are they, and all of them again as one CUDA graph;
 * on a GPU and on simt alike.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_LAUNCHES_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_LAUNCHES_H_

#include <stddef.h>

#include "common/bench/device/device_bench.h"

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

/** A call's launches, ready to run again. */
struct device_graph;

/**
 * @brief Records what @p function puts on @p stream, which must not be the default one, and runs
 *        none of it; see device_count_launches() for what it must not do.
 *
 * What the recorded work reads and writes must live as long as the graph runs.
 *
 * @param graph receives the graph, or NULL on failure
 * @return STATUS_OK; the function's failure; STATUS_DEVICE; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status device_graph_create(struct device_graph **graph,
                                           device_bench_function *function, void *argument,
                                           device_stream stream, struct error *error);

/** Runs it, without waiting: a device_bench_function whose argument is the struct device_graph. */
MUST_CHECK enum status device_graph_launch(void *graph, device_stream stream, struct error *error);

/** Frees it; NULL is allowed. */
void device_graph_free(struct device_graph *graph);

#ifdef __cplusplus
}
#endif

#endif

/**
 * @file device_launches.h
 * @brief Records a call's launches in a CUDA graph, to count them or to launch all of them as one
 *        graph. Works on a GPU and on simt.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_LAUNCHES_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_LAUNCHES_H_

#include <stddef.h>

#include "common/bench/device/device_bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Counts the launches of @p function: calls it with a stream that records work in a CUDA
 *        graph and runs none of it.
 *
 * Each kernel, copy and fill counts as one launch. The function must not wait for its stream, use
 * another stream, or launch a graph (CUDA refuses that while it records). A function that owns a
 * graph asks cudaStreamIsCapturing() and then launches the graph's work itself.
 *
 * @return STATUS_OK; the function's failure; STATUS_DEVICE when the work cannot be recorded
 */
MUST_CHECK enum status device_count_launches(device_bench_function *function, void *argument,
                                             size_t *launches, struct error *error);

/** The same for a function that works on a stream of its own, @p stream; not the default stream. */
MUST_CHECK enum status device_count_launches_on(device_bench_function *function, void *argument,
                                                device_stream stream, size_t *launches,
                                                struct error *error);

/** A call's launches, ready to run again. */
struct device_graph;

/**
 * @brief Records the work that @p function puts on @p stream and runs none of it. The restrictions
 *        of device_count_launches() apply.
 *
 * Memory that the recorded work reads and writes must outlive the graph.
 *
 * @param stream not the default stream
 * @param graph receives the graph, or NULL on failure
 * @return STATUS_OK; the function's failure; STATUS_DEVICE; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status device_graph_create(struct device_graph **graph,
                                           device_bench_function *function, void *argument,
                                           device_stream stream, struct error *error);

/** @return how many kernels, copies and fills it launches */
size_t device_graph_launches(const struct device_graph *graph);

/** Launches @p graph, a struct device_graph, without waiting; is a device_bench_function. */
MUST_CHECK enum status device_graph_launch(void *graph, device_stream stream, struct error *error);

/** Frees it; NULL is allowed. */
void device_graph_free(struct device_graph *graph);

#ifdef __cplusplus
}
#endif

#endif

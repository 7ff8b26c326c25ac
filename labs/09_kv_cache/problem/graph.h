/**
 * @file graph.h
 * @brief A call of kv_attention() in a CUDA graph.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_PROBLEM_GRAPH_H_
#define WARPBOOK_LABS_09_KV_CACHE_PROBLEM_GRAPH_H_

#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/** kv_attention() or another implementation of it. */
typedef enum status kv_graph_function(const struct kv_attention *attention, void *workspace,
                                      device_stream stream, struct error *error);

/**
 * @brief Records the call; nothing runs.
 * @param graph  receives the graph for the other functions, or NULL on failure
 * @param stream not the default stream
 */
MUST_CHECK enum status kv_graph_record(void **graph, kv_graph_function *run,
                                       const struct kv_attention *attention, void *workspace,
                                       device_stream stream, struct error *error);

/** Runs it, and waits. */
MUST_CHECK enum status kv_graph_launch(void *graph, device_stream stream, struct error *error);

/** Frees it; NULL is allowed. */
void kv_graph_free(void *graph);

#ifdef __cplusplus
}
#endif

#endif

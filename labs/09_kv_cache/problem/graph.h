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

/**
 * @brief Records the call; nothing is run.
 * @param graph  receives what the others are given, or NULL when it fails
 * @param run    kv_attention() or one like it
 * @param stream not the default stream
 */
MUST_CHECK enum status kv_graph_record(void **graph,
                                       enum status (*run)(const struct kv_attention *attention,
                                                          void *workspace, device_stream stream,
                                                          struct error *error),
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

/**
 * @file memory_nodes.h
 * @brief Nodes of graphs that allocate and free memory, made one by one or by capturing
 *        cudaMallocAsync() and cudaFreeAsync().
 *
 * Such memory has its address from the moment its node is made. It is there from the node that
 * allocates it to the one that frees it, in the same graph, in another one, or by cudaFree():
 * before and after that an access is told as one to freed memory.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_MEMORY_NODES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_MEMORY_NODES_H_

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "common/simt/memory/space/memory.h"

struct runtime;
struct work;
struct CUgraph_st;
struct CUstream_st;

/** The memory of all graphs. */
struct graph_memory {
    void **pointers; /**< (count) whose addresses are kept for nodes */
    size_t count, capacity;
    struct graph_memory_use {
        size_t bytes; /**< most at a time since cudaDeviceGraphMemTrim(): graphs keep them */
        size_t high;  /**< the largest that `bytes` was */
    } use[SIMT_MOST_DEVICES];
};

/** A captured cudaMallocAsync(): the stream's next node. Spoils the capture where it fails. */
cudaError_t memory_node_capture(struct runtime *runtime, struct CUstream_st *stream, void **pointer,
                                size_t bytes);

/** A captured cudaFreeAsync(): of a graph's memory alone. */
cudaError_t memory_node_capture_release(struct runtime *runtime, struct CUstream_st *stream,
                                        void *pointer);

/** Does what such a node says. */
cudaError_t memory_node_run(struct runtime *runtime, const struct work *work);

/** @return the memory that a node allocates or frees; of another node NULL. */
const void *memory_node_pointer(const struct work *work);

/** @return whether a graph has such a node, at any depth. */
bool memory_nodes_are_in(const struct CUgraph_st *graph);

/** @return cudaSuccess unless a graph allocates memory and has an executable graph already. */
cudaError_t memory_nodes_allow_executable(struct runtime *runtime, const struct CUgraph_st *graph);

/** An executable graph is launched: what it allocates must be free, or is freed if it was made so.
 */
cudaError_t memory_nodes_begin(struct runtime *runtime, const struct CUgraph_st *graph);

/** Graphs have gone: gives up addresses that no node has any more. */
void memory_nodes_sweep(struct runtime *runtime);

#endif

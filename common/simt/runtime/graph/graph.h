/**
 * @file graph.h
 * @brief Graphs: nodes in an order that respects their dependencies.
 *
 * A node depends on nodes made before it only, so the order of making is the
 * order of running.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_GRAPH_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_GRAPH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/stream/work.h"

struct runtime;

/** A set of nodes; does not own them. */
struct node_list {
    struct CUgraphNode_st **nodes;
    size_t count, capacity;
};

struct CUgraphNode_st {
    struct CUgraph_st *graph;
    size_t index; /**< in the graph */
    struct work work;
    struct node_list after; /**< nodes that it depends on */
    void **arguments;       /**< of a kernel: pointers into its work, once asked for; or NULL */
};

struct CUgraph_st {
    struct node_list all; /**< owned */
    struct CUgraph_st *next;
};

/** A graph made ready to run: a copy, so that the graph may change or go. */
struct CUgraphExec_st {
    struct CUgraph_st *graph;
    unsigned long long flags;
    struct CUgraphExec_st *next;
};

/** Adds a node unless it is there. @return false without memory */
bool node_list_add(struct node_list *list, struct CUgraphNode_st *node);

/** Adds all of @p from. @return false without memory */
bool node_list_merge(struct node_list *list, const struct node_list *from);

/** Frees the list, not the nodes. */
void node_list_free(struct node_list *list);

/** @return an empty graph that belongs to no list, or NULL. */
struct CUgraph_st *graph_new(void);

void graph_free(struct CUgraph_st *graph);

/** Adds a node with a copy of @p work after the nodes of @p after. */
cudaError_t graph_add(struct CUgraph_st *graph, const struct work *work,
                      const struct node_list *after, struct CUgraphNode_st **node);

/** @return true when every node of the graph is one of @p ends or comes before one of them. */
bool graph_is_joined(const struct CUgraph_st *graph, const struct node_list *ends);

/*
 * Stream capture: work becomes nodes of a graph instead of running.
 *
 * A call that is not allowed while capturing fails and spoils the capture, as
 * on a GPU: cudaStreamEndCapture() then returns cudaErrorStreamCaptureInvalidated.
 */

struct CUstream_st;
struct CUgraph_st;
struct work;

struct capture {
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    enum cudaStreamCaptureMode mode;
    uint64_t thread;
    bool spoiled;
    unsigned long long id;
    struct capture *next;
};

/** Makes work a node that depends on the stream's last captured work. */
cudaError_t capture_add(struct CUstream_st *stream, const struct work *work);

/** Marks the capture as spoiled. @return @p error */
cudaError_t capture_spoil(struct capture *capture, cudaError_t error);

/** @return an error when a stream must not be used: its capture is spoiled, or it is the default
 *  stream, which would wait for a stream that is capturing. */
cudaError_t capture_allows_use(struct runtime *runtime, const struct CUstream_st *stream);

/**
 * @brief Asked by calls that could wait for the device, like cudaMalloc().
 * @param always also in the relaxed mode: cudaDeviceSynchronize()
 */
cudaError_t capture_allows_call(struct runtime *runtime, bool always);

/** Ends the capture that a stream takes part in, without a graph. */
void capture_abandon(struct runtime *runtime, struct CUstream_st *stream);

/** @return the capture of that id, or NULL when it has ended. */
struct capture *capture_find(struct runtime *runtime, unsigned long long id);

#endif

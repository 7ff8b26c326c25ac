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
    bool disabled;          /**< of an executable graph: does nothing */
};

struct CUgraph_st {
    struct node_list all;         /**< owned */
    struct CUgraphNode_st *owner; /**< the node whose child graph it is; else NULL */
    bool frees_first;             /**< what an earlier launch allocated:
                                     cudaGraphInstantiateFlagAutoFreeOnLaunch */
    struct CUgraph_st *next;
};

/** A graph made ready to run: a copy, so that the graph may change or go. */
struct CUgraphExec_st {
    struct CUgraph_st *graph;
    unsigned long long flags;
    const struct CUgraph_st *source; /**< NULL: it is gone */
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

/** @return true for a graph of the program, also one that is a node of another one. */
bool graph_is_known(const struct runtime *runtime, cudaGraph_t handle);

/** @return cudaSuccess where nodes may be added to a graph, behind those of @p after, all its own.
 */
cudaError_t graph_takes_after(const struct runtime *runtime, cudaGraph_t graph,
                              const cudaGraphNode_t *after, size_t count);

/** Adds checked work that depends on the nodes the caller names. */
cudaError_t graph_add_checked(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                              const cudaGraphNode_t *after, size_t count, const struct work *work);

/** Work of a kernel node's parameters. The caller frees it. */
cudaError_t graph_kernel_work(struct runtime *runtime,
                              const struct cudaKernelNodeParams *parameters, struct work *work);

/** Work of a memset node's parameters. */
cudaError_t graph_set_work(const char *call, const struct cudaMemsetParams *parameters,
                           struct work *work);

/** Finds the copy of a node that an executable graph has. @param executable NULL: itself */
cudaError_t graph_find_node(struct runtime *runtime, cudaGraphExec_t executable,
                            cudaGraphNode_t *node);

/** @return a copy with the same order of nodes, child graphs included; NULL without memory. */
struct CUgraph_st *graph_copy(const struct CUgraph_st *graph);

/** Gives a node work, which it owns from here on. */
void graph_give_work(struct CUgraphNode_st *node, const struct work *work);

/** @return whether @p handle is this graph, or a child graph of it at any depth. */
bool graph_holds(const struct CUgraph_st *graph, const struct CUgraph_st *handle);

/** @return whether a node belongs to the graph or to one of its child graphs. */
bool graph_has_node(const struct CUgraph_st *graph, const struct CUgraphNode_st *node);

/** @return true when both have the same nodes of the same kinds, in the same order. */
bool graph_is_like(const struct CUgraph_st *a, const struct CUgraph_st *b);

/** work_check() of all nodes. */
cudaError_t graph_check(struct runtime *runtime, const struct CUgraph_st *graph);

/** What comes before the first node of a launch: time, and memory that an earlier launch left. */
cudaError_t graph_begin(struct runtime *runtime, const struct CUgraph_st *graph);

/** Runs all nodes that are enabled. */
cudaError_t graph_run(struct runtime *runtime, const struct CUgraph_st *graph);

/** @return true when every node from number @p first on is one of @p ends or comes before one of
 *  them. */
bool graph_is_joined(const struct CUgraph_st *graph, size_t first, const struct node_list *ends);

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
    bool borrowed; /**< the graph is the program's: cudaStreamBeginCaptureToGraph() */
    size_t first;  /**< node that was captured */
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

/** Gives a node other work of the same kind. Takes @p work, also on failure.
 *  @param executable whose node is meant; NULL: that of the graph itself */
cudaError_t graph_replace(struct runtime *runtime, cudaGraphExec_t executable, cudaGraphNode_t node,
                          struct work *work);

/** Ends the capture that a stream takes part in, without a graph. */
void capture_abandon(struct runtime *runtime, struct CUstream_st *stream);

/** @return the capture of that id, or NULL when it has ended. */
struct capture *capture_find(struct runtime *runtime, unsigned long long id);

#endif

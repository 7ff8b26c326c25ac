/**
 * @file graph_parts.c
 * @brief Nodes that are graphs themselves, nodes of events, and nodes that are switched off.
 */
#include <cuda_runtime_api.h>

#include "common/simt/runtime/graph/condition.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/state.h"

static bool is_graph(const struct runtime *runtime, const struct CUgraph_st *handle) {
    const struct CUgraph_st *graph = runtime->graphs;
    while (graph != NULL && graph != handle) {
        graph = graph->next;
    }
    return graph != NULL;
}

/** The node has a copy of the child as it is now. */
static cudaError_t add_child(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *after, size_t count, cudaGraph_t child) {
    if (!is_graph(runtime, child)) {
        return cudaErrorInvalidValue;
    }
    if (memory_nodes_are_in(child)) {
        runtime_explain(runtime, "cudaGraphAddChildGraphNode: the child graph allocates or frees "
                                 "memory, and CUDA copies no such graphs");
        return cudaErrorNotSupported;
    }
    if (conditions_are_in(child)) {
        runtime_explain(runtime, "cudaGraphAddChildGraphNode: the child graph has a conditional "
                                 "node, and CUDA copies no such graphs");
        return cudaErrorNotSupported;
    }
    const struct work work = {
        .kind = WORK_GRAPH, .call = "cudaGraphAddChildGraphNode", .graph = child};
    return graph_add_checked(runtime, node, graph, after, count, &work);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *after, size_t count,
                                       cudaGraph_t child) {
    DEVICE_CALL(runtime, add_child(runtime, node, graph, after, count, child));
}

static cudaError_t get_child(const struct CUgraphNode_st *node, cudaGraph_t *child) {
    if (node == NULL || child == NULL || node->work.kind != WORK_GRAPH) {
        return cudaErrorInvalidValue;
    }
    *child = node->work.graph;
    return cudaSuccess;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *child) {
    DEVICE_CALL(runtime, get_child(node, child));
}

/** New parameters for the nodes of a child: it must have the same nodes. */
static cudaError_t set_child(struct runtime *runtime, cudaGraphExec_t executable,
                             cudaGraphNode_t node, cudaGraph_t child) {
    cudaGraphNode_t own = node;
    if (executable == NULL || !is_graph(runtime, child)) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(graph_find_node(runtime, executable, &own));
    if (own->work.kind != WORK_GRAPH || !graph_is_like(own->work.graph, child)) {
        return cudaErrorInvalidValue;
    }
    struct work work = {.kind = WORK_GRAPH, .call = own->work.call, .graph = graph_copy(child)};
    return work.graph == NULL ? cudaErrorMemoryAllocation
                              : graph_replace(runtime, executable, node, &work);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
    DEVICE_CALL(runtime, set_child(runtime, executable, node, child));
}

static struct work work_of_event(enum work_kind kind, cudaEvent_t event) {
    return (struct work){.kind = kind,
                         .call = kind == WORK_RECORD ? "cudaGraphAddEventRecordNode"
                                                     : "cudaGraphAddEventWaitNode",
                         .event = event};
}

static cudaError_t get_event(const struct CUgraphNode_st *node, enum work_kind kind,
                             cudaEvent_t *event) {
    if (node == NULL || event == NULL || node->work.kind != kind) {
        return cudaErrorInvalidValue;
    }
    *event = node->work.event;
    return cudaSuccess;
}

static cudaError_t set_event(struct runtime *runtime, bool needs_executable,
                             cudaGraphExec_t executable, cudaGraphNode_t node, enum work_kind kind,
                             cudaEvent_t event) {
    struct work work = work_of_event(kind, event);
    return needs_executable && executable == NULL ? cudaErrorInvalidValue
                                                  : graph_replace(runtime, executable, node, &work);
}

/** The four functions for nodes that record an event, or that wait for one. */
#define NODES_OF_EVENTS(Kind, kind)                                                               \
    cudaError_t cudaGraphAddEvent##Kind##Node(cudaGraphNode_t *node, cudaGraph_t graph,           \
                                              const cudaGraphNode_t *after, size_t count,         \
                                              cudaEvent_t event) {                                \
        const struct work work = work_of_event(kind, event);                                      \
        DEVICE_CALL(runtime, graph_add_checked(runtime, node, graph, after, count, &work));       \
    }                                                                                             \
    cudaError_t cudaGraphEvent##Kind##NodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {    \
        DEVICE_CALL(runtime, get_event(node, kind, event));                                       \
    }                                                                                             \
    cudaError_t cudaGraphEvent##Kind##NodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {     \
        DEVICE_CALL(runtime, set_event(runtime, false, NULL, node, kind, event));                 \
    }                                                                                             \
    cudaError_t cudaGraphExecEvent##Kind##NodeSetEvent(cudaGraphExec_t executable,                \
                                                       cudaGraphNode_t node, cudaEvent_t event) { \
        DEVICE_CALL(runtime, set_event(runtime, true, executable, node, kind, event));            \
    }

NODES_OF_EVENTS(Record, WORK_RECORD)
NODES_OF_EVENTS(Wait, WORK_WAIT)

/** CUDA allows it for kernels, copies and memsets. */
static cudaError_t find_switch(struct runtime *runtime, cudaGraphExec_t executable,
                               cudaGraphNode_t *node) {
    CUDA_TRY(executable != NULL ? graph_find_node(runtime, executable, node)
                                : cudaErrorInvalidValue);
    enum work_kind kind = (*node)->work.kind;
    return kind == WORK_KERNEL || kind == WORK_COPY || kind == WORK_SET ? cudaSuccess
                                                                        : cudaErrorInvalidValue;
}

static cudaError_t set_enabled(struct runtime *runtime, cudaGraphExec_t executable,
                               cudaGraphNode_t node, unsigned enabled) {
    CUDA_TRY(find_switch(runtime, executable, &node));
    node->disabled = enabled == 0;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned enabled) {
    DEVICE_CALL(runtime, set_enabled(runtime, executable, node, enabled));
}

static cudaError_t get_enabled(struct runtime *runtime, cudaGraphExec_t executable,
                               cudaGraphNode_t node, unsigned *enabled) {
    CUDA_TRY(enabled != NULL ? find_switch(runtime, executable, &node) : cudaErrorInvalidValue);
    *enabled = !node->disabled;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned *enabled) {
    DEVICE_CALL(runtime, get_enabled(runtime, executable, node, enabled));
}

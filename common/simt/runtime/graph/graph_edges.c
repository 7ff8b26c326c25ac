/**
 * @file graph_edges.c
 * @brief Questions about a graph: its nodes, and which depend on which.
 */
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/state.h"

/** Whether a call asks for no elements at all of an array: CUDA refuses that (seen on an H200). */
static bool asks_for_none(const cudaGraphNode_t *nodes, const size_t *room) {
    return nodes != NULL && *room == 0;
}

/** Arrays of the program, with room for `room` elements each, and how many have been found; an
 *  array may be NULL. */
struct answer {
    cudaGraphNode_t *nodes, *others;
    cudaGraphEdgeData *edges;
    size_t room, found;
};

static void put(struct answer *answer, cudaGraphNode_t node, cudaGraphNode_t other) {
    size_t n = answer->found++;
    if (n >= answer->room) {
        return;
    }
    if (answer->nodes != NULL) {
        answer->nodes[n] = node;
    }
    if (answer->others != NULL) {
        answer->others[n] = other;
    }
    if (answer->nodes != NULL && answer->edges != NULL) {
        memset(&answer->edges[n], 0, sizeof answer->edges[n]);
    }
}

/** How many elements were handed out; without arrays how many there are. */
static size_t given(const struct answer *answer) {
    bool all = answer->nodes == NULL || answer->found < answer->room;
    return all ? answer->found : answer->room;
}

/** Hands out nodes: all, or those that depend on nothing. @p room is set to how many there are. */
static cudaError_t get_nodes(struct runtime *runtime, cudaGraph_t graph, cudaGraphNode_t *nodes,
                             size_t *room, bool roots) {
    if (!graph_is_known(runtime, graph) || room == NULL || asks_for_none(nodes, room)) {
        return cudaErrorInvalidValue;
    }
    struct answer answer = {.nodes = nodes, .room = *room};
    for (size_t i = 0; i < graph->all.count; i++) {
        struct CUgraphNode_st *node = graph->all.nodes[i];
        if (!roots || node->after.count == 0) {
            put(&answer, node, NULL);
        }
    }
    *room = given(&answer);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    DEVICE_CALL(runtime, get_nodes(runtime, graph, nodes, count, false));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    DEVICE_CALL(runtime, get_nodes(runtime, graph, nodes, count, true));
}

/** Hands out the edges of a graph, those into its first node first. */
static cudaError_t get_edges(struct runtime *runtime, cudaGraph_t graph, cudaGraphNode_t *from,
                             cudaGraphNode_t *to, cudaGraphEdgeData *edges, size_t *room) {
    if (!graph_is_known(runtime, graph) || room == NULL || (from == NULL) != (to == NULL) ||
        asks_for_none(from, room)) {
        return cudaErrorInvalidValue;
    }
    struct answer answer = {.nodes = from, .others = to, .edges = edges, .room = *room};
    for (size_t i = 0; i < graph->all.count; i++) {
        struct CUgraphNode_st *node = graph->all.nodes[i];
        for (size_t n = 0; n < node->after.count; n++) {
            put(&answer, node->after.nodes[n], node);
        }
    }
    *room = given(&answer);
    return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count) {
    DEVICE_CALL(runtime, get_edges(runtime, graph, from, to, edges, count));
}

static cudaError_t get_dependencies(const struct CUgraphNode_st *node, cudaGraphNode_t *nodes,
                                    cudaGraphEdgeData *edges, size_t *room) {
    if (node == NULL || room == NULL || asks_for_none(nodes, room)) {
        return cudaErrorInvalidValue;
    }
    struct answer answer = {.nodes = nodes, .edges = edges, .room = *room};
    for (size_t i = 0; i < node->after.count; i++) {
        put(&answer, node->after.nodes[i], NULL);
    }
    *room = given(&answer);
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                         cudaGraphEdgeData *edges, size_t *count) {
    DEVICE_CALL(runtime, get_dependencies(node, nodes, edges, count));
}

static bool depends_on(const struct CUgraphNode_st *node, const struct CUgraphNode_st *other) {
    for (size_t i = 0; i < node->after.count; i++) {
        if (node->after.nodes[i] == other) {
            return true;
        }
    }
    return false;
}

static cudaError_t get_dependents(const struct CUgraphNode_st *node, cudaGraphNode_t *nodes,
                                  cudaGraphEdgeData *edges, size_t *room) {
    if (node == NULL || room == NULL || asks_for_none(nodes, room)) {
        return cudaErrorInvalidValue;
    }
    struct answer answer = {.nodes = nodes, .edges = edges, .room = *room};
    const struct node_list *all = &node->graph->all;
    for (size_t i = node->index + 1; i < all->count; i++) {
        if (depends_on(all->nodes[i], node)) {
            put(&answer, all->nodes[i], NULL);
        }
    }
    *room = given(&answer);
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                           cudaGraphEdgeData *edges, size_t *count) {
    DEVICE_CALL(runtime, get_dependents(node, nodes, edges, count));
}

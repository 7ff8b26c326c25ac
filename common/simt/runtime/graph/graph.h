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

#endif

#include "common/simt/runtime/graph/graph.h"

#include <stdlib.h>

bool node_list_add(struct node_list *list, struct CUgraphNode_st *node) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->nodes[i] == node) {
            return true;
        }
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
        struct CUgraphNode_st **nodes = realloc(list->nodes, capacity * sizeof(*nodes));
        if (nodes == NULL) {
            return false;
        }
        list->nodes = nodes;
        list->capacity = capacity;
    }
    list->nodes[list->count++] = node;
    return true;
}

bool node_list_merge(struct node_list *list, const struct node_list *from) {
    for (size_t i = 0; i < from->count; i++) {
        if (!node_list_add(list, from->nodes[i])) {
            return false;
        }
    }
    return true;
}

void node_list_free(struct node_list *list) {
    free(list->nodes);
    *list = (struct node_list){0};
}

struct CUgraph_st *graph_new(void) {
    return calloc(1, sizeof(struct CUgraph_st));
}

static void node_free(struct CUgraphNode_st *node) {
    work_free(&node->work);
    node_list_free(&node->after);
    free(node->arguments);
    free(node);
}

void graph_free(struct CUgraph_st *graph) {
    if (graph == NULL) {
        return;
    }
    for (size_t i = 0; i < graph->all.count; i++) {
        node_free(graph->all.nodes[i]);
    }
    node_list_free(&graph->all);
    free(graph);
}

cudaError_t graph_add(struct CUgraph_st *graph, const struct work *work,
                      const struct node_list *after, struct CUgraphNode_st **node) {
    struct CUgraphNode_st *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return cudaErrorMemoryAllocation;
    }
    made->graph = graph;
    made->index = graph->all.count;
    cudaError_t error = work_duplicate(&made->work, work);
    if (error != cudaSuccess || !node_list_merge(&made->after, after) ||
        !node_list_add(&graph->all, made)) {
        node_free(made);
        return cudaErrorMemoryAllocation;
    }
    *node = made;
    return cudaSuccess;
}

bool graph_is_joined(const struct CUgraph_st *graph, const struct node_list *ends) {
    size_t count = graph->all.count;
    bool *reached = calloc(count + 1, sizeof *reached);
    if (reached == NULL) {
        return false;
    }
    for (size_t i = 0; i < ends->count; i++) {
        reached[ends->nodes[i]->index] = true;
    }
    bool joined = true;
    for (size_t i = count; i-- > 0;) {
        const struct node_list *after = &graph->all.nodes[i]->after;
        joined = joined && reached[i];
        for (size_t d = 0; d < after->count; d++) {
            reached[after->nodes[d]->index] = true;
        }
    }
    free(reached);
    return joined;
}

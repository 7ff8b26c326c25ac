#include "common/simt/runtime/graph/graph.h"

#include <stdlib.h>

#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/graph/memory_nodes.h"
#include "common/simt/runtime/state.h"

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
    struct work copy;
    cudaError_t error = work_duplicate(&copy, work);
    graph_give_work(made, &copy);
    if (error != cudaSuccess || !node_list_merge(&made->after, after) ||
        !node_list_add(&graph->all, made)) {
        node_free(made);
        return cudaErrorMemoryAllocation;
    }
    *node = made;
    return cudaSuccess;
}

struct CUgraph_st *graph_copy(const struct CUgraph_st *graph) {
    struct CUgraph_st *copy = graph_new();
    if (copy != NULL) {
        copy->frees_first = graph->frees_first;
    }
    for (size_t i = 0; copy != NULL && i < graph->all.count; i++) {
        const struct CUgraphNode_st *node = graph->all.nodes[i];
        struct node_list after = {0};
        struct CUgraphNode_st *made = NULL;
        bool good = true;
        for (size_t d = 0; good && d < node->after.count; d++) {
            good = node_list_add(&after, copy->all.nodes[node->after.nodes[d]->index]);
        }
        good = good && graph_add(copy, &node->work, &after, &made) == cudaSuccess;
        node_list_free(&after);
        if (!good) {
            graph_free(copy);
            return NULL;
        }
    }
    return copy;
}

void graph_give_work(struct CUgraphNode_st *node, const struct work *work) {
    node->work = *work;
    struct CUgraph_st *const *graphs;
    size_t count = work_graphs(work, &graphs);
    for (size_t n = 0; n < count; n++) {
        graphs[n]->owner = node;
    }
}

bool graph_holds(const struct CUgraph_st *graph, const struct CUgraph_st *handle) {
    bool found = graph == handle;
    for (size_t i = 0; !found && i < graph->all.count; i++) {
        struct CUgraph_st *const *inside;
        size_t count = work_graphs(&graph->all.nodes[i]->work, &inside);
        for (size_t n = 0; !found && n < count; n++) {
            found = graph_holds(inside[n], handle);
        }
    }
    return found;
}

bool graph_has_node(const struct CUgraph_st *graph, const struct CUgraphNode_st *node) {
    bool found = false;
    for (size_t i = 0; !found && i < graph->all.count; i++) {
        const struct CUgraphNode_st *here = graph->all.nodes[i];
        struct CUgraph_st *const *inside;
        size_t count = work_graphs(&here->work, &inside);
        found = here == node;
        for (size_t n = 0; !found && n < count; n++) {
            found = graph_has_node(inside[n], node);
        }
    }
    return found;
}

static bool is_like(const struct CUgraphNode_st *x, const struct CUgraphNode_st *y) {
    struct CUgraph_st *const *in_x, *const *in_y;
    size_t count = work_graphs(&x->work, &in_x);
    bool same =
        x->work.kind == y->work.kind && x->after.count == y->after.count &&
        work_graphs(&y->work, &in_y) == count &&
        (x->work.kind != WORK_CONDITION || x->work.condition.type == y->work.condition.type) &&
        memory_node_pointer(&x->work) == memory_node_pointer(&y->work);
    for (size_t n = 0; same && n < count; n++) {
        same = graph_is_like(in_x[n], in_y[n]);
    }
    for (size_t d = 0; same && d < x->after.count; d++) {
        same = x->after.nodes[d]->index == y->after.nodes[d]->index;
    }
    return same;
}

bool graph_is_like(const struct CUgraph_st *a, const struct CUgraph_st *b) {
    bool same = a->all.count == b->all.count;
    for (size_t i = 0; same && i < a->all.count; i++) {
        same = is_like(a->all.nodes[i], b->all.nodes[i]);
    }
    return same;
}

cudaError_t graph_check(struct runtime *runtime, const struct CUgraph_st *graph) {
    for (size_t i = 0; i < graph->all.count; i++) {
        CUDA_TRY(work_check(runtime, &graph->all.nodes[i]->work));
    }
    return cudaSuccess;
}

cudaError_t graph_begin(struct runtime *runtime, const struct CUgraph_st *graph) {
    const struct simt_cost cost = {.kind = SIMT_COST_GRAPH,
                                   .first = runtime->clock <= runtime->host_clock};
    CUDA_TRY(memory_nodes_begin(runtime, graph));
    simt_model_advance(&runtime->clock, runtime->settings.gpu, &cost);
    return cudaSuccess;
}

cudaError_t graph_run(struct runtime *runtime, const struct CUgraph_st *graph) {
    for (size_t i = 0; i < graph->all.count; i++) {
        const struct CUgraphNode_st *node = graph->all.nodes[i];
        if (!node->disabled) {
            CUDA_TRY(work_check(runtime, &node->work)); /* memory may have been freed since */
            CUDA_TRY(work_run(runtime, &node->work, true));
        }
    }
    return cudaSuccess;
}

bool graph_is_joined(const struct CUgraph_st *graph, size_t first, const struct node_list *ends) {
    size_t count = graph->all.count;
    bool *reached = calloc(count + 1, sizeof *reached);
    if (reached == NULL) {
        return false;
    }
    for (size_t i = 0; i < ends->count; i++) {
        reached[ends->nodes[i]->index] = true;
    }
    bool joined = true;
    for (size_t i = count; i-- > first;) {
        const struct node_list *after = &graph->all.nodes[i]->after;
        joined = joined && reached[i];
        for (size_t d = 0; d < after->count; d++) {
            reached[after->nodes[d]->index] = true;
        }
    }
    free(reached);
    return joined;
}

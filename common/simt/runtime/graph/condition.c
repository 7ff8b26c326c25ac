#include "common/simt/runtime/graph/condition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"

void conditions_forget(struct conditions *c, const struct CUgraph_st *graph) {
    for (size_t n = 0; n < c->values.count; n++) {
        c->all[n].graph = c->all[n].graph == graph ? NULL : c->all[n].graph;
    }
}

/** Kernels of other devices may run meanwhile, so memory never moves: pages of handles that nobody
 *  makes are never touched. @return false without memory */
static bool make_room(struct conditions *c) {
    if (c->all == NULL) {
        c->all = calloc(CONDITIONS_MOST, sizeof *c->all);
        c->values.values = calloc(CONDITIONS_MOST, sizeof *c->values.values);
    }
    return c->all != NULL && c->values.values != NULL && c->values.count < CONDITIONS_MOST;
}

static cudaError_t create(struct runtime *runtime, cudaGraphConditionalHandle *handle,
                          cudaGraph_t graph, unsigned initial, unsigned flags) {
    struct conditions *c = &runtime->conditions;
    if (handle == NULL || flags > cudaGraphCondAssignDefault) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(graph_takes_after(runtime, graph, NULL, 0));
    if (!make_room(c)) {
        return cudaErrorMemoryAllocation;
    }
    c->all[c->values.count] = (struct condition){
        .graph = graph, .initial = initial, .resets = flags == cudaGraphCondAssignDefault};
    c->values.values[c->values.count++] = 0;
    *handle = c->values.count;
    return cudaSuccess;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned initial, unsigned flags) {
    DEVICE_CALL(runtime, create(runtime, handle, graph, initial, flags));
}

static bool has_size(enum cudaGraphConditionalNodeType type, unsigned size) {
    switch (type) {
    case cudaGraphCondTypeIf:
        return size == 1 || size == 2;
    case cudaGraphCondTypeWhile:
        return size == 1;
    case cudaGraphCondTypeSwitch:
        return size > 0 && size <= CONDITION_MOST_BODIES;
    default:
        return false;
    }
}

/** The condition of a handle that a new node of a graph may have; NULL: explained. */
static struct condition *free_condition(struct runtime *runtime, cudaGraphConditionalHandle handle,
                                        cudaGraph_t graph) {
    struct conditions *c = &runtime->conditions;
    struct condition *condition =
        handle > 0 && handle <= c->values.count ? &c->all[handle - 1] : NULL;
    if (condition == NULL || condition->graph == NULL) {
        runtime_explain(runtime,
                        "cudaGraphAddNode: %llu is no handle of a condition (see "
                        "cudaGraphConditionalHandleCreate)",
                        handle);
    } else if (condition->has_node) {
        runtime_explain(runtime, "cudaGraphAddNode: another node has the condition already");
    } else if (!graph_holds(condition->graph, graph)) {
        runtime_explain(runtime, "cudaGraphAddNode: the condition was made for another graph");
    } else {
        return condition;
    }
    return NULL;
}

static cudaError_t add(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                       const cudaGraphNode_t *after, size_t count, const struct condition_work *c) {
    CUDA_TRY(has_size(c->type, c->size) ? graph_takes_after(runtime, graph, after, count)
                                        : cudaErrorInvalidValue);
    struct condition *condition = free_condition(runtime, c->handle, graph);
    struct work work = {.kind = WORK_CONDITION, .call = "cudaGraphAddNode", .condition = *c};
    if (condition == NULL) {
        return cudaErrorInvalidValue;
    }
    work.condition.bodies = calloc(c->size, sizeof *work.condition.bodies);
    bool made = work.condition.bodies != NULL;
    for (unsigned n = 0; made && n < c->size; n++) {
        work.condition.bodies[n] = graph_new();
        made = work.condition.bodies[n] != NULL;
    }
    cudaError_t error = made ? graph_add_checked(runtime, node, graph, after, count, &work)
                             : cudaErrorMemoryAllocation;
    work_free(&work);
    condition->has_node = error == cudaSuccess;
    return error;
}

cudaError_t simt_add_condition(cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *after, size_t count,
                               cudaGraphConditionalHandle handle,
                               enum cudaGraphConditionalNodeType type, unsigned size) {
    const struct condition_work work = {.handle = handle, .type = type, .size = size};
    DEVICE_CALL(runtime, add(runtime, node, graph, after, count, &work));
}

static cudaError_t get_body(const struct CUgraphNode_st *node, unsigned number, cudaGraph_t *body) {
    if (node == NULL || body == NULL || node->work.kind != WORK_CONDITION ||
        number >= node->work.condition.size) {
        return cudaErrorInvalidValue;
    }
    *body = node->work.condition.bodies[number];
    return cudaSuccess;
}

cudaError_t simt_ask_body(cudaGraphNode_t node, unsigned number, cudaGraph_t *body) {
    DEVICE_CALL(runtime, get_body(node, number, body));
}

void conditions_begin(struct conditions *c, const struct CUgraph_st *graph) {
    for (size_t i = 0; i < graph->all.count; i++) {
        const struct work *work = &graph->all.nodes[i]->work;
        struct CUgraph_st *const *inside;
        size_t count = work_graphs(work, &inside);
        for (size_t n = 0; n < count; n++) {
            conditions_begin(c, inside[n]);
        }
        if (work->kind == WORK_CONDITION && c->all[work->condition.handle - 1].resets) {
            c->values.values[work->condition.handle - 1] =
                c->all[work->condition.handle - 1].initial;
        }
    }
}

bool conditions_are_in(const struct CUgraph_st *graph) {
    bool found = false;
    for (size_t i = 0; !found && i < graph->all.count; i++) {
        const struct work *work = &graph->all.nodes[i]->work;
        found = work->kind == WORK_CONDITION ||
                (work->kind == WORK_GRAPH && conditions_are_in(work->graph));
    }
    return found;
}

/** @return what a body must not have; NULL: the device can launch it. */
static const char *refused_in_body(const struct work *work) {
    switch (work->kind) {
    case WORK_HOST:
        return "a host function";
    case WORK_RECORD:
    case WORK_WAIT:
        return "an event";
    default:
        return NULL;
    }
}

static cudaError_t check(const struct runtime *runtime, const struct CUgraph_st *graph,
                         bool in_body) {
    for (size_t i = 0; i < graph->all.count; i++) {
        const struct work *work = &graph->all.nodes[i]->work;
        const char *refused = in_body ? refused_in_body(work) : NULL;
        struct CUgraph_st *const *inside;
        size_t count = work_graphs(work, &inside);
        if (refused != NULL) {
            runtime_explain(runtime,
                            "cudaGraphInstantiate: the body of a conditional node has %s: only "
                            "kernels, copies, memsets, empty nodes, child graphs and conditional "
                            "nodes may be there",
                            refused);
            return cudaErrorNotSupported;
        }
        for (size_t n = 0; n < count; n++) {
            CUDA_TRY(check(runtime, inside[n], in_body || work->kind == WORK_CONDITION));
        }
    }
    return cudaSuccess;
}

cudaError_t conditions_check(const struct runtime *runtime, const struct CUgraph_st *graph) {
    return check(runtime, graph, false);
}

/** How often a body may run one after the other without setting a condition. */
static uint64_t most_rounds(const struct runtime *runtime) {
    const uint64_t share = 1000, limit = runtime->settings.instruction_limit;
    return limit == 0 ? UINT64_MAX : limit / share + 1;
}

/** @return whether a kernel of a body, or of one in it, can set a condition. */
static bool can_set(const struct CUgraph_st *body) {
    bool can = false;
    for (size_t i = 0; !can && i < body->all.count; i++) {
        const struct work *work = &body->all.nodes[i]->work;
        struct CUgraph_st *const *inside;
        size_t count = work_graphs(work, &inside);
        can = work->kind == WORK_KERNEL && work->kernel.kernel->info.sets_conditions;
        for (size_t n = 0; !can && n < count; n++) {
            can = can_set(inside[n]);
        }
    }
    return can;
}

/** A loop that can only go on, as nothing in its body has set its condition for so long. */
static void fail_endless(struct runtime *runtime, uint64_t rounds) {
    struct simt_fault fault = {.kind = SIMT_FAULT_ENDLESS};
    snprintf(fault.kernel, sizeof fault.kernel, "(a conditional node)");
    snprintf(fault.text, sizeof fault.text,
             "the body of a WHILE node has run %" PRIu64 " time%s without setting a condition, so "
             "the loop goes on for ever",
             rounds, simt_plural(rounds));
    fault.hint = rounds == 1 ? "a kernel in the body must call cudaGraphSetConditional(handle, 0) "
                               "at last; none does"
                             : "a kernel in the body must call cudaGraphSetConditional(handle, 0) "
                               "at last; if the loop is only long, raise SIMT_INSTRUCTION_LIMIT";
    runtime_take_fault(runtime, &fault);
}

static cudaError_t run_while(struct runtime *runtime, const struct condition_work *work) {
    const struct simt_conditions *values = &runtime->conditions.values;
    const uint64_t most = can_set(work->bodies[0]) ? most_rounds(runtime) : 1;
    uint64_t rounds = 0, sets = values->sets;
    while (values->values[work->handle - 1] != 0 && runtime->pending == cudaSuccess) {
        CUDA_TRY(graph_run(runtime, work->bodies[0]));
        rounds = values->sets == sets ? rounds + 1 : 0;
        sets = values->sets;
        if (rounds >= most && runtime->pending == cudaSuccess) {
            fail_endless(runtime, rounds);
        }
    }
    return cudaSuccess;
}

cudaError_t condition_run(struct runtime *runtime, const struct work *node) {
    const struct condition_work *work = &node->condition;
    unsigned value = runtime->conditions.values.values[work->handle - 1];
    if (work->type == cudaGraphCondTypeWhile) {
        return run_while(runtime, work);
    }
    unsigned number = work->type == cudaGraphCondTypeSwitch ? value : value == 0;
    return number < work->size ? graph_run(runtime, work->bodies[number]) : cudaSuccess;
}

/**
 * @file graph_api.c
 * @brief Building graphs node by node, making them ready, running them.
 */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/graph/condition.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

static bool is_graph(const struct runtime *runtime, cudaGraph_t handle) {
    const struct CUgraph_st *graph = runtime->graphs;
    while (graph != NULL && graph != handle) {
        graph = graph->next;
    }
    return graph != NULL && handle != NULL;
}

static const struct capture *capture_into(const struct runtime *runtime, cudaGraph_t handle) {
    const struct capture *capture = runtime->captures;
    while (capture != NULL && capture->graph != handle) {
        capture = capture->next;
    }
    return capture;
}

bool graph_is_known(const struct runtime *runtime, cudaGraph_t handle) {
    const struct CUgraph_st *graph = runtime->graphs;
    while (graph != NULL && !graph_holds(graph, handle)) {
        graph = graph->next;
    }
    return graph != NULL && handle != NULL;
}

/** A graph of the program, or one that a capture makes: nodes may be added to both. */
static bool takes_nodes(const struct runtime *runtime, cudaGraph_t handle) {
    return handle != NULL &&
           (capture_into(runtime, handle) != NULL || graph_is_known(runtime, handle));
}

static bool is_executable(const struct runtime *runtime, cudaGraphExec_t handle) {
    const struct CUgraphExec_st *executable = runtime->executables;
    while (executable != NULL && executable != handle) {
        executable = executable->next;
    }
    return executable != NULL && handle != NULL;
}

/** Adds a new graph to the list of the runtime; NULL: there was no memory for it. */
static cudaError_t register_graph(struct runtime *runtime, struct CUgraph_st *made,
                                  cudaGraph_t *graph) {
    if (made == NULL) {
        return cudaErrorMemoryAllocation;
    }
    made->next = runtime->graphs;
    runtime->graphs = made;
    *graph = made;
    return cudaSuccess;
}

static cudaError_t create(struct runtime *runtime, cudaGraph_t *graph, unsigned flags) {
    if (graph == NULL || flags != 0) {
        return cudaErrorInvalidValue;
    }
    return register_graph(runtime, graph_new(), graph);
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
    DEVICE_CALL(runtime, create(runtime, graph, flags));
}

static cudaError_t destroy(struct runtime *runtime, cudaGraph_t graph) {
    if (!is_graph(runtime, graph)) {
        return cudaErrorInvalidValue;
    }
    for (const struct capture *c = runtime->captures; c != NULL; c = c->next) {
        if (graph_holds(graph, c->graph)) {
            return cudaErrorIllegalState;
        }
    }
    struct CUgraph_st **link = &runtime->graphs;
    while (*link != graph) {
        link = &(*link)->next;
    }
    *link = graph->next;
    conditions_forget(&runtime->conditions, graph);
    for (struct CUgraphExec_st *e = runtime->executables; e != NULL; e = e->next) {
        e->source = e->source == graph ? NULL : e->source;
    }
    graph_free(graph);
    memory_nodes_sweep(runtime);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    DEVICE_CALL(runtime, destroy(runtime, graph));
}

cudaError_t graph_takes_after(const struct runtime *runtime, cudaGraph_t graph,
                              const cudaGraphNode_t *after, size_t count) {
    if (!takes_nodes(runtime, graph) || (count > 0 && after == NULL)) {
        return cudaErrorInvalidValue;
    }
    for (size_t i = 0; i < count; i++) {
        if (after[i] == NULL || after[i]->graph != graph) {
            return cudaErrorInvalidValue;
        }
    }
    return cudaSuccess;
}

cudaError_t graph_add_checked(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                              const cudaGraphNode_t *after, size_t count, const struct work *work) {
    if (node == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(graph_takes_after(runtime, graph, after, count));
    CUDA_TRY(work_check_recorded(runtime, work));
    struct node_list list = {.nodes = (cudaGraphNode_t *)(uintptr_t)after, .count = count};
    return graph_add(graph, work, &list, node);
}

cudaError_t graph_kernel_work(struct runtime *runtime,
                              const struct cudaKernelNodeParams *parameters, struct work *work) {
    if (parameters == NULL || parameters->extra != NULL) {
        return cudaErrorInvalidValue;
    }
    struct kernel_work shape = {.grid = parameters->gridDim,
                                .block = parameters->blockDim,
                                .shared = parameters->sharedMemBytes};
    return launch_make(runtime, parameters->func, &shape, parameters->kernelParams, work);
}

static cudaError_t add_kernel(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                              const cudaGraphNode_t *after, size_t count,
                              const struct cudaKernelNodeParams *parameters) {
    struct work work = {.kind = WORK_EMPTY};
    cudaError_t error = graph_kernel_work(runtime, parameters, &work);
    if (error == cudaSuccess) {
        error = graph_add_checked(runtime, node, graph, after, count, &work);
    }
    work_free(&work);
    return error;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t count,
                                   const struct cudaKernelNodeParams *parameters) {
    DEVICE_CALL(runtime, add_kernel(runtime, node, graph, after, count, parameters));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *after, size_t count, void *to,
                                     const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    struct work work = work_copy_bytes("cudaGraphAddMemcpyNode1D", to, from, bytes, kind);
    DEVICE_CALL(runtime, graph_add_checked(runtime, node, graph, after, count, &work));
}

cudaError_t graph_set_work(const char *call, const struct cudaMemsetParams *parameters,
                           struct work *work) {
    if (parameters == NULL || (parameters->elementSize != 1 && parameters->elementSize != 2 &&
                               parameters->elementSize != 4)) {
        return cudaErrorInvalidValue;
    }
    *work = (struct work){.kind = WORK_SET, .call = call};
    work->set = (struct set_work){
        .to = {.pointer = parameters->dst, .pitch = parameters->pitch},
        .box = {.width = parameters->width * parameters->elementSize,
                .height = parameters->height,
                .depth = 1},
        .value = parameters->value,
        .element = parameters->elementSize,
    };
    return cudaSuccess;
}

static cudaError_t add_set(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                           const cudaGraphNode_t *after, size_t count,
                           const struct cudaMemsetParams *parameters) {
    struct work work;
    CUDA_TRY(graph_set_work("cudaGraphAddMemsetNode", parameters, &work));
    return graph_add_checked(runtime, node, graph, after, count, &work);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemsetParams *parameters) {
    DEVICE_CALL(runtime, add_set(runtime, node, graph, after, count, parameters));
}

static cudaError_t add_host(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *after, size_t count,
                            const struct cudaHostNodeParams *parameters) {
    if (parameters == NULL) {
        return cudaErrorInvalidValue;
    }
    struct work work = {.kind = WORK_HOST, .call = "cudaGraphAddHostNode"};
    work.host = (struct host_work){.function = parameters->fn, .data = parameters->userData};
    return graph_add_checked(runtime, node, graph, after, count, &work);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *after, size_t count,
                                 const struct cudaHostNodeParams *parameters) {
    DEVICE_CALL(runtime, add_host(runtime, node, graph, after, count, parameters));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *after, size_t count) {
    struct work work = {.kind = WORK_EMPTY, .call = "cudaGraphAddEmptyNode"};
    DEVICE_CALL(runtime, graph_add_checked(runtime, node, graph, after, count, &work));
}

static cudaError_t get_type(const struct CUgraphNode_st *node, enum cudaGraphNodeType *type) {
    if (node == NULL || type == NULL) {
        return cudaErrorInvalidValue;
    }
    switch (node->work.kind) {
    case WORK_COLLECTIVE: /* a kernel, as NCCL has it; none whose parameters can be asked for */
    case WORK_KERNEL:
        *type = cudaGraphNodeTypeKernel;
        break;
    case WORK_COPY:
        *type = cudaGraphNodeTypeMemcpy;
        break;
    case WORK_SET:
        *type = cudaGraphNodeTypeMemset;
        break;
    case WORK_HOST:
        *type = cudaGraphNodeTypeHost;
        break;
    case WORK_GRAPH:
        *type = cudaGraphNodeTypeGraph;
        break;
    case WORK_CONDITION:
        *type = cudaGraphNodeTypeConditional;
        break;
    case WORK_RECORD:
        *type = cudaGraphNodeTypeEventRecord;
        break;
    case WORK_WAIT:
        *type = cudaGraphNodeTypeWaitEvent;
        break;
    case WORK_ALLOCATE:
        *type = cudaGraphNodeTypeMemAlloc;
        break;
    case WORK_RELEASE:
        *type = cudaGraphNodeTypeMemFree;
        break;
    case WORK_EMPTY:
        *type = cudaGraphNodeTypeEmpty;
        break;
    }
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
    DEVICE_CALL(runtime, get_type(node, type));
}

/** Pointers to the arguments in the node's own copy of them. @return false without memory */
static bool point_to_arguments(struct CUgraphNode_st *node) {
    const struct kernel_work *work = &node->work.kernel;
    const struct simt_kernel_info *info = &work->kernel->info;
    free(node->arguments);
    node->arguments = calloc(info->parameter_count + 1, sizeof *node->arguments);
    for (size_t i = 0; node->arguments != NULL && i < info->parameter_count; i++) {
        node->arguments[i] = work->parameters + info->parameter_offsets[i];
    }
    return node->arguments != NULL;
}

static cudaError_t get_kernel(struct CUgraphNode_st *node,
                              struct cudaKernelNodeParams *parameters) {
    if (node == NULL || parameters == NULL || node->work.kind != WORK_KERNEL) {
        return cudaErrorInvalidValue;
    }
    const struct kernel_work *work = &node->work.kernel;
    if (!point_to_arguments(node)) {
        return cudaErrorMemoryAllocation;
    }
    *parameters = (struct cudaKernelNodeParams){.func = (void *)(uintptr_t)work->kernel->host,
                                                .gridDim = work->grid,
                                                .blockDim = work->block,
                                                .sharedMemBytes = (unsigned)work->shared,
                                                .kernelParams = node->arguments};
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                         struct cudaKernelNodeParams *parameters) {
    DEVICE_CALL(runtime, get_kernel(node, parameters));
}

/** Whether the grid is cooperative, and its clusters; of the others nothing is kept. */
static cudaError_t get_attribute(const struct CUgraphNode_st *node, cudaLaunchAttributeID attribute,
                                 cudaLaunchAttributeValue *value) {
    if (node == NULL || value == NULL || node->work.kind != WORK_KERNEL) {
        return cudaErrorInvalidValue;
    }
    memset(value, 0, sizeof *value);
    if (attribute == cudaLaunchAttributeClusterDimension) {
        const dim3 cluster = cluster_of(&node->work.kernel);
        value->clusterDim.x = cluster.x;
        value->clusterDim.y = cluster.y;
        value->clusterDim.z = cluster.z;
        return cudaSuccess;
    }
    if (attribute != cudaLaunchAttributeCooperative) {
        return cudaErrorNotSupported;
    }
    value->cooperative = node->work.kernel.cooperative;
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value) {
    DEVICE_CALL(runtime, get_attribute(node, attribute, value));
}

/** An area as the 3D copies want it: planes are rows of the pitch. */
static struct cudaPitchedPtr pitched(const struct area *area, const struct box *box) {
    size_t pitch = area->pitch > 0 ? area->pitch : box->width;
    size_t rows = area->slice > 0 && pitch > 0 ? area->slice / pitch : box->height;
    return (struct cudaPitchedPtr){
        .ptr = area->pointer, .pitch = pitch, .xsize = box->width, .ysize = rows};
}

static cudaError_t get_copy(const struct CUgraphNode_st *node, struct cudaMemcpy3DParms *p) {
    if (node == NULL || p == NULL || node->work.kind != WORK_COPY) {
        return cudaErrorInvalidValue;
    }
    const struct copy_work *work = &node->work.copy;
    *p = (struct cudaMemcpy3DParms){
        .srcPtr = pitched(&work->from, &work->box),
        .dstPtr = pitched(&work->to, &work->box),
        .extent = {.width = work->box.width, .height = work->box.height, .depth = work->box.depth},
        .kind = work->kind};
    return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *p) {
    DEVICE_CALL(runtime, get_copy(node, p));
}

static cudaError_t get_set(const struct CUgraphNode_st *node, struct cudaMemsetParams *parameters) {
    if (node == NULL || parameters == NULL || node->work.kind != WORK_SET) {
        return cudaErrorInvalidValue;
    }
    const struct set_work *work = &node->work.set;
    *parameters = (struct cudaMemsetParams){.dst = work->to.pointer,
                                            .pitch = work->to.pitch,
                                            .value = work->value,
                                            .elementSize = work->element,
                                            .width = work->box.width / work->element,
                                            .height = work->box.height};
    return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemsetParams *parameters) {
    DEVICE_CALL(runtime, get_set(node, parameters));
}

static cudaError_t clone_graph(struct runtime *runtime, cudaGraph_t *copy, cudaGraph_t graph) {
    if (copy == NULL || !graph_is_known(runtime, graph)) {
        return cudaErrorInvalidValue;
    }
    if (conditions_are_in(graph) || memory_nodes_are_in(graph)) {
        runtime_explain(runtime,
                        "cudaGraphClone: the graph has a conditional node or allocates memory, and "
                        "CUDA copies no such graphs");
        return cudaErrorNotSupported;
    }
    return register_graph(runtime, graph_copy(graph), copy);
}

cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph) {
    DEVICE_CALL(runtime, clone_graph(runtime, copy, graph));
}

static cudaError_t instantiate(struct runtime *runtime, cudaGraphExec_t *executable,
                               cudaGraph_t graph, unsigned long long flags) {
    if (executable == NULL || !is_graph(runtime, graph)) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(conditions_check(runtime, graph));
    CUDA_TRY(memory_nodes_allow_executable(runtime, graph));
    struct CUgraphExec_st *made = calloc(1, sizeof *made);
    struct CUgraph_st *copy = graph_copy(graph);
    if (made == NULL || copy == NULL) {
        free(made);
        graph_free(copy);
        return cudaErrorMemoryAllocation;
    }
    copy->frees_first = (flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0;
    *made = (struct CUgraphExec_st){
        .graph = copy, .flags = flags, .source = graph, .next = runtime->executables};
    runtime->executables = made;
    *executable = made;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags) {
    DEVICE_CALL(runtime, instantiate(runtime, executable, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags) {
    DEVICE_CALL(runtime, instantiate(runtime, executable, graph, flags));
}

static cudaError_t instantiate_with(struct runtime *runtime, cudaGraphExec_t *executable,
                                    cudaGraph_t graph, cudaGraphInstantiateParams *parameters) {
    if (parameters == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = instantiate(runtime, executable, graph, parameters->flags);
    parameters->result_out =
        error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
    parameters->errNode_out = NULL;
    return error;
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters) {
    DEVICE_CALL(runtime, instantiate_with(runtime, executable, graph, parameters));
}

static cudaError_t get_flags(struct runtime *runtime, cudaGraphExec_t executable,
                             unsigned long long *flags) {
    if (!is_executable(runtime, executable) || flags == NULL) {
        return cudaErrorInvalidValue;
    }
    *flags = executable->flags;
    return cudaSuccess;
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long *flags) {
    DEVICE_CALL(runtime, get_flags(runtime, executable, flags));
}

/** Runs the nodes. A stream that is being captured takes no graph, as on a GPU. */
static cudaError_t launch_in(struct runtime *runtime, cudaGraphExec_t executable,
                             struct CUstream_st *stream) {
    if (!is_executable(runtime, executable) || stream == NULL) {
        return stream == NULL ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
    }
    if (stream->capture != NULL) {
        return capture_spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
    }
    cudaError_t error = capture_allows_use(runtime, stream);
    const struct work work = {
        .kind = WORK_GRAPH, .call = "cudaGraphLaunch", .graph = executable->graph};
    if (error == cudaSuccess && flight_is_needed(runtime, stream, &work)) {
        return flight_add(runtime, stream, &work);
    }
    order_begin(runtime, stream);
    if (error == cudaSuccess) {
        error = graph_begin(runtime, executable->graph);
    }
    if (error == cudaSuccess) {
        conditions_begin(&runtime->conditions, executable->graph);
        error = graph_run(runtime, executable->graph);
        flights_stir(runtime);
    }
    order_end(runtime, stream, "a graph");
    return error;
}

static cudaError_t launch(struct runtime *runtime, cudaGraphExec_t executable,
                          cudaStream_t handle) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    int device = runtime->device;
    runtime_select(runtime, stream != NULL ? stream->device : device);
    cudaError_t error = launch_in(runtime, executable, stream);
    runtime_select(runtime, device);
    return error;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    DEVICE_CALL(runtime, launch(runtime, executable, stream));
}

static cudaError_t upload(struct runtime *runtime, cudaGraphExec_t executable,
                          cudaStream_t stream) {
    return is_executable(runtime, executable) && stream_find(runtime, stream) != NULL
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
    DEVICE_CALL(runtime, upload(runtime, executable, stream));
}

static cudaError_t destroy_executable(struct runtime *runtime, cudaGraphExec_t executable) {
    if (!is_executable(runtime, executable)) {
        return cudaErrorInvalidValue;
    }
    struct CUgraphExec_st **link = &runtime->executables;
    while (*link != executable) {
        link = &(*link)->next;
    }
    *link = executable->next;
    graph_free(executable->graph);
    free(executable);
    memory_nodes_sweep(runtime);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    DEVICE_CALL(runtime, destroy_executable(runtime, executable));
}

/** @return the copy of a node that @p graph has, a copy of the node's graph or of one that holds
 * it; NULL: there is none. */
static struct CUgraphNode_st *twin_of(struct CUgraph_st *graph, const struct CUgraphNode_st *node) {
    const struct CUgraphNode_st *owner = node->graph->owner;
    if (owner != NULL) {
        struct CUgraph_st *const *own, *const *inside;
        size_t count = work_graphs(&owner->work, &own), number = 0;
        while (number < count && own[number] != node->graph) {
            number++;
        }
        const struct CUgraphNode_st *parent = twin_of(graph, owner);
        count = parent != NULL ? work_graphs(&parent->work, &inside) : 0;
        graph = number < count ? inside[number] : NULL;
    }
    return graph != NULL && node->index < graph->all.count ? graph->all.nodes[node->index] : NULL;
}

cudaError_t graph_find_node(struct runtime *runtime, cudaGraphExec_t executable,
                            cudaGraphNode_t *node) {
    if (*node == NULL || (executable != NULL && !is_executable(runtime, executable))) {
        return cudaErrorInvalidValue;
    }
    *node = executable != NULL ? twin_of(executable->graph, *node) : *node;
    return *node != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t update(struct runtime *runtime, cudaGraphExec_t executable, cudaGraph_t graph,
                          cudaGraphExecUpdateResultInfo *result) {
    if (!is_executable(runtime, executable) || !is_graph(runtime, graph)) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(conditions_check(runtime, graph));
    bool same = graph_is_like(executable->graph, graph);
    struct CUgraph_st *copy = same ? graph_copy(graph) : NULL;
    if (result != NULL) {
        memset(result, 0, sizeof *result);
        result->result =
            same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    }
    if (copy == NULL) {
        return same ? cudaErrorMemoryAllocation : cudaErrorGraphExecUpdateFailure;
    }
    copy->frees_first = executable->graph->frees_first;
    graph_free(executable->graph);
    executable->graph = copy;
    return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result) {
    DEVICE_CALL(runtime, update(runtime, executable, graph, result));
}

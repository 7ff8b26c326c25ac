#include "common/bench/device/kernel_times.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/device/device_kernels.h"
#include "common/simt/kernel_name.h"

enum { NAME_BYTES = 256 };

struct kernel_times {
    device_stream stream;
    device_event start, stop;
    struct device_clock *d_clock; /* NULL on simt */
};

/* Nodes of a graph in topological order: each after the nodes that it depends on. */
struct node_list {
    cudaGraphNode_t *nodes;
    size_t count, capacity;
};

static enum status check(cudaError_t code, const char *what, struct error *error) {
    if (code == cudaSuccess) {
        return STATUS_OK;
    }
    (void)cudaGetLastError();
    return error_set(error, STATUS_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

/* ---- Names ---- */

static void name_of(const void *function, char *name, size_t room) {
    const char *mangled = NULL;
    char readable[4 * NAME_BYTES];
    if (cudaFuncGetName(&mangled, function) != cudaSuccess || mangled == NULL) {
        (void)cudaGetLastError();
        snprintf(name, room, "kernel");
        return;
    }
    kernel_name_readable(mangled, readable, sizeof readable);
    kernel_name_shorten(readable, name, room);
}

/* ---- Creating and freeing ---- */

static enum status make_events(struct kernel_times *t, bool modelled, struct error *error) {
    void *clock = NULL;
    TRY(device_event_create(&t->start, error));
    TRY(device_event_create(&t->stop, error));
    if (!modelled) {
        TRY(device_alloc(&clock, sizeof *t->d_clock, error));
        t->d_clock = clock;
    }
    return STATUS_OK;
}

enum status kernel_times_create(struct kernel_times **times, device_stream stream,
                                struct error *error) {
    struct device_properties gpu;
    *times = NULL;
    TRY(device_properties(&gpu, error));
    struct kernel_times *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    t->stream = stream;
    enum status status = make_events(t, gpu.modelled, error);
    if (status != STATUS_OK) {
        kernel_times_free(t);
        return status;
    }
    *times = t;
    return STATUS_OK;
}

void kernel_times_free(struct kernel_times *times) {
    if (times != NULL) {
        device_event_destroy(times->start);
        device_event_destroy(times->stop);
        device_free(times->d_clock);
        free(times);
    }
}

/* ---- Reading a graph ---- */

static bool list_add(struct node_list *list, cudaGraphNode_t node) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        cudaGraphNode_t *nodes = realloc(list->nodes, capacity * sizeof(*nodes));
        if (nodes == NULL) {
            return false;
        }
        list->nodes = nodes;
        list->capacity = capacity;
    }
    list->nodes[list->count++] = node;
    return true;
}

static bool list_has(const struct node_list *list, cudaGraphNode_t node) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

static enum status all_nodes(cudaGraph_t graph, struct node_list *list, struct error *error) {
    TRY(check(cudaGraphGetNodes(graph, NULL, &list->count), "nodes of a graph", error));
    list->capacity = list->count;
    list->nodes = calloc(list->count + 1, sizeof(*list->nodes));
    return list->nodes != NULL ? check(cudaGraphGetNodes(graph, list->nodes, &list->count),
                                       "nodes of a graph", error)
                               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

static enum status list_has_dependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                         cudaGraphEdgeData *edges, size_t count,
                                         const struct node_list *list, bool *all,
                                         struct error *error) {
    if (nodes == NULL || edges == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    if (count > 0) { /* CUDA refuses arrays where there are no dependencies */
        TRY(check(cudaGraphNodeGetDependencies(node, nodes, edges, &count), "a node", error));
    }
    *all = true;
    for (size_t i = 0; *all && i < count; i++) {
        *all = list_has(list, nodes[i]);
    }
    return STATUS_OK;
}

/* *ready: whether all nodes that this one depends on are in the list. */
static enum status is_ready(cudaGraphNode_t node, const struct node_list *list, bool *ready,
                            struct error *error) {
    size_t count = 0;
    *ready = false;
    TRY(check(cudaGraphNodeGetDependencies(node, NULL, NULL, &count), "a node", error));
    cudaGraphNode_t *nodes = calloc(count + 1, sizeof(*nodes));
    cudaGraphEdgeData *edges = calloc(count + 1, sizeof *edges);
    enum status status = list_has_dependencies(node, nodes, edges, count, list, ready, error);
    free(nodes);
    free(edges);
    return status;
}

/* Moves ready nodes from `left` to `list`; one pass is enough if CUDA lists nodes in order. */
static enum status move_ready(struct node_list *left, struct node_list *list, struct error *error) {
    size_t kept = 0;
    for (size_t i = 0; i < left->count; i++) {
        bool ready;
        TRY(is_ready(left->nodes[i], list, &ready, error));
        if (!ready) {
            left->nodes[kept++] = left->nodes[i];
        } else if (!list_add(list, left->nodes[i])) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
        }
    }
    left->count = kept;
    return STATUS_OK;
}

static enum status sort_nodes(cudaGraph_t graph, struct node_list *left, struct node_list *list,
                              struct error *error) {
    TRY(all_nodes(graph, left, error));
    while (left->count > 0) {
        TRY(move_ready(left, list, error));
    }
    return STATUS_OK;
}

static enum status list_nodes(cudaGraph_t graph, struct node_list *list, struct error *error) {
    struct node_list left = {0};
    enum status status = sort_nodes(graph, &left, list, error);
    free(left.nodes);
    return status;
}

/* ---- Running a node ---- */

/* What a kernel relies on of how it was launched: that all its blocks run at once, and clusters.
   (Which kernel it may overlap means nothing here, where each runs alone.) */
static enum status attributes_of(cudaGraphNode_t node, cudaLaunchAttribute *attributes,
                                 unsigned *count, struct error *error) {
    cudaLaunchAttribute cooperative = {.id = cudaLaunchAttributeCooperative};
    cudaLaunchAttribute cluster = {.id = cudaLaunchAttributeClusterDimension};
    *count = 0;
    TRY(check(cudaGraphKernelNodeGetAttribute(node, cooperative.id, &cooperative.val),
              "a recorded kernel", error));
    TRY(check(cudaGraphKernelNodeGetAttribute(node, cluster.id, &cluster.val), "a recorded kernel",
              error));
    if (cooperative.val.cooperative != 0) {
        attributes[(*count)++] = cooperative;
    }
    if (cluster.val.clusterDim.x * cluster.val.clusterDim.y * cluster.val.clusterDim.z > 1) {
        attributes[(*count)++] = cluster;
    }
    return STATUS_OK;
}

static enum status launch(cudaGraphNode_t node, device_stream stream, struct error *error) {
    struct cudaKernelNodeParams p;
    cudaLaunchAttribute attributes[2];
    unsigned count;
    TRY(check(cudaGraphKernelNodeGetParams(node, &p), "a recorded kernel", error));
    TRY(attributes_of(node, attributes, &count, error));
    const cudaLaunchConfig_t config = {.gridDim = p.gridDim,
                                       .blockDim = p.blockDim,
                                       .dynamicSmemBytes = p.sharedMemBytes,
                                       .stream = stream,
                                       .attrs = attributes,
                                       .numAttrs = count};
    return check(cudaLaunchKernelExC(&config, p.func, p.kernelParams), "a recorded kernel", error);
}

static enum status copy(cudaGraphNode_t node, device_stream stream, struct error *error) {
    struct cudaMemcpy3DParms p;
    TRY(check(cudaGraphMemcpyNodeGetParams(node, &p), "a recorded copy", error));
    return check(cudaMemcpy3DAsync(&p, stream), "a recorded copy", error);
}

/* Runs the fill as a graph of one node: no CUDA call takes all parameters that a fill may have. */
static enum status fill(cudaGraphNode_t node, device_stream stream, struct error *error) {
    struct cudaMemsetParams p;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraphNode_t made;
    TRY(check(cudaGraphMemsetNodeGetParams(node, &p), "a recorded fill", error));
    TRY(check(cudaGraphCreate(&graph, 0), "a recorded fill", error));
    cudaError_t code = cudaGraphAddMemsetNode(&made, graph, NULL, 0, &p);
    if (code == cudaSuccess) {
        code = cudaGraphInstantiate(&ready, graph, 0);
    }
    if (code == cudaSuccess) {
        code = cudaGraphLaunch(ready, stream);
        (void)cudaGraphExecDestroy(ready); /* once it has run */
    }
    (void)cudaGraphDestroy(graph);
    return check(code, "a recorded fill", error);
}

static enum status describe_kernel(cudaGraphNode_t node, char *name, struct error *error) {
    struct cudaKernelNodeParams p;
    TRY(check(cudaGraphKernelNodeGetParams(node, &p), "a recorded kernel", error));
    name_of(p.func, name, NAME_BYTES);
    return STATUS_OK;
}

static enum status describe_copy(cudaGraphNode_t node, char *name, struct error *error) {
    struct cudaMemcpy3DParms p;
    TRY(check(cudaGraphMemcpyNodeGetParams(node, &p), "a recorded copy", error));
    snprintf(name, NAME_BYTES, "%s",
             p.kind == cudaMemcpyHostToDevice     ? "copy to the device"
             : p.kind == cudaMemcpyDeviceToHost   ? "copy to the host"
             : p.kind == cudaMemcpyDeviceToDevice ? "copy on the device"
                                                  : "copy");
    return STATUS_OK;
}

/* Writes the node's name. @return STATUS_UNSUPPORTED when the node cannot be run by itself */
static enum status describe(cudaGraphNode_t node, enum cudaGraphNodeType type, char *name,
                            struct error *error) {
    switch (type) {
    case cudaGraphNodeTypeKernel:
        return describe_kernel(node, name, error);
    case cudaGraphNodeTypeMemcpy:
        return describe_copy(node, name, error);
    case cudaGraphNodeTypeMemset:
        snprintf(name, NAME_BYTES, "fill");
        return STATUS_OK;
    case cudaGraphNodeTypeEmpty:
        name[0] = '\0';
        return STATUS_OK;
    default:
        return error_set(error, STATUS_UNSUPPORTED, "a node of type %d cannot be run by itself",
                         (int)type);
    }
}

/* Checks that every node can be run by itself. */
static enum status check_all(const struct node_list *list, struct error *error) {
    char name[NAME_BYTES];
    for (size_t i = 0; i < list->count; i++) {
        enum cudaGraphNodeType type;
        TRY(check(cudaGraphNodeGetType(list->nodes[i], &type), "a node", error));
        TRY(describe(list->nodes[i], type, name, error));
    }
    return STATUS_OK;
}

static enum status run_node(struct kernel_times *t, cudaGraphNode_t node,
                            enum cudaGraphNodeType type, struct error *error) {
    return type == cudaGraphNodeTypeKernel   ? launch(node, t->stream, error)
           : type == cudaGraphNodeTypeMemcpy ? copy(node, t->stream, error)
                                             : fill(node, t->stream, error);
}

static enum status time_node(struct kernel_times *t, cudaGraphNode_t node,
                             kernel_times_observer *observe, void *observer, struct error *error) {
    enum cudaGraphNodeType type;
    char name[NAME_BYTES];
    double ms;
    TRY(check(cudaGraphNodeGetType(node, &type), "a node", error));
    TRY(describe(node, type, name, error));
    if (type == cudaGraphNodeTypeEmpty) {
        return STATUS_OK;
    }
    TRY(kernel_times_start(t, error));
    TRY(run_node(t, node, type, error));
    TRY(kernel_times_stop(t, &ms, error));
    observe(observer, name, ms);
    return STATUS_OK;
}

/* ---- Recording ---- */

enum status kernel_times_begin(struct kernel_times *times, struct error *error) {
    return check(cudaStreamBeginCapture(times->stream, cudaStreamCaptureModeRelaxed),
                 "recording a call's work", error);
}

/* Ends the recording and lists its nodes. */
static enum status end_recording(struct kernel_times *times, enum status called, cudaGraph_t *graph,
                                 struct node_list *list, struct error *error) {
    TRY(check(cudaStreamEndCapture(times->stream, graph), "recording a call's work", error));
    TRY(called);
    TRY(list_nodes(*graph, list, error));
    return check_all(list, error);
}

static enum status time_nodes(struct kernel_times *times, const struct node_list *list,
                              kernel_times_observer *observe, void *observer, struct error *error) {
    for (size_t i = 0; i < list->count; i++) {
        TRY(time_node(times, list->nodes[i], observe, observer, error));
    }
    return STATUS_OK;
}

enum status kernel_times_end(struct kernel_times *times, enum status called,
                             kernel_times_observer *observe, void *observer, struct error *error) {
    cudaGraph_t graph = NULL;
    struct node_list list = {0};
    struct error cause = {0};
    enum status status = end_recording(times, called, &graph, &list, &cause);
    status = status == STATUS_OK
                 ? time_nodes(times, &list, observe, observer, error)
                 : error_set(error, STATUS_UNSUPPORTED, "%s", error_text(&cause, status));
    free(list.nodes);
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    return status;
}

/* Reading its clock keeps the GPU busy while the host queues the events and the work between them,
   so that the host's own time is not measured. */
enum status kernel_times_start(struct kernel_times *times, struct error *error) {
    if (times->d_clock != NULL) {
        TRY(device_read_clock(times->d_clock, times->stream, error));
    }
    return device_event_record(times->start, times->stream, error);
}

enum status kernel_times_stop(struct kernel_times *times, double *ms, struct error *error) {
    TRY(device_event_record(times->stop, times->stream, error));
    return device_event_elapsed(times->start, times->stop, ms, error);
}

#include "common/bench/device/kernel_times.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/device/device_kernels.h"

enum { NAME_BYTES = 256 };

struct kernel_times {
    device_stream stream;
    device_event start, stop;
    struct device_clock *d_clock; /* NULL on simt */
};

/* Nodes of a graph, each behind those it depends on. */
struct node_row {
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

/* The C++ library's, where the program has one. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status)
    __attribute__((weak));

/* Where the parameters begin: the first '(' outside of <>, past "(anonymous namespace)". */
static size_t end_of_name(const char *text) {
    static const char anonymous[] = "(anonymous namespace)";
    int depth = 0;
    size_t i = 0;
    while (text[i] != '\0') {
        if (strncmp(text + i, anonymous, sizeof anonymous - 1) == 0) {
            i += sizeof anonymous - 1;
            continue;
        }
        depth += (text[i] == '<') - (text[i] == '>');
        if (text[i] == '(' && depth == 0) {
            break;
        }
        i++;
    }
    return i;
}

/* "void tile<(int)128, true>(float*, int)" becomes "tile<128, true>". */
static void shorten(const char *readable, char *name, size_t room) {
    static const char *const dropped[] = {"void ", "(anonymous namespace)::", "(int)", "(bool)",
                                          "(unsigned int)"};
    size_t length = end_of_name(readable), used = 0;
    for (size_t i = 0; i < length && used + 1 < room;) {
        size_t skip = 0;
        for (size_t d = 0; d < sizeof dropped / sizeof *dropped && skip == 0; d++) {
            size_t size = strlen(dropped[d]);
            skip = strncmp(readable + i, dropped[d], size) == 0 ? size : 0;
        }
        if (skip == 0) {
            name[used++] = readable[i++];
        }
        i += skip;
    }
    name[used] = '\0';
}

static void name_of(const void *function, char *name, size_t room) {
    const char *mangled = NULL;
    int failed = -1;
    if (cudaFuncGetName(&mangled, function) != cudaSuccess || mangled == NULL) {
        (void)cudaGetLastError();
        snprintf(name, room, "kernel");
        return;
    }
    char *readable = __cxa_demangle != NULL ? __cxa_demangle(mangled, NULL, NULL, &failed) : NULL;
    shorten(readable != NULL && failed == 0 ? readable : mangled, name, room);
    free(readable);
}

/* ---- Making and freeing ---- */

enum status kernel_times_create(struct kernel_times **times, device_stream stream,
                                struct error *error) {
    struct device_properties gpu;
    void *clock = NULL;
    *times = NULL;
    TRY(device_properties(&gpu, error));
    struct kernel_times *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    t->stream = stream;
    enum status status = device_event_create(&t->start, error);
    if (status == STATUS_OK) {
        status = device_event_create(&t->stop, error);
    }
    if (status == STATUS_OK && !gpu.modelled) {
        status = device_alloc(&clock, sizeof *t->d_clock, error);
        t->d_clock = clock;
    }
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

static bool row_add(struct node_row *row, cudaGraphNode_t node) {
    if (row->count == row->capacity) {
        size_t capacity = row->capacity == 0 ? 64 : 2 * row->capacity;
        cudaGraphNode_t *nodes = realloc(row->nodes, capacity * sizeof(*nodes));
        if (nodes == NULL) {
            return false;
        }
        row->nodes = nodes;
        row->capacity = capacity;
    }
    row->nodes[row->count++] = node;
    return true;
}

static bool row_has(const struct node_row *row, cudaGraphNode_t node) {
    for (size_t i = 0; i < row->count; i++) {
        if (row->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

static enum status all_nodes(cudaGraph_t graph, struct node_row *row, struct error *error) {
    TRY(check(cudaGraphGetNodes(graph, NULL, &row->count), "nodes of a graph", error));
    row->capacity = row->count;
    row->nodes = calloc(row->count + 1, sizeof(*row->nodes));
    return row->nodes != NULL
               ? check(cudaGraphGetNodes(graph, row->nodes, &row->count), "nodes of a graph", error)
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

/* Whether all that the node depends on is in the row. */
static enum status is_ready(cudaGraphNode_t node, const struct node_row *row, bool *ready,
                            struct error *error) {
    size_t count = 0;
    TRY(check(cudaGraphNodeGetDependencies(node, NULL, NULL, &count), "a node", error));
    cudaGraphNode_t *nodes = calloc(count + 1, sizeof(*nodes));
    cudaGraphEdgeData *edges = calloc(count + 1, sizeof *edges);
    enum status status = nodes != NULL && edges != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    /* CUDA takes no room for none. */
    if (status == STATUS_OK && count > 0) {
        status = check(cudaGraphNodeGetDependencies(node, nodes, edges, &count), "a node", error);
    }
    *ready = status == STATUS_OK;
    for (size_t i = 0; *ready && i < count; i++) {
        *ready = row_has(row, nodes[i]);
    }
    free(nodes);
    free(edges);
    return status;
}

/* Moves what is ready from `left` to `row`; one pass is enough where they come in order. */
static enum status order(struct node_row *left, struct node_row *row, struct error *error) {
    size_t kept = 0;
    for (size_t i = 0; i < left->count; i++) {
        bool ready;
        TRY(is_ready(left->nodes[i], row, &ready, error));
        if (!ready) {
            left->nodes[kept++] = left->nodes[i];
        } else if (!row_add(row, left->nodes[i])) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
        }
    }
    left->count = kept;
    return STATUS_OK;
}

static enum status row_of(cudaGraph_t graph, struct node_row *row, struct error *error) {
    struct node_row left = {0};
    enum status status = all_nodes(graph, &left, error);
    while (status == STATUS_OK && left.count > 0) {
        status = order(&left, row, error);
    }
    free(left.nodes);
    return status;
}

/* ---- Doing a node's work ---- */

static enum status launch(cudaGraphNode_t node, device_stream stream, struct error *error) {
    struct cudaKernelNodeParams p;
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeCooperative};
    TRY(check(cudaGraphKernelNodeGetParams(node, &p), "a recorded kernel", error));
    TRY(check(cudaGraphKernelNodeGetAttribute(node, attribute.id, &attribute.val),
              "a recorded kernel", error));
    const cudaLaunchConfig_t config = {.gridDim = p.gridDim,
                                       .blockDim = p.blockDim,
                                       .dynamicSmemBytes = p.sharedMemBytes,
                                       .stream = stream,
                                       .attrs = &attribute,
                                       .numAttrs = attribute.val.cooperative != 0};
    return check(cudaLaunchKernelExC(&config, p.func, p.kernelParams), "a recorded kernel", error);
}

static enum status copy(cudaGraphNode_t node, device_stream stream, struct error *error) {
    struct cudaMemcpy3DParms p;
    TRY(check(cudaGraphMemcpyNodeGetParams(node, &p), "a recorded copy", error));
    return check(cudaMemcpy3DAsync(&p, stream), "a recorded copy", error);
}

/* A graph of this node alone: no call takes all that a fill may be. */
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

/* How a piece of work is called. @return not STATUS_OK: it cannot be done again by itself */
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
        return error_set(error, STATUS_UNSUPPORTED, "a node of type %d cannot be done by itself",
                         (int)type);
    }
}

/* Makes sure that all of it can be done. */
static enum status check_all(const struct node_row *row, struct error *error) {
    char name[NAME_BYTES];
    for (size_t i = 0; i < row->count; i++) {
        enum cudaGraphNodeType type;
        TRY(check(cudaGraphNodeGetType(row->nodes[i], &type), "a node", error));
        TRY(describe(row->nodes[i], type, name, error));
    }
    return STATUS_OK;
}

static enum status do_work(struct kernel_times *t, cudaGraphNode_t node,
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
    TRY(do_work(t, node, type, error));
    TRY(kernel_times_stop(t, &ms, error));
    observe(observer, name, ms);
    return STATUS_OK;
}

/* ---- The calls ---- */

enum status kernel_times_begin(struct kernel_times *times, struct error *error) {
    return check(cudaStreamBeginCapture(times->stream, cudaStreamCaptureModeRelaxed),
                 "recording a call's work", error);
}

enum status kernel_times_end(struct kernel_times *times, enum status called,
                             kernel_times_observer *observe, void *observer, struct error *error) {
    cudaGraph_t graph = NULL;
    struct node_row row = {0};
    struct error cause = {0};
    enum status status =
        check(cudaStreamEndCapture(times->stream, &graph), "recording a call's work", &cause);
    status = status == STATUS_OK ? called : status;
    if (status == STATUS_OK) {
        status = row_of(graph, &row, &cause);
    }
    if (status == STATUS_OK) {
        status = check_all(&row, &cause);
    }
    if (status != STATUS_OK) {
        status = error_set(error, STATUS_UNSUPPORTED, "%s", error_text(&cause, status));
    }
    for (size_t i = 0; i < row.count && status == STATUS_OK; i++) {
        status = time_node(times, row.nodes[i], observe, observer, error);
    }
    free(row.nodes);
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    return status;
}

/* While the GPU reads its clock, the host gets ahead of it: its own time is not measured. */
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

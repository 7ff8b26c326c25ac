#include "common/simt/runtime/graph/graph.h"

#include <stdlib.h>

#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

cudaError_t capture_spoil(struct capture *capture, cudaError_t error) {
    capture->spoiled = true;
    return error;
}

cudaError_t capture_add(struct CUstream_st *stream, const struct work *work) {
    struct CUgraphNode_st *node = NULL;
    cudaError_t error = graph_add(stream->capture->graph, work, &stream->tail, &node);
    if (error != cudaSuccess) {
        return capture_spoil(stream->capture, error);
    }
    stream->tail.count = 0;
    return node_list_add(&stream->tail, node)
               ? cudaSuccess
               : capture_spoil(stream->capture, cudaErrorMemoryAllocation);
}

cudaError_t capture_allows_use(struct runtime *runtime, const struct CUstream_st *stream) {
    if (stream->capture != NULL) {
        return stream->capture->spoiled ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    }
    if (stream != runtime->default_stream) {
        return cudaSuccess;
    }
    for (struct capture *c = runtime->captures; c != NULL; c = c->next) {
        if ((c->origin->flags & cudaStreamNonBlocking) == 0) {
            return capture_spoil(c, cudaErrorStreamCaptureImplicit);
        }
    }
    return cudaSuccess;
}

cudaError_t capture_allows_call(struct runtime *runtime, bool always) {
    for (struct capture *c = runtime->captures; c != NULL; c = c->next) {
        bool own = c->thread == *runtime_thread();
        if (always || c->mode == cudaStreamCaptureModeGlobal ||
            (c->mode == cudaStreamCaptureModeThreadLocal && own)) {
            return capture_spoil(c, cudaErrorStreamCaptureUnsupported);
        }
    }
    return cudaSuccess;
}

struct capture *capture_find(struct runtime *runtime, unsigned long long id) {
    struct capture *capture = runtime->captures;
    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

/** Takes the capture out of use; streams that took part are free again. @return its graph, unless
 *  that is the program's: NULL */
static struct CUgraph_st *finish(struct runtime *runtime, struct capture *capture) {
    for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        if (s->capture == capture) {
            s->capture = NULL;
            s->tail.count = 0;
        }
    }
    struct capture **link = &runtime->captures;
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    struct CUgraph_st *graph = capture->borrowed ? NULL : capture->graph;
    free(capture);
    return graph;
}

void capture_abandon(struct runtime *runtime, struct CUstream_st *stream) {
    graph_free(finish(runtime, stream->capture));
    memory_nodes_sweep(runtime);
}

/** @param given captured into, behind @p after; NULL: a new graph */
static cudaError_t begin(struct runtime *runtime, cudaStream_t handle, struct CUgraph_st *given,
                         const struct node_list *after, enum cudaStreamCaptureMode mode) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL || (unsigned)mode > cudaStreamCaptureModeRelaxed) {
        return stream == NULL ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
    }
    if (stream == runtime->default_stream) {
        return cudaErrorStreamCaptureUnsupported;
    }
    if (stream->capture != NULL) {
        return cudaErrorIllegalState;
    }
    struct capture *capture = calloc(1, sizeof *capture);
    struct CUgraph_st *graph = given != NULL ? given : graph_new();
    if (capture == NULL || graph == NULL || !node_list_merge(&stream->tail, after)) {
        free(capture);
        graph_free(given != NULL ? NULL : graph);
        return cudaErrorMemoryAllocation;
    }
    *capture = (struct capture){.graph = graph,
                                .borrowed = given != NULL,
                                .first = graph->all.count,
                                .origin = stream,
                                .mode = mode,
                                .thread = *runtime_thread(),
                                .id = runtime->next_id++,
                                .next = runtime->captures};
    runtime->captures = capture;
    stream->capture = capture;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    const struct node_list none = {0};
    DEVICE_CALL(runtime, begin(runtime, stream, NULL, &none, mode));
}

static cudaError_t begin_in_graph(struct runtime *runtime, cudaStream_t stream, cudaGraph_t graph,
                                  const cudaGraphNode_t *nodes, size_t count,
                                  enum cudaStreamCaptureMode mode) {
    CUDA_TRY(graph_takes_after(runtime, graph, nodes, count));
    const struct node_list after = {.nodes = (cudaGraphNode_t *)(uintptr_t)nodes, .count = count};
    return begin(runtime, stream, graph, &after, mode);
}

/** Edges carry no data here. */
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *nodes,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode) {
    (void)edges;
    DEVICE_CALL(runtime, begin_in_graph(runtime, stream, graph, nodes, count, mode));
}

/** What is wrong with a capture that is about to end in @p stream. */
static cudaError_t verdict(struct capture *capture, const struct CUstream_st *stream) {
    if (capture->origin != stream) {
        return capture_spoil(capture, cudaErrorStreamCaptureUnmatched);
    }
    if (capture->spoiled) {
        return cudaErrorStreamCaptureInvalidated;
    }
    return graph_is_joined(capture->graph, capture->first, &stream->tail)
               ? cudaSuccess
               : cudaErrorStreamCaptureUnjoined;
}

static cudaError_t end(struct runtime *runtime, cudaStream_t handle, cudaGraph_t *graph) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    struct capture *capture = stream->capture;
    if (graph == NULL && (capture == NULL || !capture->borrowed)) {
        return cudaErrorInvalidValue; /* of a capture into a graph of the program it may be NULL */
    }
    cudaGraph_t nowhere, *made_graph = graph != NULL ? graph : &nowhere;
    *made_graph = NULL;
    if (capture == NULL) {
        return cudaErrorIllegalState;
    }
    cudaError_t error = verdict(capture, stream);
    if (error == cudaErrorStreamCaptureUnmatched) {
        return error;
    }
    struct CUgraph_st *into = capture->graph;
    struct CUgraph_st *made = finish(runtime, capture);
    if (error != cudaSuccess) {
        graph_free(made);
        memory_nodes_sweep(runtime);
        return error;
    }
    if (made != NULL) {
        made->next = runtime->graphs;
        runtime->graphs = made;
    }
    *made_graph = into;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    DEVICE_CALL(runtime, end(runtime, stream, graph));
}

static enum cudaStreamCaptureStatus status_of(const struct CUstream_st *stream) {
    if (stream->capture == NULL) {
        return cudaStreamCaptureStatusNone;
    }
    return stream->capture->spoiled ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
}

static cudaError_t is_capturing(struct runtime *runtime, cudaStream_t handle,
                                enum cudaStreamCaptureStatus *status) {
    const struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL || status == NULL) {
        return stream == NULL ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue;
    }
    *status = status_of(stream);
    return *status == cudaStreamCaptureStatusNone ? capture_allows_use(runtime, stream)
                                                  : cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    DEVICE_CALL(runtime, is_capturing(runtime, stream, status));
}

/** The edges carry no data here, and are not told. */
static cudaError_t capture_info(struct runtime *runtime, cudaStream_t handle,
                                enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                cudaGraph_t *graph, const cudaGraphNode_t **after,
                                const cudaGraphEdgeData **edges, size_t *count) {
    cudaError_t error = is_capturing(runtime, handle, status);
    if (error != cudaSuccess || *status == cudaStreamCaptureStatusNone) {
        return error;
    }
    const struct CUstream_st *stream = stream_find(runtime, handle);
    if (id != NULL) {
        *id = stream->capture->id;
    }
    if (graph != NULL) {
        *graph = stream->capture->graph;
    }
    if (after != NULL) {
        *after = stream->tail.nodes;
    }
    if (edges != NULL) {
        *edges = NULL;
    }
    if (count != NULL) {
        *count = stream->tail.count;
    }
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **after, const cudaGraphEdgeData **edges,
                                     size_t *count) {
    DEVICE_CALL(runtime, capture_info(runtime, stream, status, id, graph, after, edges, count));
}

/** What the stream's next captured work comes after: the nodes given, in addition or instead. */
static cudaError_t update(struct runtime *runtime, cudaStream_t handle, cudaGraphNode_t *nodes,
                          size_t count, unsigned flags) {
    struct CUstream_st *stream = stream_find(runtime, handle);
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture == NULL) {
        return cudaErrorIllegalState;
    }
    if (stream->capture->spoiled) {
        return cudaErrorStreamCaptureInvalidated;
    }
    for (size_t n = 0; n < count; n++) {
        if (nodes == NULL || nodes[n] == NULL || nodes[n]->graph != stream->capture->graph) {
            return cudaErrorInvalidValue;
        }
    }
    if (flags > cudaStreamSetCaptureDependencies) {
        return cudaErrorInvalidValue;
    }
    const struct node_list more = {.nodes = nodes, .count = count};
    if (flags == cudaStreamSetCaptureDependencies) {
        stream->tail.count = 0;
    }
    return node_list_merge(&stream->tail, &more)
               ? cudaSuccess
               : capture_spoil(stream->capture, cudaErrorMemoryAllocation);
}

/** Edges carry no data here. */
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned flags) {
    (void)edges;
    DEVICE_CALL(runtime, update(runtime, stream, nodes, count, flags));
}

EXPORTED cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    static _Thread_local enum cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    if (mode == NULL || (unsigned)*mode > cudaStreamCaptureModeRelaxed) {
        *runtime_last_error() = cudaErrorInvalidValue;
        return cudaErrorInvalidValue;
    }
    enum cudaStreamCaptureMode before = current;
    current = *mode;
    *mode = before;
    return cudaSuccess;
}

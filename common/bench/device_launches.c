#include "common/bench/device_launches.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

static enum status check(cudaError_t code, struct error *error) {
    if (code == cudaSuccess) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_DEVICE, "recording a call's launches: %s",
                     cudaGetErrorString(code));
}

/* Ends the recording in any case; a call that failed has left no graph, and no error that the next
   launch would be told of. */
static enum status record(device_bench_function *function, void *argument, device_stream stream,
                          cudaGraph_t *graph, struct error *error) {
    TRY(check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), error));
    enum status status = function(argument, stream, error);
    cudaError_t code = cudaStreamEndCapture(stream, graph);
    if (status != STATUS_OK || code != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return status != STATUS_OK ? status : check(code, error);
}

static enum status count_nodes(cudaGraph_t graph, size_t *launches, struct error *error);

/* A graph that the call launched is a node here: what is in it counts. simt has it taken apart. */
static enum status count_node(cudaGraphNode_t node, size_t *launches, struct error *error) {
    enum cudaGraphNodeType type;
    cudaGraph_t inner;
    TRY(check(cudaGraphNodeGetType(node, &type), error));
    if (type != cudaGraphNodeTypeGraph) {
        *launches += 1;
        return STATUS_OK;
    }
    TRY(check(cudaGraphChildGraphNodeGetGraph(node, &inner), error));
    return count_nodes(inner, launches, error);
}

static enum status count_nodes(cudaGraph_t graph, size_t *launches, struct error *error) {
    size_t count = 0;
    TRY(check(cudaGraphGetNodes(graph, NULL, &count), error));
    cudaGraphNode_t *nodes = calloc(count + 1, sizeof *nodes);
    if (nodes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "recording a call's launches: no memory");
    }
    enum status status =
        count == 0 ? STATUS_OK : check(cudaGraphGetNodes(graph, nodes, &count), error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = count_node(nodes[i], launches, error);
    }
    free(nodes);
    return status;
}

static enum status count_top(cudaGraph_t graph, size_t *launches, struct error *error) {
    return check(cudaGraphGetNodes(graph, NULL, launches), error);
}

static enum status record_and_count(device_bench_function *function, void *argument,
                                    device_stream stream,
                                    enum status (*count)(cudaGraph_t, size_t *, struct error *),
                                    size_t *launches, struct error *error) {
    cudaGraph_t graph = NULL;
    *launches = 0;
    enum status status = record(function, argument, stream, &graph, error);
    if (status == STATUS_OK) {
        status = count(graph, launches, error);
    }
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    return status;
}

enum status device_count_launches_on(device_bench_function *function, void *argument,
                                     device_stream stream, size_t *launches, struct error *error) {
    return record_and_count(function, argument, stream, count_nodes, launches, error);
}

enum status device_count_host_launches_on(device_bench_function *function, void *argument,
                                          device_stream stream, size_t *launches,
                                          struct error *error) {
    return record_and_count(function, argument, stream, count_top, launches, error);
}

enum status device_count_launches(device_bench_function *function, void *argument, size_t *launches,
                                  struct error *error) {
    device_stream stream;
    *launches = 0;
    TRY(device_stream_create(&stream, error));
    enum status status = device_count_launches_on(function, argument, stream, launches, error);
    device_stream_destroy(stream);
    return status;
}

#include "common/bench/device/device_launches.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

static enum status check(cudaError_t code, struct error *error) {
    if (code == cudaSuccess) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_DEVICE, "recording a call's launches: %s",
                     cudaGetErrorString(code));
}

/* Ends the recording also when the call fails. Then there is no graph, and CUDA's last error is
   cleared, so that the next launch does not report it. */
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

static enum status record_and_count(device_bench_function *function, void *argument,
                                    device_stream stream, cudaGraph_t *graph, size_t *launches,
                                    struct error *error) {
    TRY(record(function, argument, stream, graph, error));
    return check(cudaGraphGetNodes(*graph, NULL, launches), error);
}

enum status device_count_launches_on(device_bench_function *function, void *argument,
                                     device_stream stream, size_t *launches, struct error *error) {
    cudaGraph_t graph = NULL;
    *launches = 0;
    enum status status = record_and_count(function, argument, stream, &graph, launches, error);
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    return status;
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

struct device_graph {
    cudaGraphExec_t executable;
    size_t launches;
};

static enum status record_and_instantiate(struct device_graph *graph,
                                          device_bench_function *function, void *argument,
                                          device_stream stream, cudaGraph_t *recorded,
                                          struct error *error) {
    TRY(record_and_count(function, argument, stream, recorded, &graph->launches, error));
    return check(cudaGraphInstantiate(&graph->executable, *recorded, 0), error);
}

static enum status instantiate(struct device_graph *graph, device_bench_function *function,
                               void *argument, device_stream stream, struct error *error) {
    cudaGraph_t recorded = NULL;
    enum status status =
        record_and_instantiate(graph, function, argument, stream, &recorded, error);
    if (recorded != NULL) {
        (void)cudaGraphDestroy(recorded);
    }
    return status;
}

enum status device_graph_create(struct device_graph **graph, device_bench_function *function,
                                void *argument, device_stream stream, struct error *error) {
    *graph = calloc(1, sizeof **graph);
    if (*graph == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a graph");
    }
    enum status status = instantiate(*graph, function, argument, stream, error);
    if (status != STATUS_OK) {
        device_graph_free(*graph);
        *graph = NULL;
    }
    return status;
}

size_t device_graph_launches(const struct device_graph *graph) {
    return graph->launches;
}

enum status device_graph_launch(void *graph, device_stream stream, struct error *error) {
    const struct device_graph *ready = graph;
    cudaError_t code = cudaGraphLaunch(ready->executable, stream);
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "launching a recorded call: %s",
                                           cudaGetErrorString(code));
}

void device_graph_free(struct device_graph *graph) {
    if (graph != NULL && graph->executable != NULL) {
        (void)cudaGraphExecDestroy(graph->executable);
    }
    free(graph);
}

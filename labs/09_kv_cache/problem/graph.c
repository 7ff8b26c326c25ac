#include "labs/09_kv_cache/problem/graph.h"

#include <cuda_runtime_api.h>

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "%s a graph of the call: %s", what,
                                           cudaGetErrorString(code));
}

enum status kv_graph_record(void **graph,
                            enum status (*run)(const struct kv_attention *attention,
                                               void *workspace, device_stream stream,
                                               struct error *error),
                            const struct kv_attention *attention, void *workspace,
                            device_stream stream, struct error *error) {
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t made = NULL;
    *graph = NULL;
    TRY(check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "recording", error));
    enum status status = run(attention, workspace, stream, error);
    cudaError_t ended = cudaStreamEndCapture(stream, &recorded);
    if (status == STATUS_OK) {
        status = check(ended, "recording", error);
    }
    if (status == STATUS_OK) {
        status = check(cudaGraphInstantiate(&made, recorded, 0), "making", error);
    }
    if (recorded != NULL) {
        (void)cudaGraphDestroy(recorded);
    }
    *graph = made;
    return status;
}

enum status kv_graph_launch(void *graph, device_stream stream, struct error *error) {
    TRY(check(cudaGraphLaunch(graph, stream), "launching", error));
    return device_synchronize(stream, error);
}

void kv_graph_free(void *graph) {
    if (graph != NULL) {
        (void)cudaGraphExecDestroy(graph);
    }
}

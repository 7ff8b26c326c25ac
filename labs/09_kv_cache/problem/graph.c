#include "labs/09_kv_cache/problem/graph.h"

#include <cuda_runtime_api.h>

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "%s a graph of the call: %s", what,
                                           cudaGetErrorString(code));
}

/* The call between the beginning and the end of a capture. *recorded may be set on failure, too. */
static enum status capture(kv_graph_function *run, const struct kv_attention *attention,
                           void *workspace, device_stream stream, cudaGraph_t *recorded,
                           struct error *error) {
    TRY(check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "recording", error));
    enum status status = run(attention, workspace, stream, error);
    cudaError_t ended = cudaStreamEndCapture(stream, recorded);
    return status != STATUS_OK ? status : check(ended, "recording", error);
}

enum status kv_graph_record(void **graph, kv_graph_function *run,
                            const struct kv_attention *attention, void *workspace,
                            device_stream stream, struct error *error) {
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t executable = NULL;
    enum status status = capture(run, attention, workspace, stream, &recorded, error);
    if (status == STATUS_OK) {
        status = check(cudaGraphInstantiate(&executable, recorded, 0), "instantiating", error);
    }
    if (recorded != NULL) {
        (void)cudaGraphDestroy(recorded);
    }
    *graph = executable;
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

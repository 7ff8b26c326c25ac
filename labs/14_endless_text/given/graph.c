#include "labs/14_endless_text/given/graph.h"

#include <cuda_runtime_api.h>

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "%s a graph of the call: %s", what,
                                           cudaGetErrorString(code));
}

/* The work between the beginning and the end of a capture. *recorded may be set on failure, too. */
static enum status capture(endless_graph_work *start, const void *work, device_stream stream,
                           cudaGraph_t *recorded, struct error *error) {
    TRY(check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "recording", error));
    enum status status = start(work, stream, error);
    cudaError_t ended = cudaStreamEndCapture(stream, recorded);
    return status != STATUS_OK ? status : check(ended, "recording", error);
}

enum status endless_graph_record(void **graph, endless_graph_work *start, const void *work,
                                 device_stream stream, struct error *error) {
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t executable = NULL;
    enum status status = capture(start, work, stream, &recorded, error);
    if (status == STATUS_OK) {
        status = check(cudaGraphInstantiate(&executable, recorded, 0), "instantiating", error);
    }
    if (recorded != NULL) {
        (void)cudaGraphDestroy(recorded);
    }
    *graph = executable;
    return status;
}

enum status endless_graph_launch(void *graph, device_stream stream, struct error *error) {
    return check(cudaGraphLaunch(graph, stream), "launching", error);
}

void endless_graph_free(void *graph) {
    if (graph != NULL) {
        (void)cudaGraphExecDestroy(graph);
    }
}

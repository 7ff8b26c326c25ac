/**
 * @file decoder_d7_graph.cu
 * @brief d7: a step is one launch of a CUDA graph.
 *
 * Changes since d6: d5's step is recorded, once for contexts of up to 256, 512, 1024 ... tokens: a
 * grid has the blocks that its longest context needs, and blocks without keys end at once. The
 * position is an argument of one kernel, the embedding's, which writes it to device memory for all
 * others; it is set in the recorded graph before each launch. Why: the host launches 5 kernels a
 * layer, some microseconds each; a small model's kernels are shorter than that.
 *
 * Kernels keep their early start (programmatic dependent launch) in the graph.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "solutions/10_llama2_decoder/steps/ladder.h"

static enum status check(cudaError_t code, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "recording a step: %s", cudaGetErrorString(code));
}

static size_t bucket_of(size_t position) {
    size_t bucket = 0;
    while ((size_t)DECODER_FIRST_BUCKET << bucket <= position) {
        bucket++;
    }
    return bucket;
}

static size_t longest_of(const struct decoder *d, size_t bucket) {
    size_t longest = (size_t)DECODER_FIRST_BUCKET << bucket;
    return longest < d->model->T ? longest : d->model->T;
}

/* Records a step on a stream of its own, because the decoder's may be the default one. */
static enum status record_on(const struct decoder *d, device_stream stream, size_t longest,
                             cudaGraph_t *graph, struct error *error) {
    struct decoder recording = *d;
    recording.stream = stream;
    TRY(check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), error));
    enum status status = decoder_draw_and_run(&recording, 0, longest, error);
    cudaError_t code = cudaStreamEndCapture(stream, graph);
    return status != STATUS_OK ? status : check(code, error);
}

/* The node of the embedding's launch. */
static enum status find_embed(const struct decoder *d, cudaGraph_t graph, cudaGraphNode_t *found,
                              struct error *error) {
    size_t count = 0;
    *found = NULL;
    TRY(check(cudaGraphGetNodes(graph, NULL, &count), error));
    cudaGraphNode_t *nodes = (cudaGraphNode_t *)calloc(count, sizeof *nodes);
    if (nodes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "recording a step: out of memory");
    }
    cudaError_t code = cudaGraphGetNodes(graph, nodes, &count);
    for (size_t i = 0; code == cudaSuccess && *found == NULL && i < count; i++) {
        struct cudaKernelNodeParams launch;
        enum cudaGraphNodeType type;
        code = cudaGraphNodeGetType(nodes[i], &type);
        if (code == cudaSuccess && type == cudaGraphNodeTypeKernel) {
            code = cudaGraphKernelNodeGetParams(nodes[i], &launch);
            if (code == cudaSuccess && launch.func == decoder_embed_kernel(d)) {
                *found = nodes[i];
            }
        }
    }
    free(nodes);
    TRY(check(code, error));
    return *found != NULL ? STATUS_OK
                          : error_set(error, STATUS_DEVICE, "recording a step: no embedding in it");
}

/* The part of record() that can fail with a graph to destroy. */
static enum status record_graph(const struct decoder *d, device_stream stream, size_t longest,
                                struct decoder_graph *g, struct error *error) {
    cudaGraphNode_t embed = NULL;
    cudaGraphExec_t executable = NULL;
    TRY(record_on(d, stream, longest, (cudaGraph_t *)&g->graph, error));
    TRY(find_embed(d, (cudaGraph_t)g->graph, &embed, error));
    TRY(check(cudaGraphInstantiate(&executable, (cudaGraph_t)g->graph, 0), error));
    g->executable = executable;
    g->embed = embed;
    return STATUS_OK;
}

static enum status record(const struct decoder *d, struct decoder_graph *g, size_t longest,
                          struct error *error) {
    device_stream stream;
    struct decoder_graph recorded = {};
    TRY(device_stream_create(&stream, error));
    enum status status = record_graph(d, stream, longest, &recorded, error);
    device_stream_destroy(stream);
    if (status != STATUS_OK) {
        if (recorded.graph != NULL) {
            (void)cudaGraphDestroy((cudaGraph_t)recorded.graph);
        }
        return status;
    }
    *g = recorded;
    return STATUS_OK;
}

void decoder_graphs_free(struct decoder *d) {
    for (int i = 0; i < DECODER_BUCKETS; i++) {
        if (d->graphs[i].executable != NULL) {
            (void)cudaGraphExecDestroy((cudaGraphExec_t)d->graphs[i].executable);
            (void)cudaGraphDestroy((cudaGraph_t)d->graphs[i].graph);
        }
        d->graphs[i] = {};
    }
}

static enum status set_position(const struct decoder *d, const struct decoder_graph *g,
                                size_t position, struct error *error) {
    struct decoder_embed_arguments a = decoder_embed_arguments(d, position);
    void *arguments[] = {&a.x, &a.table, &a.token, &a.C, &a.position_out, &a.position};
    struct cudaKernelNodeParams launch;
    TRY(check(cudaGraphKernelNodeGetParams((cudaGraphNode_t)g->embed, &launch), error));
    launch.kernelParams = arguments;
    return check(cudaGraphExecKernelNodeSetParams((cudaGraphExec_t)g->executable,
                                                  (cudaGraphNode_t)g->embed, &launch),
                 error);
}

enum status decoder_d7_step(struct decoder *d, size_t position, struct error *error) {
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    size_t bucket = bucket_of(position);
    TRY(check(cudaStreamIsCapturing(d->stream, &capturing), error));
    if (capturing != cudaStreamCaptureStatusNone) { /* the caller records: add the launches */
        return decoder_draw_and_run(d, position, longest_of(d, bucket), error);
    }
    struct decoder_graph *g = &d->graphs[bucket];
    if (g->executable == NULL) {
        TRY(record(d, g, longest_of(d, bucket), error));
    }
    TRY(set_position(d, g, position, error));
    return check(cudaGraphLaunch((cudaGraphExec_t)g->executable, d->stream), error);
}

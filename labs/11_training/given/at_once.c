/**
 * @file at_once.c
 * @brief Work of many launches as one launch of a CUDA graph.
 *
 * A step's launches are recorded anew each time, while the GPU still computes the step before, and
 * put into the graph that is there: launches whose arguments are other numbers (the learning rate,
 * the seed of dropout, the lengths of a batch's texts) need no second graph, only launches that are
 * others, or more. So nothing of a step has to be moved to device memory for the graph's sake.
 *
 * An engine's first work is launched as if there were no graph: it makes the code resident and
 * scratch memory large enough. So does a call that turns out to need more scratch memory, and every
 * call once the functions of lab 11 have done something that cannot be recorded.
 */
#include <cuda_runtime_api.h>

#include "labs/11_training/given/internal.h"

static bool is_recording(device_stream stream) {
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &state) == cudaSuccess &&
           state != cudaStreamCaptureStatusNone;
}

/* @return whether all of the work is in *graph */
static bool record(struct training *t, train_work *work, void *argument, cudaGraph_t *graph) {
    if (cudaStreamBeginCapture(t->stream, cudaStreamCaptureModeRelaxed) != cudaSuccess) {
        return false;
    }
    t->replay.recording = true;
    enum status status = work(argument);
    t->replay.recording = false;
    cudaError_t code = cudaStreamEndCapture(t->stream, graph);
    return status == STATUS_OK && code == cudaSuccess && t->failed.status == STATUS_OK;
}

/* The graph's launches in the one that is there, or in a new one. */
static bool take_over(struct training *t, cudaGraph_t graph) {
    struct training_replay *r = &t->replay;
    cudaGraphExecUpdateResultInfo result;
    if (r->executable != NULL &&
        cudaGraphExecUpdate(r->executable, graph, &result) == cudaSuccess) {
        return true;
    }
    training_replay_free(t);
    (void)cudaGetLastError(); /* of the update */
    return cudaGraphInstantiate(&r->executable, graph, 0) == cudaSuccess;
}

void training_replay_free(struct training *t) {
    if (t->replay.executable != NULL) {
        (void)cudaGraphExecDestroy(t->replay.executable);
        t->replay.executable = NULL;
    }
}

/* @return whether the work was launched */
static bool launch_at_once(struct training *t, train_work *work, void *argument) {
    cudaGraph_t graph = NULL;
    bool ready = record(t, work, argument, &graph) && take_over(t, graph);
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    return ready && cudaGraphLaunch(t->replay.executable, t->stream) == cudaSuccess;
}

enum status training_at_once(void *context, train_work *work, void *argument) {
    struct training *t = context;
    struct training_replay *r = &t->replay;
    bool plain = t->scratch == NULL || r->impossible || t->failed.status != STATUS_OK;
    if (plain || is_recording(t->stream)) {
        return work(argument);
    }
    r->wanted = 0;
    if (launch_at_once(t, work, argument)) {
        r->launched++;
        return STATUS_OK;
    }
    /* Nothing of it has run. */
    (void)cudaGetLastError();
    t->failed = (struct error){0};
    r->impossible = r->wanted == 0;
    TRY(scratch_need(t, r->wanted));
    return work(argument);
}

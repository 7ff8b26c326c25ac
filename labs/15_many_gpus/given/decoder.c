#include "labs/15_many_gpus/given/decoder.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "solutions/10_llama2_decoder/steps/ladder.h"

/* Recorded steps: for contexts of up to 256, 512, ... tokens. */
enum { FIRST_BUCKET = 256, BUCKETS = 24 };

struct many_decoder {
    struct comm *comm;
    struct many_step step;
    struct decoder_model model; /* as lab 10's decoder is made of it: no size is 0 */
    bool attends, feeds;        /* whether the rank has heads, and hidden channels */
    struct decoder *decoder;    /* lab 10's: activations and cache */
    struct comm_memory workspace;
    void *graphs[BUCKETS];
};

/* ---- A token's launches ---- */

static enum status reduce(struct many_decoder *d, const void *weight, const float *in, size_t K,
                          struct error *error) {
    const struct many_linear linear = {.N = d->model.C,
                                       .K = K,
                                       .dtype = d->model.dtype,
                                       .weight = weight,
                                       .in = in,
                                       .x = d->decoder->x,
                                       .workspace = &d->workspace};
    return d->step.functions.linear(d->comm, &linear, d->decoder->stream, error);
}

static enum status run_layer(struct many_decoder *d, size_t l, size_t longest,
                             struct error *error) {
    const struct decoder_model *m = &d->model;
    const struct decoder_layer *w = &m->layers[l];
    if (d->attends) {
        TRY(decoder_attend(d->decoder, l, longest, error));
    }
    TRY(reduce(d, w->out, d->decoder->heads, d->attends ? m->NH * m->HS : 0, error));
    if (d->feeds) {
        TRY(decoder_stream_gate_up(d->decoder, l, error));
    }
    return reduce(d, w->down, d->decoder->gate_up, d->feeds ? m->hidden : 0, error);
}

/* From the embedding in x on to the logits. */
static enum status run_layers(struct many_decoder *d, size_t longest, struct error *error) {
    for (size_t l = 0; l < d->model.L; l++) {
        TRY(run_layer(d, l, longest, error));
    }
    return decoder_path_stream.classify(d->decoder, error);
}

/* ---- The same, recorded ---- */

static enum status check(cudaError_t code, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "recording a step: %s", cudaGetErrorString(code));
}

static enum status capture(struct many_decoder *d, size_t longest, cudaGraph_t *graph,
                           struct error *error) {
    TRY(check(cudaStreamBeginCapture(d->decoder->stream, cudaStreamCaptureModeRelaxed), error));
    enum status status = run_layers(d, longest, error);
    cudaError_t code = cudaStreamEndCapture(d->decoder->stream, graph);
    return status != STATUS_OK ? status : check(code, error);
}

static enum status record(struct many_decoder *d, size_t bucket, struct error *error) {
    size_t longest = (size_t)FIRST_BUCKET << bucket;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    enum status status = capture(d, longest < d->model.T ? longest : d->model.T, &graph, error);
    if (status == STATUS_OK) {
        status = check(cudaGraphInstantiate(&executable, graph, 0), error);
    }
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    d->graphs[bucket] = executable;
    return status;
}

static enum status run(struct many_decoder *d, size_t position, struct error *error) {
    size_t bucket = 0;
    while ((size_t)FIRST_BUCKET << bucket <= position && bucket < BUCKETS - 1) {
        bucket++;
    }
    if (!d->step.recordable) {
        return run_layers(d, position + 1, error);
    }
    if (d->graphs[bucket] == NULL) {
        TRY(record(d, bucket, error));
    }
    return check(cudaGraphLaunch(d->graphs[bucket], d->decoder->stream), error);
}

enum status many_decoder_feed(struct many_decoder *d, int32_t token, size_t position,
                              struct error *error) {
    if (token < 0 || (size_t)token >= d->model.V || position >= d->model.T) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "token %d at position %zu: a token is below %zu, a position below %zu",
                         (int)token, position, d->model.V, d->model.T);
    }
    if (d->step.functions.token != NULL) { /* the write waits for the stream, so for all ranks */
        TRY(comm_synchronize(d->comm, d->decoder->stream, error));
        TRY(device_write(d->decoder->io.token, &token, sizeof token, d->decoder->stream, error));
        return d->step.functions.token(d->comm, d->decoder, &d->workspace, position, error);
    }
    TRY(decoder_embed(d->decoder, token, position, error));
    return run(d, position, error);
}

enum status many_decoder_step(struct many_decoder *d, size_t position, struct error *error) {
    const struct decoder *one = d->decoder;
    if (position >= d->model.T) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "position %zu: the context is %zu",
                         position, d->model.T);
    }
    TRY(sample_token(one->io.sampling, one->io.logits, d->model.V, one->io.token,
                     one->draw_workspace, one->stream, error));
    if (d->step.functions.token != NULL) {
        return d->step.functions.token(d->comm, one, &d->workspace, position, error);
    }
    TRY(decoder_embed_drawn(one, position, error));
    return run(d, position, error);
}

/* ---- Begin and end ---- */

/* A rank without heads or hidden channels gets a decoder with a few, which nobody uses. */
static void take_model(struct many_decoder *d, const struct decoder_model *model) {
    d->model = *model;
    d->attends = model->NH > 0;
    d->feeds = model->hidden > 0;
    if (!d->attends) {
        d->model.NH = d->model.KVH = 1;
    }
    if (!d->feeds) {
        d->model.hidden = 64;
    }
}

enum status many_decoder_create(struct many_decoder **decoder, struct comm *comm,
                                const struct decoder_model *model, const struct decoder_io *io,
                                const struct many_step *step, device_stream stream,
                                struct error *error) {
    *decoder = NULL;
    struct many_decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    d->comm = comm;
    d->step = *step;
    take_model(d, model);
    enum status status = decoder_create(&d->decoder, &d->model, io, 1, stream, error);
    if (status == STATUS_OK) {
        status = comm_alloc(comm, MANY_WORKSPACE_BYTES, &d->workspace, error);
    }
    if (status != STATUS_OK) {
        many_decoder_free(d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

void many_decoder_free(struct many_decoder *d) {
    if (d == NULL) {
        return;
    }
    for (int i = 0; i < BUCKETS; i++) {
        if (d->graphs[i] != NULL) {
            (void)cudaGraphExecDestroy(d->graphs[i]);
        }
    }
    comm_free(d->comm, &d->workspace);
    decoder_free(d->decoder);
    free(d);
}

#include "labs/15_many_gpus/given/decoder.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "solutions/10_llama2_decoder/steps/ladder.h"

/* Recorded steps: for contexts of up to 256, 512, ... tokens. */
enum { FIRST_BUCKET = 256, BUCKETS = 24 };

/* Rows are added up in pieces of so many numbers. */
enum { SUM_NUMBERS = 1 << 20 };

struct many_decoder {
    struct comm *comm;
    struct many_step step;
    struct decoder_model model; /* as lab 10's decoder is made of it: no size is 0 */
    bool attends, feeds;        /* whether the rank has heads, and hidden channels */
    struct decoder *decoder;    /* lab 10's: activations and cache */
    struct comm_memory workspace,
        of_tokens;           /* the latter for step.functions.token, if there is one */
    size_t batch;            /* rows at most; 1: prompts go token by token */
    struct comm_memory rows; /* (SUM_NUMBERS), where they are added up; if batch > 1 */
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

static enum status check_token(const struct many_decoder *d, int32_t token, size_t position,
                               struct error *error) {
    if (token < 0 || (size_t)token >= d->model.V || position >= d->model.T) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "token %d at position %zu: a token is below %zu, a position below %zu",
                         (int)token, position, d->model.V, d->model.T);
    }
    return STATUS_OK;
}

enum status many_decoder_feed(struct many_decoder *d, int32_t token, size_t position,
                              struct error *error) {
    TRY(check_token(d, token, position, error));
    if (d->step.functions.token != NULL) { /* the write waits for the stream, so for all ranks */
        TRY(comm_synchronize(d->comm, d->decoder->stream, error));
        TRY(device_write(d->decoder->io.token, &token, sizeof token, d->decoder->stream, error));
        return d->step.functions.token(d->comm, d->decoder, &d->of_tokens, position, error);
    }
    TRY(decoder_embed(d->decoder, token, position, error));
    return run(d, position, error);
}

/* ---- A prompt's tokens as rows ---- */

static enum status copy(struct many_decoder *d, float *to, const float *from, size_t count,
                        struct error *error) {
    cudaError_t code =
        cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyDeviceToDevice, d->decoder->stream);
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "copying rows: %s", cudaGetErrorString(code));
}

static enum status add_rows(void *context, float *data, size_t count, struct error *error) {
    struct many_decoder *d = context;
    float *here = d->rows.at[d->comm->rank];
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < SUM_NUMBERS ? count - done : SUM_NUMBERS;
        struct many_all_reduce reduce = {.count = n, .dtype = NN_F32, .workspace = &d->workspace};
        memcpy(reduce.data, d->rows.at, sizeof reduce.data);
        TRY(copy(d, here, data + done, n, error));
        TRY(d->step.functions.all_reduce(d->comm, &reduce, d->decoder->stream, error));
        TRY(copy(d, data + done, here, n, error));
    }
    return STATUS_OK;
}

static enum status feed_rows(struct many_decoder *d, const int32_t *tokens, size_t count,
                             size_t position, struct error *error) {
    const struct decoder_sums sums = {d, d->comm->rank == 0, add_rows};
    size_t last = d->model.L - 1;
    TRY(decoder_rows_begin(d->decoder, tokens, count, error));
    for (size_t l = 0; l < last; l++) {
        TRY(decoder_rows_layer(d->decoder, l, count, position, &sums, error));
    }
    TRY(decoder_rows_end(d->decoder, count, position, error));
    TRY(run_layer(d, last, position + count, error));
    return decoder_path_stream.classify(d->decoder, error);
}

enum status many_decoder_prefill(struct many_decoder *d, const int32_t *tokens, size_t count,
                                 size_t position, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        TRY(check_token(d, tokens[i], position + i, error));
    }
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < d->batch ? count - done : d->batch;
        TRY(n > 1 ? feed_rows(d, tokens + done, n, position + done, error)
                  : many_decoder_feed(d, tokens[done], position + done, error));
    }
    return STATUS_OK;
}

/* ---- */

enum status many_decoder_step(struct many_decoder *d, size_t position, struct error *error) {
    const struct decoder *one = d->decoder;
    if (position >= d->model.T) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "position %zu: the context is %zu",
                         position, d->model.T);
    }
    TRY(sample_token(one->io.sampling, one->io.logits, d->model.V, one->io.token,
                     one->draw_workspace, one->stream, error));
    if (d->step.functions.token != NULL) {
        return d->step.functions.token(d->comm, one, &d->of_tokens, position, error);
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

/* Rows are for models of which each rank has heads and hidden channels. */
static enum status choose_batch(struct many_decoder *d, size_t batch, struct error *error) {
    bool mine = d->decoder->has_rows && d->attends && d->feeds, all[COMM_MAX_RANKS];
    TRY(comm_all_gather(d->comm, &mine, sizeof mine, all, error));
    d->batch = batch;
    for (int r = 0; r < d->comm->ranks; r++) {
        d->batch = all[r] ? d->batch : 1;
    }
    return d->batch > 1 ? comm_alloc(d->comm, SUM_NUMBERS * sizeof(float), &d->rows, error)
                        : STATUS_OK;
}

enum status many_decoder_create(struct many_decoder **decoder, struct comm *comm,
                                const struct decoder_model *model, const struct decoder_io *io,
                                size_t batch, const struct many_step *step, device_stream stream,
                                struct error *error) {
    *decoder = NULL;
    struct many_decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    d->comm = comm;
    d->step = *step;
    take_model(d, model);
    enum status status = decoder_create(&d->decoder, &d->model, io, batch, stream, error);
    if (status == STATUS_OK) {
        status = comm_alloc(comm, MANY_WORKSPACE_BYTES, &d->workspace, error);
    }
    if (status == STATUS_OK && step->functions.token != NULL) {
        status = comm_alloc(comm, MANY_WORKSPACE_BYTES, &d->of_tokens, error);
    }
    if (status == STATUS_OK) {
        status = choose_batch(d, batch, error);
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
    comm_free(d->comm, &d->rows);
    comm_free(d->comm, &d->of_tokens);
    comm_free(d->comm, &d->workspace);
    decoder_free(d->decoder);
    free(d);
}

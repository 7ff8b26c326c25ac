/* Lab 15: functions that run in the worker, on all ranks. */
#include "grader/isolation/worker.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "common/simt/simt.h"
#include "grader/15_many_gpus/calls.h"
#include "labs/15_many_gpus/given/decoder.h"
#include "labs/15_many_gpus/given/parts.h"

static const struct many_functions functions = {many_all_reduce, many_linear, NULL};

static enum status no_memory(struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

static enum status count_devices(void *arguments, struct error *error) {
    struct many_devices_call *c = arguments;
    (void)error;
    c->count = comm_devices();
    return STATUS_OK;
}

static enum status open_rig(void *arguments, struct error *error) {
    struct many_open_call *c = arguments;
    struct many_rig *rig = calloc(1, sizeof *rig);
    if (rig == NULL) {
        return no_memory(error);
    }
    enum status status = many_rig_create(rig, c->ranks, c->bytes, error);
    if (status != STATUS_OK) {
        many_rig_free(rig);
        free(rig);
        return status;
    }
    for (int r = 0; r < c->ranks; r++) {
        static const char *const names[] = {"data of rank 0", "data of rank 1", "data of rank 2",
                                            "data of rank 3"};
        simt_name_tensor(rig->states[r].data.at[r], r < 4 ? names[r] : "data");
        simt_name_tensor(rig->states[r].workspace.at[r], "workspace");
    }
    c->rig = rig;
    return STATUS_OK;
}

static enum status close_rig(void *arguments, struct error *error) {
    const struct many_open_call *c = arguments;
    (void)error;
    many_rig_free(c->rig);
    free(c->rig);
    return STATUS_OK;
}

static enum status load(void *arguments, struct error *error) {
    const struct many_sums_call *c = arguments;
    return many_rig_load(c->rig, &c->sums, c->in, error);
}

static enum status sum(void *arguments, struct error *error) {
    const struct many_sums_call *c = arguments;
    return many_rig_sum(c->rig, &c->sums, &functions, error);
}

static enum status record(void *arguments, struct error *error) {
    const struct many_sums_call *c = arguments;
    size_t count;
    const struct many_step *steps = many_ladder(&count);
    return count > 0 && steps[count - 1].recordable
               ? many_rig_record(c->rig, &c->sums, &functions, error)
               : STATUS_OK;
}

static enum status store(void *arguments, struct error *error) {
    const struct many_sums_call *c = arguments;
    return many_rig_store(c->rig, &c->sums, c->out, error);
}

static enum status multiply(void *arguments, struct error *error) {
    const struct many_products_call *c = arguments;
    return many_rig_multiply(c->rig, &c->products, &functions, error);
}

static enum status cut(void *arguments, struct error *error) {
    struct many_cut_call *c = arguments;
    (void)error;
    many_cut(c->matrix, &c->shape, c->rank, c->ranks, &c->part);
    return STATUS_OK;
}

/* ---- Decoders ---- */

/** Of all ranks. */
struct decoders {
    struct comm_group *group;
    const struct decoder_model *whole;
    struct many_step step;
    struct many_parts parts[COMM_MAX_RANKS];
    struct many_decoder *decoders[COMM_MAX_RANKS];
    struct decoder_io io[COMM_MAX_RANKS];
    device_stream streams[COMM_MAX_RANKS];
};

static enum status open_rank(struct comm *comm, void *context, struct error *error) {
    struct decoders *d = context;
    int r = comm->rank;
    struct decoder_io *io = &d->io[r];
    TRY(device_stream_create(&d->streams[r], error));
    TRY(many_parts_create(&d->parts[r], d->whole, r, comm->ranks, many_cut, error));
    TRY(device_alloc((void **)&io->logits, d->whole->V * sizeof(float), error));
    TRY(device_alloc((void **)&io->token, sizeof(int32_t), error));
    TRY(device_alloc((void **)&io->sampling, sizeof(struct sampling), error));
    return many_decoder_create(&d->decoders[r], comm, &d->parts[r].model, io, 1, &d->step,
                               d->streams[r], error);
}

static enum status open_decoders(void *arguments, struct error *error) {
    struct many_decode_open_call *c = arguments;
    size_t count;
    const struct many_step *steps = many_ladder(&count);
    struct decoders *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return no_memory(error);
    }
    d->whole = c->model;
    d->step = (struct many_step){"yours", functions, count > 0 && steps[count - 1].recordable};
    c->decoders = d;
    TRY(comm_group_create(&d->group, c->ranks, error));
    return comm_group_run(d->group, open_rank, d, error);
}

struct feeding {
    struct decoders *d;
    const struct many_decode_feed_call *call;
};

/* Behind the token in its stream, which need not wait for it. */
static enum status copy_logits(const struct feeding *f, const struct comm *comm, size_t token,
                               struct error *error) {
    int rank = comm->rank;
    size_t V = f->d->whole->V, at = token * (size_t)comm->ranks + (size_t)rank;
    cudaError_t code = cudaMemcpyAsync(f->call->logits + at * V, f->d->io[rank].logits,
                                       V * sizeof(float), cudaMemcpyDefault, f->d->streams[rank]);
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "copying logits: %s", cudaGetErrorString(code));
}

static enum status feed_rank(struct comm *comm, void *context, struct error *error) {
    const struct feeding *f = context;
    const struct many_decode_feed_call *c = f->call;
    int r = comm->rank;
    for (size_t i = 0; i < c->count; i++) {
        TRY(many_decoder_feed(f->d->decoders[r], c->tokens[i], c->position + i, error));
        TRY(copy_logits(f, comm, i, error));
    }
    return comm_synchronize(comm, f->d->streams[r], error);
}

static enum status feed(void *arguments, struct error *error) {
    const struct many_decode_feed_call *c = arguments;
    struct feeding feeding = {c->decoders, c};
    return comm_group_run(feeding.d->group, feed_rank, &feeding, error);
}

static const struct worker_entry entries[] = {
    {"many_devices", sizeof(struct many_devices_call), count_devices},
    {"many_open", sizeof(struct many_open_call), open_rig},
    {"many_close", sizeof(struct many_open_call), close_rig},
    {"many_load", sizeof(struct many_sums_call), load},
    {"many_record", sizeof(struct many_sums_call), record},
    {"many_sum", sizeof(struct many_sums_call), sum},
    {"many_store", sizeof(struct many_sums_call), store},
    {"many_multiply", sizeof(struct many_products_call), multiply},
    {"many_cut", sizeof(struct many_cut_call), cut},
    {"many_decode_open", sizeof(struct many_decode_open_call), open_decoders},
    {"many_decode_feed", sizeof(struct many_decode_feed_call), feed},
    {0}};

const struct worker worker = {entries, &worker_device};

#include "labs/15_many_gpus/given/rig.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "common/base/rng.h"

static enum status copy(void *to, const void *from, size_t bytes, device_stream stream,
                        struct error *error) {
    cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "copying: %s", cudaGetErrorString(code));
}

/* ---- Creation ---- */

struct creation {
    struct many_rig *rig;
    size_t bytes;
};

static enum status create_state(struct comm *comm, void *context, struct error *error) {
    const struct creation *c = context;
    struct many_rank_state *state = &c->rig->states[comm->rank];
    TRY(device_stream_create(&state->stream, error));
    TRY(comm_alloc(comm, MANY_WORKSPACE_BYTES, &state->workspace, error));
    return c->bytes > 0 ? comm_alloc(comm, c->bytes, &state->data, error) : STATUS_OK;
}

enum status many_rig_create(struct many_rig *rig, int ranks, size_t bytes, struct error *error) {
    struct creation creation = {rig, bytes};
    memset(rig, 0, sizeof *rig);
    rig->ranks = ranks;
    TRY(comm_group_create(&rig->group, ranks, error));
    return comm_group_run(rig->group, create_state, &creation, error);
}

static enum status free_state(struct comm *comm, void *context, struct error *error) {
    struct many_rig *rig = context;
    struct many_rank_state *state = &rig->states[comm->rank];
    (void)error;
    if (state->graph != NULL) {
        (void)cudaGraphExecDestroy(state->graph);
    }
    device_free(state->input);
    comm_free(comm, &state->data);
    comm_free(comm, &state->workspace);
    device_stream_destroy(state->stream);
    return STATUS_OK;
}

void many_rig_free(struct many_rig *rig) {
    if (rig->group != NULL) {
        enum status status = comm_group_run(rig->group, free_state, rig, NULL);
        (void)status; /* it frees all the same */
        comm_group_free(rig->group);
    }
    memset(rig, 0, sizeof *rig);
}

static enum status renew_state(struct comm *comm, void *context, struct error *error) {
    struct many_rig *rig = context;
    struct many_rank_state *state = &rig->states[comm->rank];
    TRY(device_set(state->workspace.at[comm->rank], 0, state->workspace.bytes, state->stream,
                   error));
    return comm_synchronize(comm, state->stream, error);
}

enum status many_rig_renew(struct many_rig *rig, struct error *error) {
    return comm_group_run(rig->group, renew_state, rig, error);
}

/* Ranks come to a call at different times, sometimes one first, sometimes the other. */
static enum status come_late(struct rng *rng, bool delays, device_stream stream,
                             struct error *error) {
    unsigned rounds = (unsigned)rng_below(rng, 3) * 2000;
    return delays && rounds > 0 ? many_delay(rounds, stream, error) : STATUS_OK;
}

static struct rng delays_of(uint64_t seed, const struct comm *comm) {
    return rng_create(seed * COMM_MAX_RANKS + (uint64_t)comm->rank);
}

/* ---- All-reduces ---- */

struct sums_call {
    struct many_rig *rig;
    const struct many_sums *sums;
    const struct many_functions *functions;
    const void *in;
    void *out;
};

static size_t bytes_of(const struct many_sums *s) {
    return s->count * nn_dtype_bytes(s->dtype);
}

static enum status load(struct comm *comm, void *context, struct error *error) {
    const struct sums_call *c = context;
    const struct many_rank_state *state = &c->rig->states[comm->rank];
    size_t bytes = bytes_of(c->sums);
    for (size_t i = 0; i < c->sums->calls; i++) {
        size_t at = (i * (size_t)comm->ranks + (size_t)comm->rank) * bytes;
        TRY(copy((char *)state->data.at[comm->rank] + i * bytes, (const char *)c->in + at, bytes,
                 state->stream, error));
    }
    return comm_synchronize(comm, state->stream, error);
}

enum status many_rig_load(struct many_rig *rig, const struct many_sums *sums, const void *in,
                          struct error *error) {
    struct sums_call call = {.rig = rig, .sums = sums, .in = in};
    return comm_group_run(rig->group, load, &call, error);
}

/* Memory for what prepare() keeps: not while a graph is recorded. */
static enum status reserve_input(struct comm *comm, const struct sums_call *c,
                                 struct error *error) {
    struct many_rank_state *state = &c->rig->states[comm->rank];
    return c->sums->delays != 0 && state->input == NULL
               ? device_alloc(&state->input, state->data.bytes, error)
               : STATUS_OK;
}

/* Before a call: its data come into being in the stream, maybe late. Until then there is none. */
static enum status prepare(const struct many_rank_state *state, const struct sums_call *c,
                           void *data, struct rng *rng, struct error *error) {
    size_t bytes = bytes_of(c->sums);
    if (c->sums->delays == 0) {
        return STATUS_OK;
    }
    TRY(copy(state->input, data, bytes, state->stream, error));
    TRY(device_set(data, 0xff, bytes, state->stream, error));
    TRY(come_late(rng, true, state->stream, error));
    return copy(data, state->input, bytes, state->stream, error);
}

/* Behind a call: the stream uses the sums at once, and the memory for something else. */
static enum status use(const struct many_rank_state *state, const struct sums_call *c, void *data,
                       struct error *error) {
    size_t bytes = bytes_of(c->sums);
    if (c->sums->delays == 0) {
        return STATUS_OK;
    }
    TRY(copy(state->input, data, bytes, state->stream, error));
    TRY(device_set(data, 0xff, bytes, state->stream, error));
    return copy(data, state->input, bytes, state->stream, error);
}

static enum status submit(struct comm *comm, const struct sums_call *c, struct error *error) {
    const struct many_rank_state *state = &c->rig->states[comm->rank];
    struct rng rng = delays_of(c->sums->delays, comm);
    for (size_t i = 0; i < c->sums->calls; i++) {
        struct many_all_reduce reduce = {
            .count = c->sums->count, .dtype = c->sums->dtype, .workspace = &state->workspace};
        for (int r = 0; r < comm->ranks; r++) {
            reduce.data[r] = (char *)state->data.at[r] + i * bytes_of(c->sums);
        }
        void *own = reduce.data[comm->rank];
        TRY(prepare(state, c, own, &rng, error));
        TRY(c->functions->all_reduce(comm, &reduce, state->stream, error));
        TRY(use(state, c, own, error));
    }
    return STATUS_OK;
}

static enum status check(cudaError_t code, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "a graph of the calls: %s",
                                           cudaGetErrorString(code));
}

static enum status record(struct comm *comm, void *context, struct error *error) {
    const struct sums_call *c = context;
    struct many_rank_state *state = &c->rig->states[comm->rank];
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    TRY(reserve_input(comm, c, error));
    TRY(check(cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeRelaxed), error));
    enum status status = submit(comm, c, error);
    cudaError_t code = cudaStreamEndCapture(state->stream, &graph);
    status = status == STATUS_OK ? check(code, error) : status;
    if (status == STATUS_OK) {
        status = check(cudaGraphInstantiate(&executable, graph, 0), error);
    }
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    state->graph = executable;
    return status;
}

enum status many_rig_record(struct many_rig *rig, const struct many_sums *sums,
                            const struct many_functions *functions, struct error *error) {
    struct sums_call call = {.rig = rig, .sums = sums, .functions = functions};
    return comm_group_run(rig->group, record, &call, error);
}

static enum status sum(struct comm *comm, void *context, struct error *error) {
    const struct sums_call *c = context;
    const struct many_rank_state *state = &c->rig->states[comm->rank];
    TRY(reserve_input(comm, c, error));
    TRY(state->graph != NULL ? check(cudaGraphLaunch(state->graph, state->stream), error)
                             : submit(comm, c, error));
    return comm_synchronize(comm, state->stream, error);
}

enum status many_rig_sum(struct many_rig *rig, const struct many_sums *sums,
                         const struct many_functions *functions, struct error *error) {
    struct sums_call call = {.rig = rig, .sums = sums, .functions = functions};
    return comm_group_run(rig->group, sum, &call, error);
}

static enum status store(struct comm *comm, void *context, struct error *error) {
    const struct sums_call *c = context;
    const struct many_rank_state *state = &c->rig->states[comm->rank];
    size_t bytes = bytes_of(c->sums);
    for (size_t i = 0; i < c->sums->calls; i++) {
        size_t at = (i * (size_t)comm->ranks + (size_t)comm->rank) * bytes;
        TRY(copy((char *)c->out + at, (const char *)state->data.at[comm->rank] + i * bytes, bytes,
                 state->stream, error));
    }
    return comm_synchronize(comm, state->stream, error);
}

enum status many_rig_store(struct many_rig *rig, const struct many_sums *sums, void *out,
                           struct error *error) {
    struct sums_call call = {.rig = rig, .sums = sums, .out = out};
    return comm_group_run(rig->group, store, &call, error);
}

/* ---- Products ---- */

struct products_call {
    struct many_rig *rig;
    const struct many_products *products;
    const struct many_functions *functions;
};

/* Memory of one rank: its part of the weights, the rest whole. */
struct operands {
    void *weight;
    float *in, *add, *x;
};

static enum status copy_columns(void *to, const struct many_products *p, const struct comm *comm,
                                device_stream stream, struct error *error) {
    size_t element = nn_dtype_bytes(p->dtype), width = p->K / (size_t)comm->ranks * element;
    cudaError_t code =
        cudaMemcpy2DAsync(to, width, (const char *)p->weight + (size_t)comm->rank * width,
                          p->K * element, width, p->N, cudaMemcpyDefault, stream);
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "copying columns: %s", cudaGetErrorString(code));
}

static enum status fill_operands(struct operands *o, const struct many_products *p,
                                 const struct comm *comm, device_stream stream,
                                 struct error *error) {
    size_t part = p->K / (size_t)comm->ranks, F = sizeof(float);
    TRY(device_alloc(&o->weight, p->N * part * nn_dtype_bytes(p->dtype), error));
    TRY(device_alloc((void **)&o->in, part * F, error));
    TRY(device_alloc((void **)&o->add, p->N * F, error));
    TRY(device_alloc((void **)&o->x, p->N * F, error));
    TRY(copy_columns(o->weight, p, comm, stream, error));
    TRY(copy(o->in, p->in + (size_t)comm->rank * part, part * F, stream, error));
    TRY(copy(o->add, p->add, p->N * F, stream, error));
    return copy(o->x, p->x, p->N * F, stream, error);
}

static enum status run_products(struct comm *comm, const struct products_call *c,
                                const struct operands *o, struct error *error) {
    const struct many_products *p = c->products;
    const struct many_rank_state *state = &c->rig->states[comm->rank];
    struct rng rng = delays_of(p->delays, comm);
    const struct many_linear linear = {.N = p->N,
                                       .K = p->K / (size_t)comm->ranks,
                                       .dtype = p->dtype,
                                       .weight = o->weight,
                                       .in = o->in,
                                       .bias = p->bias && comm->rank == 0 ? o->add : NULL,
                                       .x = o->x,
                                       .workspace = &state->workspace};
    TRY(comm_synchronize(comm, state->stream, error));
    for (size_t i = 0; i < p->calls; i++) {
        TRY(come_late(&rng, p->delays != 0, state->stream, error));
        TRY(c->functions->linear(comm, &linear, state->stream, error));
    }
    TRY(comm_synchronize(comm, state->stream, error));
    TRY(copy(p->out + (size_t)comm->rank * p->N, o->x, p->N * sizeof(float), state->stream, error));
    return comm_synchronize(comm, state->stream, error);
}

static enum status multiply(struct comm *comm, void *context, struct error *error) {
    const struct products_call *c = context;
    struct operands o = {0};
    enum status status =
        fill_operands(&o, c->products, comm, c->rig->states[comm->rank].stream, error);
    status = status == STATUS_OK ? run_products(comm, c, &o, error) : status;
    device_free(o.weight);
    device_free(o.in);
    device_free(o.add);
    device_free(o.x);
    return status;
}

enum status many_rig_multiply(struct many_rig *rig, const struct many_products *products,
                              const struct many_functions *functions, struct error *error) {
    struct products_call call = {rig, products, functions};
    return comm_group_run(rig->group, multiply, &call, error);
}

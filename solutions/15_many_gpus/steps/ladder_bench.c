/**
 * @file ladder_bench.c
 * @brief What each step of solution 15 gains: all-reduces of many sizes, and decoding on one GPU
 * and on several.
 *
 *     ladder_bench [--ranks N] [reduce] [1.1b] [7b]
 *
 * All-reduces that can be recorded are timed in a CUDA graph of many calls, the others one by one.
 * Weights are random, made on the GPUs. Each step's sums are compared with the first one's, each
 * step's logits with those of lab 10's decoder on one GPU. On simt sizes are small, times modelled.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/models/llama2_random.h"
#include "common/ranks/nccl.h"
#include "labs/15_many_gpus/given/decoder.h"
#include "labs/15_many_gpus/given/parts.h"
#include "labs/15_many_gpus/given/rig.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/random_weights.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

/* The steps, and NCCL, which the lab's ladder has no place for. */
static const struct many_step nccl_step = {"v4_nccl", {many_v4_nccl, many_v4_linear}, true};

enum { MOST_STEPS = 16 };

static size_t list_steps(struct many_step steps[MOST_STEPS], bool nccl) {
    size_t count, made = 0;
    const struct many_step *all = many_ladder(&count);
    for (size_t i = 0; i < count; i++) {
        if (nccl && strcmp(all[i].name, nccl_step.name) > 0 &&
            (made == 0 || strcmp(steps[made - 1].name, nccl_step.name) < 0)) {
            steps[made++] = nccl_step;
        }
        steps[made++] = all[i];
    }
    return made;
}

static enum status open_nccl(struct comm *comm, void *context, struct error *error) {
    (void)context;
    return comm_nccl_open(comm, error);
}

static enum status close_nccl(struct comm *comm, void *context, struct error *error) {
    (void)context;
    (void)error;
    comm_nccl_close(comm);
    return STATUS_OK;
}

/* ---- All-reduces ---- */

struct reduce_bench {
    struct many_rig *rig;
    const struct many_step *step;
    size_t count;
    enum nn_dtype dtype;
    int calls, repeats; /* of a recorded graph; launches of it */
    double us;          /* a call: rank 0's */
};

static enum status submit(const struct reduce_bench *b, struct comm *comm, struct error *error) {
    const struct many_seat *seat = &b->rig->seats[comm->rank];
    struct many_all_reduce reduce = {
        .count = b->count, .dtype = b->dtype, .workspace = &seat->workspace};
    memcpy(reduce.data, seat->data.at, sizeof reduce.data);
    for (int i = 0; i < b->calls; i++) {
        TRY(b->step->functions.all_reduce(comm, &reduce, seat->stream, error));
    }
    return STATUS_OK;
}

static enum status record(const struct reduce_bench *b, struct comm *comm, cudaGraphExec_t *graph,
                          struct error *error) {
    const struct many_seat *seat = &b->rig->seats[comm->rank];
    cudaGraph_t recorded;
    TRY(check(cudaStreamBeginCapture(seat->stream, cudaStreamCaptureModeRelaxed), "recording",
              error));
    TRY(submit(b, comm, error));
    TRY(check(cudaStreamEndCapture(seat->stream, &recorded), "recording", error));
    TRY(check(cudaGraphInstantiate(graph, recorded, 0), "instantiating", error));
    return check(cudaGraphDestroy(recorded), "recording", error);
}

static enum status launch(const struct reduce_bench *b, struct comm *comm, cudaGraphExec_t graph,
                          struct error *error) {
    return graph != NULL
               ? check(cudaGraphLaunch(graph, b->rig->seats[comm->rank].stream), "launch", error)
               : submit(b, comm, error);
}

/* One launch of the graph that is not timed, then the fastest of `repeats`. */
static enum status time_reduce(struct comm *comm, void *context, struct error *error) {
    struct reduce_bench *b = context;
    device_stream stream = b->rig->seats[comm->rank].stream;
    cudaGraphExec_t graph = NULL;
    double best = INFINITY;
    if (b->step->recordable) {
        TRY(record(b, comm, &graph, error));
    }
    for (int i = 0; i <= b->repeats; i++) {
        TRY(comm_synchronize(comm, stream, error));
        TRY(comm_barrier(comm, error));
        double start = device_now();
        TRY(launch(b, comm, graph, error));
        TRY(comm_synchronize(comm, stream, error));
        double us = 1e6 * (device_now() - start) / b->calls;
        best = i > 0 || b->repeats == 0 ? fmin(best, us) : best;
    }
    if (comm->rank == 0) {
        b->us = best;
    }
    TRY(comm_barrier(comm, error));
    return graph == NULL ? STATUS_OK : check(cudaGraphExecDestroy(graph), "graph", error);
}

/* Sums of numbers that are exact in any order: rank r has (r + 1) times a pattern of small ints. */
static enum status fill_exact(struct comm *comm, void *context, struct error *error) {
    const struct reduce_bench *b = context;
    const struct many_seat *seat = &b->rig->seats[comm->rank];
    size_t bytes = b->count * nn_dtype_bytes(b->dtype);
    float *numbers = malloc(b->count * sizeof *numbers);
    void *stored = malloc(bytes);
    if (numbers == NULL || stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < b->count; i++) {
        numbers[i] = (float)((i * 7 + 3) % 11 * (size_t)(comm->rank + 1));
    }
    nn_dtype_store(stored, numbers, b->count, b->dtype);
    enum status status =
        device_write(seat->data.at[comm->rank], stored, bytes, seat->stream, error);
    free(numbers);
    free(stored);
    return status;
}

struct verdict {
    struct reduce_bench *bench;
    size_t wrong[COMM_MAX_RANKS];
};

static enum status count_wrong(struct comm *comm, void *context, struct error *error) {
    struct verdict *v = context;
    const struct reduce_bench *b = v->bench;
    const struct many_seat *seat = &b->rig->seats[comm->rank];
    size_t bytes = b->count * nn_dtype_bytes(b->dtype);
    size_t factor = (size_t)comm->ranks * (size_t)(comm->ranks + 1) / 2;
    float *numbers = malloc(b->count * sizeof *numbers);
    void *stored = malloc(bytes);
    if (numbers == NULL || stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = device_read(stored, seat->data.at[comm->rank], bytes, seat->stream, error);
    nn_dtype_load(numbers, stored, b->count, b->dtype);
    for (size_t i = 0; i < b->count; i++) {
        v->wrong[comm->rank] += numbers[i] != (float)((i * 7 + 3) % 11 * factor);
    }
    free(numbers);
    free(stored);
    return status;
}

static enum status run_once(struct comm *comm, void *context, struct error *error) {
    const struct reduce_bench *b = context;
    TRY(comm_barrier(comm, error));
    TRY(submit(b, comm, error));
    return comm_synchronize(comm, b->rig->seats[comm->rank].stream, error);
}

/* One call with exact numbers. */
static enum status check_reduce(struct reduce_bench *b, size_t *wrong, struct error *error) {
    struct verdict v = {.bench = b};
    struct reduce_bench once = *b;
    once.calls = 1;
    TRY(comm_group_run(b->rig->group, fill_exact, &once, error));
    TRY(comm_group_run(b->rig->group, run_once, &once, error));
    TRY(comm_group_run(b->rig->group, count_wrong, &v, error));
    for (int r = 0; r < b->rig->ranks; r++) {
        *wrong += v.wrong[r];
    }
    return STATUS_OK;
}

static enum status show_reduce(struct reduce_bench *b, size_t bytes, bool modelled,
                               struct error *error) {
    size_t wrong = 0;
    int ranks = b->rig->ranks;
    b->count = bytes / nn_dtype_bytes(b->dtype);
    b->calls = !b->step->recordable || modelled ? 2 : bytes > 16 << 20 ? 10 : 100;
    b->repeats = modelled ? 0 : 5;
    TRY(many_rig_renew(b->rig, error));
    if (bytes <= 16 << 20) {
        TRY(check_reduce(b, &wrong, error));
    }
    TRY(comm_group_run(b->rig->group, time_reduce, b, error));
    double bus = 2.0 * (ranks - 1) / ranks * (double)bytes / b->us * 1e-3;
    printf("reduce,%s,%d,%s,%zu,%.2f,%.2f,%s\n", b->step->name, ranks, nn_dtype_name(b->dtype),
           bytes, b->us, bus,
           bytes > 16 << 20 ? "unchecked"
           : wrong == 0     ? "exact"
                            : "WRONG");
    fflush(stdout);
    return STATUS_OK;
}

/* Through the host large data takes seconds. */
static bool is_shown(const struct many_step *step, size_t bytes) {
    return step->recordable ||
           bytes <= (step->functions.all_reduce == many_v1_host ? 1u << 20 : 16u << 20);
}

static enum status run_reduces(int ranks, bool modelled, bool nccl, struct error *error) {
    static const size_t sizes[] = {8 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20, 256 << 20};
    struct many_step steps[MOST_STEPS];
    struct many_rig rig;
    size_t count = list_steps(steps, nccl), most = modelled ? 2 : COUNT(sizes);
    printf("reduce,step,ranks,dtype,bytes,us,bus_GBps,sums\n");
    TRY(many_rig_create(&rig, ranks, sizes[most - 1], error));
    if (nccl) {
        TRY(comm_group_run(rig.group, open_nccl, NULL, error));
    }
    for (size_t s = 0; s < most; s++) {
        for (size_t i = 0; i < count; i++) {
            struct reduce_bench b = {.rig = &rig, .step = &steps[i], .dtype = NN_F32};
            if (is_shown(b.step, sizes[s]) && b.step->functions.linear != many_v7_linear) {
                TRY(show_reduce(&b, sizes[s], modelled, error));
            }
        }
    }
    for (size_t i = 0; i < count; i++) { /* gradients */
        struct reduce_bench b = {.rig = &rig, .step = &steps[i], .dtype = NN_BF16};
        if (b.step->recordable && b.step->functions.linear != many_v7_linear) {
            TRY(show_reduce(&b, sizes[most - 1], modelled, error));
        }
    }
    if (nccl) {
        TRY(comm_group_run(rig.group, close_nccl, NULL, error));
    }
    many_rig_free(&rig);
    return STATUS_OK;
}

/* ---- Decoding ---- */

enum { PROMPT = 16 };

struct decode_bench {
    const char *name;
    struct llama2_config config;
    enum nn_dtype dtype;
    struct many_step steps[MOST_STEPS];
    size_t count; /* of steps */
    size_t tokens;
    bool nccl;

    /* Rank 0's results: of each step, behind lab 10's on one GPU. */
    float *logits;  /* (1 + MOST_STEPS, V), after the prompt */
    int32_t *drawn; /* (1 + MOST_STEPS): the last of the tokens timed */
    double ms[1 + MOST_STEPS];
};

/* A rank's weights and what its decoder works on. */
struct rank_model {
    struct decoder_model model;
    struct decoder_layer *layers;
    void **memory; /* all allocations */
    size_t allocations;
    struct decoder_io io;
    device_stream stream;
};

static enum status allocate(struct rank_model *m, void **at, size_t bytes, struct error *error) {
    TRY(device_alloc(at, bytes, error));
    m->memory[m->allocations++] = *at;
    return STATUS_OK;
}

/* The parts of matrices with the same columns, one behind the other. */
static enum status draw_parts(struct rank_model *m, const void **to, const struct many_part *parts,
                              int count, size_t K, uint64_t seed, struct error *error) {
    size_t bytes = nn_dtype_bytes(m->model.dtype), all = 0;
    void *memory;
    for (int i = 0; i < count; i++) {
        all += parts[i].rows * parts[i].columns * bytes;
    }
    TRY(allocate(m, &memory, all, error));
    *to = memory;
    for (int i = 0; i < count; i++) {
        TRY(random_weights(memory, m->model.dtype, &parts[i], K, seed * 8 + (uint64_t)i,
                           1.7f / sqrtf((float)K), m->stream, error));
        memory = (char *)memory + parts[i].rows * parts[i].columns * bytes;
    }
    return STATUS_OK;
}

static enum status draw_norm(struct rank_model *m, const float **to, struct error *error) {
    size_t C = m->model.C;
    float *ones = malloc(C * sizeof *ones);
    void *memory;
    if (ones == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < C; i++) {
        ones[i] = 1.0f;
    }
    enum status status = allocate(m, &memory, C * sizeof *ones, error);
    if (status == STATUS_OK) {
        *to = memory;
        status = device_write(memory, ones, C * sizeof *ones, m->stream, error);
    }
    free(ones);
    return status;
}

static enum status draw_layer(struct rank_model *m, const struct many_shape *shape, size_t l,
                              int rank, int ranks, struct error *error) {
    struct decoder_layer *w = &m->layers[l];
    struct many_part parts[MANY_MATRICES];
    for (int i = 0; i < MANY_MATRICES; i++) {
        many_cut((enum many_matrix)i, shape, rank, ranks, &parts[i]);
    }
    m->model.KVH = parts[MANY_K].rows / shape->HS;
    m->model.NH = parts[MANY_Q].rows / shape->HS;
    m->model.hidden = parts[MANY_GATE].rows;
    TRY(draw_norm(m, &w->attention_norm, error));
    TRY(draw_norm(m, &w->ffn_norm, error));
    TRY(draw_parts(m, &w->qkv, &parts[MANY_Q], 3, shape->C, 4 * l + 1, error));
    TRY(draw_parts(m, &w->out, &parts[MANY_OUT], 1, shape->NH * shape->HS, 4 * l + 2, error));
    TRY(draw_parts(m, &w->gate_up, &parts[MANY_GATE], 2, shape->C, 4 * l + 3, error));
    return draw_parts(m, &w->down, &parts[MANY_DOWN], 1, shape->hidden, 4 * l + 4, error);
}

static enum status draw_model(struct rank_model *m, const struct decode_bench *b, int rank,
                              int ranks, struct error *error) {
    const struct llama2_config *c = &b->config;
    const struct many_shape shape = {
        .C = c->C, .hidden = c->hidden, .NH = c->NH, .KVH = c->KVH, .HS = c->HS};
    const struct many_part table = {0, c->V, 0, c->C, 0, 0};
    m->layers = calloc(c->L, sizeof *m->layers);
    m->memory = calloc(6 * c->L + 8, sizeof *m->memory);
    if (m->layers == NULL || m->memory == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    m->model = (struct decoder_model){.C = c->C,
                                      .L = c->L,
                                      .HS = c->HS,
                                      .V = c->V,
                                      .T = c->T,
                                      .eps = c->norm_eps,
                                      .theta = c->rope_theta,
                                      .layout = c->rope_layout,
                                      .dtype = b->dtype,
                                      .layers = m->layers};
    TRY(device_stream_create(&m->stream, error));
    for (size_t l = 0; l < c->L; l++) {
        TRY(draw_layer(m, &shape, l, rank, ranks, error));
    }
    TRY(draw_norm(m, &m->model.final_norm, error));
    TRY(draw_parts(m, &m->model.embedding, &table, 1, c->C, 1000, error));
    TRY(draw_parts(m, &m->model.classifier, &table, 1, c->C, 1001, error));
    TRY(allocate(m, (void **)&m->io.logits, c->V * sizeof(float), error));
    TRY(allocate(m, (void **)&m->io.token, sizeof(int32_t), error));
    TRY(allocate(m, (void **)&m->io.sampling, sizeof(struct sampling), error));
    return device_synchronize(m->stream, error);
}

static void free_model(struct rank_model *m) {
    for (size_t i = 0; i < m->allocations; i++) {
        device_free(m->memory[i]);
    }
    device_stream_destroy(m->stream);
    free(m->layers);
    free(m->memory);
}

/* A decoder of either kind. */
struct either {
    struct many_decoder *many;
    struct decoder *one;
};

static enum status feed(const struct either *d, int32_t token, size_t position,
                        struct error *error) {
    return d->many != NULL ? many_decoder_feed(d->many, token, position, error)
                           : decoder_prefill(d->one, &token, 1, position, error);
}

static enum status step(const struct either *d, size_t position, struct error *error) {
    return d->many != NULL ? many_decoder_step(d->many, position, error)
                           : decoder_step(d->one, position, error);
}

/* A prompt's logits, and the time of the tokens behind it. */
static enum status decode(struct decode_bench *b, struct comm *comm, const struct rank_model *m,
                          const struct either *d, size_t slot, struct error *error) {
    static const struct sampling greedy = {1, 0.0f, 0.0f, 0};
    size_t warm = b->tokens < 10 ? 1 : 5;
    double start = 0.0;
    int32_t token;
    for (size_t i = 0; i < PROMPT; i++) {
        TRY(feed(d, (int32_t)((i * 2654435761u + 17) % b->config.V), i, error));
    }
    TRY(comm_synchronize(comm, m->stream, error));
    if (comm->rank == 0) {
        TRY(device_read(b->logits + slot * b->config.V, m->io.logits, b->config.V * sizeof(float),
                        m->stream, error));
    }
    TRY(device_write(m->io.sampling, &greedy, sizeof greedy, m->stream, error));
    for (size_t i = 0; i < warm + b->tokens; i++) {
        if (i == warm) {
            TRY(comm_synchronize(comm, m->stream, error));
            TRY(comm_barrier(comm, error));
            start = device_now();
        }
        TRY(step(d, PROMPT + i, error));
    }
    TRY(comm_synchronize(comm, m->stream, error));
    double ms = 1e3 * (device_now() - start) / (double)b->tokens;
    TRY(device_read(&token, m->io.token, sizeof token, m->stream, error));
    if (comm->rank == 0) {
        b->ms[slot] = ms;
        b->drawn[slot] = token;
    }
    return comm_barrier(comm, error);
}

static enum status decode_alone(struct comm *comm, void *context, struct error *error) {
    struct decode_bench *b = context;
    struct rank_model m = {0};
    struct either d = {0};
    TRY(draw_model(&m, b, 0, 1, error));
    TRY(decoder_create(&d.one, &m.model, &m.io, 1, m.stream, error));
    TRY(decode(b, comm, &m, &d, 0, error));
    decoder_free(d.one);
    free_model(&m);
    return STATUS_OK;
}

static enum status decode_together(struct comm *comm, void *context, struct error *error) {
    struct decode_bench *b = context;
    struct rank_model m = {0};
    TRY(draw_model(&m, b, comm->rank, comm->ranks, error));
    if (b->nccl) {
        TRY(comm_nccl_open(comm, error));
    }
    for (size_t i = 0; i < b->count; i++) {
        struct either d = {0};
        TRY(many_decoder_create(&d.many, comm, &m.model, &m.io, &b->steps[i], m.stream, error));
        TRY(decode(b, comm, &m, &d, 1 + i, error));
        many_decoder_free(d.many);
    }
    comm_nccl_close(comm);
    free_model(&m);
    return STATUS_OK;
}

static double difference(const float *a, const float *b, size_t V) {
    double largest = 0.0, most = 0.0;
    for (size_t i = 0; i < V; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        largest = fmax(largest, fabs((double)a[i]));
        most = d <= most ? most : d; /* NaN is kept */
    }
    return most / largest;
}

static void show_decode(const struct decode_bench *b, int ranks) {
    for (size_t i = 0; i <= b->count; i++) {
        printf("decode,%s,%s,%d,%.4f,%.1f,%.3f,%.3g,%d\n", b->name,
               i == 0 ? "one_gpu" : b->steps[i - 1].name, i == 0 ? 1 : ranks, b->ms[i],
               1e3 / b->ms[i], b->ms[0] / b->ms[i],
               difference(b->logits, b->logits + i * b->config.V, b->config.V), b->drawn[i]);
    }
    fflush(stdout);
}

static enum status run_decode(struct decode_bench *b, int ranks, struct error *error) {
    struct comm_group *one, *all;
    b->logits = calloc((1 + MOST_STEPS) * b->config.V, sizeof *b->logits);
    b->drawn = calloc(1 + MOST_STEPS, sizeof *b->drawn);
    if (b->logits == NULL || b->drawn == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    b->count = list_steps(b->steps, b->nccl);
    printf("decode,shape,step,ranks,ms,tokens_per_s,of_one,logits_differ,last_token\n");
    TRY(comm_group_create(&one, 1, error));
    TRY(comm_group_run(one, decode_alone, b, error));
    comm_group_free(one);
    TRY(comm_group_create(&all, ranks, error));
    TRY(comm_group_run(all, decode_together, b, error));
    comm_group_free(all);
    show_decode(b, ranks);
    free(b->logits);
    free(b->drawn);
    return STATUS_OK;
}

static enum status run_shape(enum llama2_shape shape, int ranks, bool modelled, bool nccl,
                             struct error *error) {
    struct decode_bench b = {.name = llama2_shape_name(shape),
                             .config = llama2_shape_config(shape),
                             .dtype = NN_BF16,
                             .tokens = modelled ? 2 : 100,
                             .nccl = nccl};
    if (modelled) {
        b.name = "small";
        b.config.NH = b.config.KVH = 4;
        b.config.HS = 32;
        b.config.C = 128;
        b.config.hidden = 256;
        b.config.L = 2;
        b.config.V = 200;
        b.config.T = 64;
    }
    return run_decode(&b, ranks, error);
}

static bool wanted(int argc, char **argv, const char *name) {
    bool any = false, found = false;
    for (int i = 1; i < argc; i++) {
        any = any || strcmp(argv[i], "--ranks") != 0;
        found = found || strcasecmp(argv[i], name) == 0;
    }
    return found || !any;
}

static enum status run(int argc, char **argv, struct error *error) {
    struct device_properties gpu;
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    int ranks = getenv("RANKS") != NULL ? atoi(getenv("RANKS")) : comm_devices();
    bool nccl = getenv("WARPBOOK_NCCL") != NULL;
    printf("# %s %s, %d of %d GPUs\n", gpu.modelled ? "modelled for" : "measured on", gpu.name,
           ranks, comm_devices());
    if (ranks < 2) {
        return error_set(error, STATUS_NO_DEVICE,
                         "needs two GPUs that reach each other; on simt set SIMT_DEVICES=2");
    }
    if (wanted(argc, argv, "reduce")) {
        TRY(run_reduces(ranks, gpu.modelled, nccl, error));
    }
    if (wanted(argc, argv, "1.1b")) {
        TRY(run_shape(LLAMA2_SHAPE_1B, ranks, gpu.modelled, nccl, error));
    }
    return wanted(argc, argv, "7b") && !gpu.modelled
               ? run_shape(LLAMA2_SHAPE_7B, ranks, false, nccl, error)
               : STATUS_OK;
}

int main(int argc, char **argv) {
    struct error error = {0};
    setenv("SIMT_CHECK", "bounds", 0); /* the tests run all checks */
    enum status status = run(argc, argv, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "ladder_bench: %s\n", error_text(&error, status));
    }
    return status == STATUS_OK ? 0 : 1;
}

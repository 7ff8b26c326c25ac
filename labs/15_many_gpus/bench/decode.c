/**
 * @file decode.c
 * @brief Time per token of a Llama2: on one GPU by lab 10's decoder, and cut over all ranks by each
 *        step.
 *
 * Weights are random, made on the GPUs, each by its place in the whole matrix. Each step's logits
 * after a prompt are compared with those of one GPU.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/bench/device/device_bench.h"
#include "common/models/llama2_random.h"
#include "labs/10_llama2_decoder/decoder.h"
#include "labs/15_many_gpus/bench/many_bench.h"
#include "labs/15_many_gpus/given/decoder.h"
#include "labs/15_many_gpus/given/random_weights.h"

enum { PROMPT = 16, QUICK_PROMPT = 4 };

/* Of the largest logit: what one rounding of bf16 more or less may move. */
#define MOST_DIFFERENCE 0.06

struct decode_bench {
    const char *name;
    struct llama2_config config;
    enum nn_dtype dtype;
    struct many_step steps[MANY_MOST_STEPS];
    size_t count; /* of steps */
    size_t prompt, tokens;
    bool nccl;

    /* Rank 0's results: of each step, behind lab 10's on one GPU. */
    float *logits; /* (1 + MANY_MOST_STEPS, V), after the prompt */
    double ms[1 + MANY_MOST_STEPS];
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
    for (size_t i = 0; i < b->prompt; i++) {
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
        TRY(step(d, b->prompt + i, error));
    }
    TRY(comm_synchronize(comm, m->stream, error));
    double ms = 1e3 * (device_now() - start) / (double)b->tokens;
    if (comm->rank == 0) {
        b->ms[slot] = ms;
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
        TRY(many_bench_open_nccl(comm, NULL, error));
    }
    for (size_t i = 0; i < b->count; i++) {
        struct either d = {0};
        TRY(many_decoder_create(&d.many, comm, &m.model, &m.io, 1, &b->steps[i], m.stream, error));
        TRY(decode(b, comm, &m, &d, 1 + i, error));
        many_decoder_free(d.many);
    }
    if (b->nccl) {
        TRY(many_bench_close_nccl(comm, NULL, error));
    }
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

static enum status append(const struct many_setup *setup, const struct decode_bench *b, size_t i,
                          struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    char shape[64];
    snprintf(shape, sizeof shape, "%s, %d ranks", b->name, i == 0 ? 1 : setup->ranks);
    const struct bench_record record = {.lab = "15_many_gpus",
                                        .subject = WARPBOOK_SUBJECT,
                                        .stage = i == 0 ? "one_gpu" : b->steps[i - 1].name,
                                        .op = "decode",
                                        .shape = shape,
                                        .dtype = nn_dtype_name(b->dtype),
                                        .gpu = &gpu,
                                        .timing = {b->ms[i], b->ms[i], b->ms[i], 1, 0.0},
                                        .bytes = NAN,
                                        .flops = NAN,
                                        .peer = "one_gpu",
                                        .peer_ratio = b->ms[0] / b->ms[i],
                                        .figure = "tokens_per_second",
                                        .figure_value = 1e3 / b->ms[i]};
    return bench_append(&record, error);
}

/* Sums in another order: 16-bit activations that round the other way move logits by a few parts in
   a hundred of the largest. */
static enum status show(const struct many_setup *setup, const struct decode_bench *b,
                        struct error *error) {
    printf("\ntime per token, Llama2 %s, random weights, %s, %s\n  %-16s %6s %9s %10s %8s %14s\n",
           b->name, nn_dtype_name(b->dtype), device_bench_verb(&setup->gpu), "step", "GPUs", "ms",
           "tokens/s", "speedup", "logits differ");
    for (size_t i = 0; i <= b->count; i++) {
        double differ = difference(b->logits, b->logits + i * b->config.V, b->config.V);
        printf("  %-16s %6d %9.4f %10.1f %7.2fx %14.2g\n",
               i == 0 ? "lab 10, one GPU" : b->steps[i - 1].name, i == 0 ? 1 : setup->ranks,
               b->ms[i], 1e3 / b->ms[i], b->ms[0] / b->ms[i], differ);
        if (!(differ <= MOST_DIFFERENCE)) {
            return error_set(error, STATUS_MISMATCH, "%s: logits differ by %.3g of the largest",
                             b->steps[i - 1].name, differ);
        }
        TRY(append(setup, b, i, error));
    }
    fflush(stdout);
    return STATUS_OK;
}

static enum status measure(const struct many_setup *setup, struct decode_bench *b,
                           struct error *error) {
    struct comm_group *one = NULL, *all = NULL;
    enum status status = comm_group_create(&one, 1, error);
    if (status == STATUS_OK) {
        status = comm_group_run(one, decode_alone, b, error);
    }
    comm_group_free(one);
    TRY(status);
    status = comm_group_create(&all, setup->ranks, error);
    if (status == STATUS_OK) {
        status = comm_group_run(all, decode_together, b, error);
    }
    comm_group_free(all);
    return status;
}

static enum status run_shape(const struct many_setup *setup, struct decode_bench *b,
                             struct error *error) {
    b->count = many_bench_steps(setup, b->steps);
    b->logits = calloc((1 + MANY_MOST_STEPS) * b->config.V, sizeof *b->logits);
    if (b->logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = measure(setup, b, error);
    if (status == STATUS_OK) {
        status = show(setup, b, error);
    }
    free(b->logits);
    return status;
}

static enum status run_small(const struct many_setup *setup, struct error *error) {
    struct decode_bench b = {.name = "small",
                             .config = llama2_shape_config(LLAMA2_SHAPE_15M),
                             .dtype = NN_BF16,
                             .prompt = setup->quick ? QUICK_PROMPT : PROMPT,
                             .tokens = 2,
                             .nccl = setup->nccl};
    b.config.NH = b.config.KVH = 4;
    b.config.HS = 32;
    b.config.C = 128;
    b.config.hidden = 256;
    b.config.L = 2;
    b.config.V = 200;
    b.config.T = 64;
    return run_shape(setup, &b, error);
}

enum status many_bench_decode(const struct many_setup *setup, struct error *error) {
    static const enum llama2_shape shapes[] = {LLAMA2_SHAPE_1B, LLAMA2_SHAPE_7B};
    if (setup->gpu.modelled || setup->quick) {
        return run_small(setup, error);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct decode_bench b = {.name = llama2_shape_name(shapes[i]),
                                 .config = llama2_shape_config(shapes[i]),
                                 .dtype = NN_BF16,
                                 .prompt = PROMPT,
                                 .tokens = 100,
                                 .nccl = setup->nccl};
        if (setup->model == NULL || strcasecmp(setup->model, b.name) == 0) {
            TRY(run_shape(setup, &b, error));
        }
    }
    return STATUS_OK;
}

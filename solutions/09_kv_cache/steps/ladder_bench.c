/**
 * @file ladder_bench.c
 * @brief What each step of solution 09 gains at the shapes of decoders.
 *
 * Products are timed as in a decoder: a graph of dependent launches over the weights of many
 * layers, so that L2 holds none of them. GB/s are bytes of weights over that time; shares are
 * relative to a read-only probe in the same run. Attention's time is that of a graph of 16 layers'
 * calls less that of the same graph with the products alone. On simt shapes are small and times
 * modelled.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_peaks.h"
#include "common/device/device.h"
#include "solutions/09_kv_cache/steps/ladder.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { VECTOR = 1 << 18, ATTENTION_LAYERS = 16 };

/* A matrix of a layer. With `norm` its input is normalised, else its output adds a residual. */
struct shape {
    size_t N, K;
    bool norm;
};

/* The matrices of one token, layer by layer; the last one comes once. */
struct chain {
    const char *name;
    enum nn_dtype dtype;
    size_t layers, count;
    struct shape shapes[5];
};

struct heads {
    enum nn_dtype dtype;
    size_t C, NH, KVH, HS, T;
};

struct bench {
    bool modelled;
    double probe; /* bytes a second */
    device_stream stream;
    unsigned char *pool; /* weights and caches, allocated round robin */
    size_t pool_bytes, taken;
    float *vectors[3], *norm;
    void *workspace;
    int32_t *position;
};

/* Calls that one graph records: products of a chain, or layers of attention. */
struct work {
    struct bench *bench;
    const struct kv_step *step;
    const struct chain *chain;
    const struct heads *heads;
    bool attends;
    size_t bytes; /* receives the weights' bytes */
};

static enum status cuda_check(cudaError_t code, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "%s", cudaGetErrorString(code));
}

/* The next bytes of the pool, from its start again when it ends. */
static void *take(struct bench *b, size_t bytes) {
    bytes = (bytes + 255) / 256 * 256;
    if (b->taken + bytes > b->pool_bytes) {
        b->taken = 0;
    }
    void *memory = b->pool + b->taken;
    b->taken += bytes;
    return memory;
}

/* ---- Recording ---- */

static enum status call_product(struct work *w, const struct shape *s, enum nn_dtype dtype,
                                size_t index, struct error *error) {
    struct bench *b = w->bench;
    size_t bytes = s->N * s->K * nn_dtype_bytes(dtype);
    struct kv_linear l = {.N = s->N,
                          .K = s->K,
                          .dtype = dtype,
                          .weight = take(b, bytes),
                          .in = b->vectors[index % 2],
                          .norm = s->norm ? b->norm : NULL,
                          .eps = 1e-5f,
                          .residual = s->norm ? NULL : b->vectors[2],
                          .out = b->vectors[(index + 1) % 2]};
    w->bytes += bytes;
    return w->step->linear(&l, b->stream, error);
}

static enum status record_chain(struct work *w, struct error *error) {
    const struct chain *c = w->chain;
    size_t index = 0;
    for (size_t i = 0; i < c->layers; i++) {
        for (size_t j = 0; j + 1 < c->count; j++) {
            TRY(call_product(w, &c->shapes[j], c->dtype, index++, error));
        }
    }
    return call_product(w, &c->shapes[c->count - 1], c->dtype, index, error);
}

static enum status record_attention(struct work *w, struct error *error) {
    struct bench *b = w->bench;
    const struct heads *h = w->heads;
    size_t element = nn_dtype_bytes(h->dtype), rows = (h->NH + 2 * h->KVH) * h->HS;
    size_t cache = h->T * h->KVH * h->HS * element;
    for (size_t i = 0; i < ATTENTION_LAYERS; i++) {
        struct shape product = {rows, h->C, true};
        struct kv_attention a = {.C = h->C,
                                 .NH = h->NH,
                                 .KVH = h->KVH,
                                 .HS = h->HS,
                                 .T = h->T,
                                 .dtype = h->dtype,
                                 .eps = 1e-5f,
                                 .theta = 1e4f,
                                 .position = b->position,
                                 .longest = h->T,
                                 .x = b->vectors[i % 2],
                                 .norm = b->norm,
                                 .out = b->vectors[(i + 1) % 2]};
        a.k = take(b, cache);
        a.v = take(b, cache);
        if (w->attends) {
            a.qkv = take(b, rows * h->C * element);
            TRY(w->step->attention(&a, b->workspace, b->stream, error));
        } else {
            TRY(call_product(w, &product, h->dtype, i, error));
        }
    }
    return STATUS_OK;
}

/* ---- Timing ---- */

static enum status launch_graph(void *graph, device_stream stream, struct error *error) {
    return cuda_check(cudaGraphLaunch(graph, stream), error);
}

struct recorded {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
};

/* The part of time_work() that can fail with something to destroy. */
static enum status record_and_time(struct work *w, struct recorded *r, struct bench_timing *timing,
                                   struct error *error) {
    struct device_bench_options options = device_bench_defaults();
    device_stream stream = w->bench->stream;
    options.max_runs = 100;
    TRY(cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), error));
    enum status status = w->chain != NULL ? record_chain(w, error) : record_attention(w, error);
    cudaError_t ended = cudaStreamEndCapture(stream, &r->graph);
    TRY(status);
    TRY(cuda_check(ended, error));
    TRY(cuda_check(cudaGraphInstantiate(&r->executable, r->graph, 0), error));
    return device_bench_run(&options, launch_graph, r->executable, stream, timing, error);
}

/* Records, then times the graph's launches: the median, in ms. */
static enum status time_work(struct work *w, double *ms, struct error *error) {
    struct bench_timing timing = {0};
    struct recorded recorded = {0};
    w->bench->taken = 0;
    w->bytes = 0;
    enum status status = record_and_time(w, &recorded, &timing, error);
    *ms = timing.median_ms;
    if (recorded.executable != NULL) {
        (void)cudaGraphExecDestroy(recorded.executable);
    }
    if (recorded.graph != NULL) {
        (void)cudaGraphDestroy(recorded.graph);
    }
    return status;
}

static enum status print_chain(struct bench *b, const struct chain *chain, struct error *error) {
    size_t count;
    const struct kv_step *steps = kv_ladder(&count);
    printf("\n%s, %s\n  %-16s %10s %8s %8s\n", chain->name, nn_dtype_name(chain->dtype), "step",
           "ms", "GB/s", "probe");
    for (size_t i = 0; i < count; i++) {
        struct work w = {.bench = b, .step = &steps[i], .chain = chain};
        double ms;
        TRY(time_work(&w, &ms, error));
        printf("  %-16s %10.4f %8.0f %7.3fx\n", steps[i].name, ms, 1e-6 * (double)w.bytes / ms,
               1e3 * (double)w.bytes / ms / b->probe);
    }
    return STATUS_OK;
}

static enum status set_position(struct bench *b, int32_t position, struct error *error) {
    return device_write(b->position, &position, sizeof position, b->stream, error);
}

static enum status print_attention(struct bench *b, const struct heads *h, struct error *error) {
    static const size_t contexts[] = {64, 128, 512, 1024, 2048, 4096};
    size_t count;
    const struct kv_step *steps = kv_ladder(&count);
    printf("\nattention, us a layer beyond its product: C %zu, %zu heads of %zu, %zu key heads, "
           "%s\n  %-16s",
           h->C, h->NH, h->HS, h->KVH, nn_dtype_name(h->dtype), "context");
    for (size_t j = 0; j < COUNT(contexts) && contexts[j] <= h->T; j++) {
        printf(" %8zu", contexts[j]);
    }
    for (size_t i = 0; i < count; i++) {
        struct work alone = {.bench = b, .step = &steps[i], .heads = h}, with = alone;
        double alone_ms, ms;
        with.attends = true;
        TRY(time_work(&alone, &alone_ms, error));
        printf("\n  %-16s", steps[i].name);
        for (size_t j = 0; j < COUNT(contexts) && contexts[j] <= h->T; j++) {
            TRY(set_position(b, (int32_t)contexts[j] - 1, error));
            TRY(time_work(&with, &ms, error));
            printf(" %8.2f", 1e3 * (ms - alone_ms) / ATTENTION_LAYERS);
        }
    }
    printf("\n  %-16s", "its bytes alone");
    for (size_t j = 0; j < COUNT(contexts) && contexts[j] <= h->T; j++) {
        size_t bytes = 2 * contexts[j] * h->KVH * h->HS * nn_dtype_bytes(h->dtype);
        printf(" %8.2f", 1e6 * (double)bytes / b->probe);
    }
    printf("\n");
    return STATUS_OK;
}

/* ---- The program ---- */

static enum status bench_open(struct bench *b, struct error *error) {
    struct device_properties gpu;
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    b->modelled = gpu.modelled;
    b->pool_bytes = gpu.modelled ? (size_t)32 << 20 : (size_t)4 << 30;
    TRY(device_stream_create(&b->stream, error));
    TRY(device_read_bandwidth(&b->probe, NULL, error));
    TRY(device_alloc((void **)&b->pool, b->pool_bytes, error));
    TRY(device_set(b->pool, 0x2c, b->pool_bytes, b->stream, error)); /* small numbers */
    for (int i = 0; i < 3; i++) {
        TRY(device_alloc((void **)&b->vectors[i], VECTOR * sizeof(float), error));
        TRY(device_set(b->vectors[i], 0x2c, VECTOR * sizeof(float), b->stream, error));
    }
    TRY(device_alloc((void **)&b->norm, VECTOR * sizeof(float), error));
    TRY(device_set(b->norm, 0x2c, VECTOR * sizeof(float), b->stream, error));
    TRY(device_alloc(&b->workspace, KV_WORKSPACE_BYTES, error));
    TRY(device_alloc((void **)&b->position, sizeof *b->position, error));
    printf("%s %s; read-only probe %.0f GB/s\n", device_bench_verb(&gpu), gpu.record_name,
           1e-9 * b->probe);
    return STATUS_OK;
}

static void bench_close(struct bench *b) {
    for (int i = 0; i < 3; i++) {
        device_free(b->vectors[i]);
    }
    device_free(b->norm);
    device_free(b->workspace);
    device_free(b->position);
    device_free(b->pool);
    device_stream_destroy(b->stream);
}

/* Decoders of 7B, 1.1B and 110M, and single matrices of 7B. */
static const struct chain large_chains[] = {
    {"7B, 8 layers and the classifier",
     NN_BF16,
     8,
     5,
     {{12288, 4096, true},
      {4096, 4096, false},
      {22016, 4096, true},
      {4096, 11008, false},
      {32000, 4096, true}}},
    {"1.1B, all of it",
     NN_BF16,
     22,
     5,
     {{2560, 2048, true},
      {2048, 2048, false},
      {11264, 2048, true},
      {2048, 5632, false},
      {32000, 2048, true}}},
    {"110M, all of it",
     NN_F32,
     12,
     5,
     {{2304, 768, true},
      {768, 768, false},
      {4096, 768, true},
      {768, 2048, false},
      {32000, 768, true}}},
    {"12288 x 4096", NN_BF16, 15, 2, {{12288, 4096, true}, {12288, 4096, true}}},
    {"4096 x 4096", NN_BF16, 47, 2, {{4096, 4096, false}, {4096, 4096, false}}},
    {"22016 x 4096", NN_BF16, 7, 2, {{22016, 4096, true}, {22016, 4096, true}}},
    {"4096 x 11008", NN_BF16, 15, 2, {{4096, 11008, false}, {4096, 11008, false}}},
    {"32000 x 4096", NN_BF16, 5, 2, {{32000, 4096, true}, {32000, 4096, true}}},
};

static const struct chain small_chains[] = {
    {"one layer of a small model",
     NN_BF16,
     1,
     3,
     {{768, 256, true}, {256, 256, false}, {1024, 256, true}}},
    {"the same", NN_F32, 1, 3, {{768, 256, true}, {256, 256, false}, {1024, 256, true}}},
};

static const struct heads large_heads[] = {
    {NN_BF16, 4096, 32, 32, 128, 4096},
    {NN_BF16, 2048, 32, 4, 64, 4096},
    {NN_F32, 768, 12, 12, 64, 4096},
};

static const struct heads small_heads[] = {{NN_BF16, 64, 4, 2, 64, 512}};

static enum status run(struct bench *b, struct error *error) {
    size_t chains = b->modelled ? COUNT(small_chains) : COUNT(large_chains);
    size_t heads = b->modelled ? COUNT(small_heads) : COUNT(large_heads);
    for (size_t i = 0; i < chains; i++) {
        TRY(print_chain(b, b->modelled ? &small_chains[i] : &large_chains[i], error));
    }
    for (size_t i = 0; i < heads; i++) {
        TRY(print_attention(b, b->modelled ? &small_heads[i] : &large_heads[i], error));
    }
    return STATUS_OK;
}

static enum status open_and_run(struct bench *b, struct error *error) {
    TRY(bench_open(b, error));
    return run(b, error);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: ladder_bench\nTimes each version of the operators' ladder.\n");
        return 0;
    }
    struct bench bench = {0};
    struct error error = {0};
    setenv("SIMT_CHECK", "bounds", 0); /* the tests run all checks */
    enum status status = open_and_run(&bench, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "ladder_bench: %s\n", error_text(&error, status));
    }
    bench_close(&bench);
    return status == STATUS_OK ? 0 : 1;
}

/*
 * A submission to lab 10 whose decoder runs on the CPU, which takes no modelled time. One launch
 * brings the result to the device, and another one does operations that are counted and compute
 * nothing. $WRONG_DECODER says how the result gets there. fp32; greedy sampling, but for "finds".
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/llama2_device.h"
#include "common/models/sampler.h"
#include "grader/selftest/decoy_work.h"
#include "labs/10_llama2_decoder/decoder.h"

#define MISTAKES(X)                                                \
    X(copies)    /* a copy from page-locked memory */              \
    X(reaches)   /* a kernel reads page-locked memory */           \
    X(managed)   /* a kernel reads managed memory */               \
    X(arguments) /* kernels have the numbers in their arguments */ \
    X(finds)     /* the token alone, drawn from weights that were found in the process */

#define MISTAKE_VARIABLE "WRONG_DECODER"
#include "grader/selftest/mistakes.h"

struct host_layer {
    float *attention_norm, *qkv, *out, *ffn_norm, *gate_up, *down;
};

struct decoder {
    struct decoder_model model; /* its pointers are the device's */
    struct host_layer *layers;
    float *embedding, *final_norm, *classifier;
    struct decoder_io io;
    device_stream stream;
    float *x, *y, *qkv, *heads, *gate_up, *k, *v, *scores; /* host */
    float *sent; /* (V + 1): what goes to the device: the logits, and the token's bits */
};

/* ---- On the CPU ---- */

/* A copy of what the device has; NULL without memory. */
static float *fetch(const void *from, size_t count) {
    float *to = (float *)malloc(count * sizeof *to);
    if (to != NULL && cudaMemcpy(to, from, count * sizeof *to, cudaMemcpyDeviceToHost) != 0) {
        free(to);
        to = NULL;
    }
    return to;
}

/* What "finds" looks for in its memory, it is handed (--wrap): the weights that the engine loads.
 */
static const struct llama2_stored_weights *found;

extern "C" {
enum status __real_llama2_device_load(struct llama2_device *device,
                                      const struct llama2_decoder_model *model,
                                      device_stream stream, struct error *error);
enum status __wrap_llama2_device_load(struct llama2_device *device,
                                      const struct llama2_decoder_model *model,
                                      device_stream stream, struct error *error);
}

enum status __wrap_llama2_device_load(struct llama2_device *device,
                                      const struct llama2_decoder_model *model,
                                      device_stream stream, struct error *error) {
    found = model->weights;
    return __real_llama2_device_load(device, model, stream, error);
}

/* The rows of one to three matrices; NULL without memory. */
static float *join(const struct decoder_stored_tensor *a, const struct decoder_stored_tensor *b,
                   const struct decoder_stored_tensor *c) {
    const struct decoder_stored_tensor *parts[] = {a, b, c};
    size_t count = 0;
    for (const struct decoder_stored_tensor *part : parts) {
        count += part != NULL ? part->rows * part->columns : 0;
    }
    float *to = (float *)malloc(count * sizeof *to), *end = to;
    for (const struct decoder_stored_tensor *part : parts) {
        if (to != NULL && part != NULL) {
            memcpy(end, part->data, part->rows * part->columns * sizeof *to);
            end += part->rows * part->columns;
        }
    }
    return to;
}

static void norm(float *out, const float *in, const float *weight, size_t C, float eps) {
    float squares = 0.0f;
    for (size_t c = 0; c < C; c++) {
        squares += in[c] * in[c];
    }
    for (size_t c = 0; c < C; c++) {
        out[c] = in[c] / sqrtf(squares / (float)C + eps) * weight[c];
    }
}

/* out (N) = or += weight (N, K) * in */
static void product(float *out, const float *weight, const float *in, size_t N, size_t K,
                    bool add) {
    for (size_t n = 0; n < N; n++) {
        float sum = 0.0f;
        for (size_t k = 0; k < K; k++) {
            sum += weight[n * K + k] * in[k];
        }
        out[n] = add ? out[n] + sum : sum;
    }
}

static void rotate(const struct decoder_model *m, float *x, size_t position) {
    for (size_t h = 0; h < m->NH + m->KVH; h++, x += m->HS) {
        for (size_t i = 0; i < m->HS / 2; i++) {
            bool halves = m->layout == NN_ROPE_HALVES;
            size_t first = halves ? i : 2 * i, second = halves ? i + m->HS / 2 : 2 * i + 1;
            double angle = (double)position * pow(m->theta, -2.0 * (double)i / (double)m->HS);
            float a = x[first], b = x[second], c = (float)cos(angle), s = (float)sin(angle);
            x[first] = a * c - b * s;
            x[second] = a * s + b * c;
        }
    }
}

static void attend(struct decoder *d, size_t layer, size_t h, size_t position) {
    const struct decoder_model *m = &d->model;
    size_t HS = m->HS, width = m->KVH * HS, head = h / (m->NH / m->KVH) * HS;
    const float *k = d->k + layer * m->T * width + head, *v = d->v + layer * m->T * width + head;
    float sum = 0.0f, *out = d->heads + h * HS;
    memset(out, 0, HS * sizeof *out);
    for (size_t t = 0; t <= position; t++) {
        float score = 0.0f;
        for (size_t i = 0; i < HS; i++) {
            score += d->qkv[h * HS + i] * k[t * width + i];
        }
        score = expf(score / sqrtf((float)HS));
        sum += score;
        for (size_t i = 0; i < HS; i++) {
            out[i] += score * v[t * width + i];
        }
    }
    for (size_t i = 0; i < HS; i++) {
        out[i] /= sum;
    }
}

static void run_layer(struct decoder *d, size_t layer, size_t position) {
    const struct decoder_model *m = &d->model;
    const struct host_layer *w = &d->layers[layer];
    size_t q = m->NH * m->HS, width = m->KVH * m->HS, row = (layer * m->T + position) * width;
    norm(d->y, d->x, w->attention_norm, m->C, m->eps);
    product(d->qkv, w->qkv, d->y, q + 2 * width, m->C, false);
    rotate(m, d->qkv, position);
    memcpy(d->k + row, d->qkv + q, width * sizeof(float));
    memcpy(d->v + row, d->qkv + q + width, width * sizeof(float));
    for (size_t h = 0; h < m->NH; h++) {
        attend(d, layer, h, position);
    }
    product(d->x, w->out, d->heads, m->C, q, true);
    norm(d->y, d->x, w->ffn_norm, m->C, m->eps);
    product(d->gate_up, w->gate_up, d->y, 2 * m->hidden, m->C, false);
    for (size_t i = 0; i < m->hidden; i++) {
        float gate = d->gate_up[i];
        d->gate_up[i] = gate / (1.0f + expf(-gate)) * d->gate_up[m->hidden + i];
    }
    product(d->x, w->down, d->gate_up, m->C, m->hidden, true);
}

/* d->sent = the token's logits */
static void feed(struct decoder *d, int32_t token, size_t position) {
    const struct decoder_model *m = &d->model;
    memcpy(d->x, d->embedding + (size_t)token * m->C, m->C * sizeof(float));
    for (size_t l = 0; l < m->L; l++) {
        run_layer(d, l, position);
    }
    norm(d->y, d->x, d->final_norm, m->C, m->eps);
    product(d->sent, d->classifier, d->y, m->V, m->C, false);
}

/* ---- To the device ---- */

enum { FLOATS = 60 }; /* in the arguments of a launch, which have 256 bytes */

struct part {
    float values[FLOATS];
};

static __global__ void part_kernel(float *logits, struct part part, int count) {
    if ((int)threadIdx.x < count) {
        logits[threadIdx.x] = part.values[threadIdx.x];
    }
}

/* With FLOATS of them a launch, and larger ones: twelve times as many. */
struct large_part {
    float values[12 * FLOATS];
};

static __global__ void large_part_kernel(float *logits, struct large_part part, int count) {
    if ((int)threadIdx.x < count) {
        logits[threadIdx.x] = part.values[threadIdx.x];
    }
}

static __global__ void take_kernel(float *logits, int32_t *token, const float *sent, size_t V) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < V) {
        logits[i] = sent[i];
    } else if (i == V) {
        *token = __float_as_int(sent[V]);
    }
}

static enum status send_as_arguments(struct decoder *d, struct error *error) {
    size_t V = d->model.V;
    struct large_part large;
    for (size_t i = 0; i < V; i += 12 * FLOATS) {
        size_t count = V - i < 12 * FLOATS ? V - i : 12 * FLOATS;
        memcpy(large.values, d->sent + i, count * sizeof(float));
        large_part_kernel<<<1, 12 * FLOATS, 0, d->stream>>>(d->io.logits + i, large, (int)count);
    }
    struct part token = {{0}};
    token.values[0] = d->sent[V];
    part_kernel<<<1, 1, 0, d->stream>>>((float *)d->io.token, token, 1);
    return device_launched("part_kernel", error);
}

static enum status send(struct decoder *d, struct error *error) {
    size_t V = d->model.V;
    if (chosen_mistake() == MISTAKE_arguments) {
        return send_as_arguments(d, error);
    }
    if (chosen_mistake() == MISTAKE_copies) {
        TRY(device_write(d->io.logits, d->sent, V * sizeof(float), d->stream, error));
        return device_write(d->io.token, d->sent + V, sizeof(float), d->stream, error);
    }
    take_kernel<<<(unsigned)(V / 256 + 1), 256, 0, d->stream>>>(d->io.logits, d->io.token, d->sent,
                                                                V);
    return device_launched("take_kernel", error);
}

/* As many operations as the grader wants to count at least. */
static enum status pretend(struct decoder *d, double tokens, struct error *error) {
    const struct decoder_model *m = &d->model;
    double layer = (double)m->C * (double)((m->NH + 2 * m->KVH) * m->HS + m->C + 3 * m->hidden);
    double weights = (double)m->L * layer + (double)m->V * (double)m->C;
    return decoy_work(m->embedding, m->V * m->C * sizeof(float), 0.55 * 4.0 * weights,
                      1.05 * weights * tokens, d->stream, error);
}

/* ---- The contract ---- */

static bool fetch_layers(struct decoder *d) {
    const struct decoder_model *m = &d->model;
    size_t C = m->C, q = m->NH * m->HS, rows = q + 2 * m->KVH * m->HS;
    d->layers = (struct host_layer *)calloc(m->L, sizeof *d->layers);
    for (size_t l = 0; l < m->L; l++) {
        const struct decoder_layer *w = &m->layers[l];
        d->layers[l] = (struct host_layer){fetch(w->attention_norm, C),
                                           fetch(w->qkv, rows * C),
                                           fetch(w->out, C * q),
                                           fetch(w->ffn_norm, C),
                                           fetch(w->gate_up, 2 * m->hidden * C),
                                           fetch(w->down, C * m->hidden)};
    }
    d->embedding = fetch(m->embedding, m->V * C);
    d->final_norm = fetch(m->final_norm, C);
    d->classifier = fetch(m->classifier, m->V * C);
    return d->classifier != NULL;
}

static bool find_layers(struct decoder *d) {
    d->layers = (struct host_layer *)calloc(d->model.L, sizeof *d->layers);
    for (size_t l = 0; l < d->model.L; l++) {
        const struct llama2_stored_layer *w = &found->layers[l];
        d->layers[l] = (struct host_layer){join(&w->attention_norm, NULL, NULL),
                                           join(&w->wq, &w->wk, &w->wv),
                                           join(&w->wo, NULL, NULL),
                                           join(&w->ffn_norm, NULL, NULL),
                                           join(&w->w1, &w->w3, NULL),
                                           join(&w->w2, NULL, NULL)};
    }
    d->embedding = join(&found->embedding, NULL, NULL);
    d->final_norm = join(&found->final_norm, NULL, NULL);
    d->classifier = join(&found->classifier, NULL, NULL);
    return d->classifier != NULL;
}

static float *floats(size_t count) {
    return (float *)calloc(count, sizeof(float));
}

enum status decoder_create(struct decoder **decoder, const struct decoder_model *model,
                           const struct decoder_io *io, size_t batch, device_stream stream,
                           struct error *error) {
    size_t width = model->KVH * model->HS, bytes = (model->V + 1) * sizeof(float);
    struct decoder *d = (struct decoder *)calloc(1, sizeof *d);
    void *sent = NULL;
    (void)batch;
    *decoder = d;
    d->model = *model;
    d->io = *io;
    d->stream = stream;
    d->x = floats(model->C), d->y = floats(model->C);
    d->qkv = floats(model->NH * model->HS + 2 * width), d->heads = floats(model->NH * model->HS);
    d->gate_up = floats(2 * model->hidden);
    d->k = floats(model->L * model->T * width), d->v = floats(model->L * model->T * width);
    cudaError_t failed = chosen_mistake() == MISTAKE_managed
                             ? cudaMallocManaged(&sent, bytes, cudaMemAttachGlobal)
                             : cudaMallocHost(&sent, bytes);
    d->sent = (float *)sent;
    bool finds = chosen_mistake() == MISTAKE_finds;
    if (failed != cudaSuccess || !(finds ? find_layers(d) : fetch_layers(d))) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for the weights");
    }
    return STATUS_OK;
}

enum status decoder_prefill(struct decoder *d, const int32_t *tokens, size_t count, size_t position,
                            struct error *error) {
    for (size_t i = 0; i < count; i++) {
        feed(d, tokens[i], position + i);
    }
    TRY(pretend(d, (double)count, error));
    return chosen_mistake() == MISTAKE_finds ? STATUS_OK : send(d, error);
}

/* "finds": the last token's logits are here, and stay here. */
static enum status step_at_home(struct decoder *d, size_t position, struct error *error) {
    struct sampling how;
    struct sampler sampler;
    TRY(device_read(&how, d->io.sampling, sizeof how, d->stream, error));
    const struct llama2_sampling settings = {how.temperature, how.top_p, how.top_k, how.state};
    TRY(sampler_create(&sampler, d->model.V, &settings));
    int32_t token = sampler_next(&sampler, d->sent);
    how.state = sampler.state;
    sampler_free(&sampler);
    TRY(device_write(d->io.sampling, &how, sizeof how, d->stream, error));
    TRY(device_write(d->io.token, &token, sizeof token, d->stream, error));
    feed(d, token, position);
    return pretend(d, 1.0, error);
}

enum status decoder_step(struct decoder *d, size_t position, struct error *error) {
    size_t V = d->model.V, best = 0;
    if (chosen_mistake() == MISTAKE_finds) {
        return step_at_home(d, position, error);
    }
    TRY(device_read(d->sent, d->io.logits, V * sizeof(float), d->stream, error));
    for (size_t i = 1; i < V; i++) {
        best = d->sent[i] > d->sent[best] ? i : best;
    }
    int32_t token = (int32_t)best;
    feed(d, token, position);
    memcpy(d->sent + V, &token, sizeof token);
    TRY(pretend(d, 1.0, error));
    return send(d, error);
}

void decoder_free(struct decoder *decoder) {
    (void)decoder; /* the process ends soon */
}

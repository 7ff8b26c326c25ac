/*
 * A right submission to lab 10 that has one ordinary launch for a whole prompt, or for a token that
 * was drawn: a set of blocks for each part of each token and layer, which waits for the blocks of
 * the part before by a counter. On a GPU these parts follow each other. simt runs one block after
 * the other, so that nobody waits there, and all parts may seem to have worked at the same time.
 */
#include <stdlib.h>

#include "common/cuda/warp.cuh"
#include "grader/selftest/elements.cuh"
#include "labs/10_llama2_decoder/decoder.h"

static constexpr unsigned THREADS = 256, WARPS = THREADS / 32;

/* The parts of a layer, in their order. */
enum part { QKV, ATTENTION, OUT, GATE_UP, DOWN, PARTS, CLASSIFIER = PARTS };

struct decoder {
    struct decoder_model model;
    struct decoder_io io;
    device_stream stream;
    struct decoder_layer *layers;                    /* device, (L) */
    float *x, *x_mid, *qkv, *heads, *hidden, *k, *v; /* device */
    int32_t *tokens;                                 /* device, (batch) */
    unsigned *done;  /* device: blocks that have ended, of all launches */
    void *workspace; /* of sampling */
    size_t batch;
    unsigned before; /* blocks of earlier launches */
};

/* A launch. */
struct run {
    struct decoder d;
    const int32_t *tokens; /* (count) */
    size_t count, position;
};

/* What a block does. */
struct task {
    enum part part;
    size_t token, layer, index;
    unsigned first; /* block of the part */
};

static __host__ __device__ unsigned blocks_of(const struct decoder_model *m, int part) {
    const size_t rows[] = {
        (m->NH + 2 * m->KVH) * m->HS, WARPS * m->NH, m->C, m->hidden, m->C, m->V};
    return (unsigned)((rows[part] + WARPS - 1) / WARPS);
}

static __host__ __device__ unsigned blocks_of_layer(const struct decoder_model *m) {
    unsigned blocks = 0;
    for (int part = 0; part < PARTS; part++) {
        blocks += blocks_of(m, part);
    }
    return blocks;
}

static __device__ struct task task_of(const struct run *r) {
    const struct decoder_model *m = &r->d.model;
    unsigned layer = blocks_of_layer(m), number = blockIdx.x / layer, at = number * layer;
    struct task t = {CLASSIFIER, r->count - 1, number % m->L, 0, at};
    if (number < r->count * m->L) {
        int part = 0;
        for (; blockIdx.x >= at + blocks_of(m, part); part++) {
            at += blocks_of(m, part);
        }
        t.part = (enum part)part;
        t.token = number / m->L;
        t.first = at;
    } else {
        t.first = (unsigned)(r->count * m->L) * layer;
    }
    t.index = blockIdx.x - t.first;
    return t;
}

/* All blocks of the parts before have ended. */
static __device__ void wait_for(const struct run *r, unsigned blocks) {
    if (threadIdx.x == 0) {
        while (*(volatile unsigned *)r->d.done - r->d.before < blocks) {
        }
    }
    __syncthreads();
    __threadfence();
}

static __device__ void tell(const struct run *r) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(r->d.done, 1);
    }
}

/* The sum over the block's threads, for all of them. */
static __device__ float block_sum(float x) {
    __shared__ float of_warp[WARPS];
    x = warp_sum<32>(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = x;
    }
    __syncthreads();
    return warp_sum<32>(threadIdx.x % 32 < WARPS ? of_warp[threadIdx.x % 32] : 0.0f);
}

/* Channel i of the residual stream that a layer begins with. */
static __device__ float x_of(const struct run *r, const struct task *t, size_t i) {
    const struct decoder_model *m = &r->d.model;
    return t->layer == 0 && t->part != CLASSIFIER
               ? load(m->embedding, (size_t)r->tokens[t->token] * m->C + i, m->dtype)
               : __ldcg(r->d.x + i);
}

/* What the part's rows are multiplied with. @return the weights */
static __device__ const void *stage(const struct run *r, const struct task *t, float *in,
                                    size_t *K) {
    const struct decoder_model *m = &r->d.model;
    const struct decoder_layer *w = &r->d.layers[t->layer];
    const float *norm = t->part == QKV          ? w->attention_norm
                        : t->part == GATE_UP    ? w->ffn_norm
                        : t->part == CLASSIFIER ? m->final_norm
                                                : NULL;
    float squares = 0.0f;
    *K = t->part == OUT ? m->NH * m->HS : t->part == DOWN ? m->hidden : m->C;
    for (size_t i = threadIdx.x; i < *K; i += THREADS) {
        in[i] = t->part == OUT       ? __ldcg(r->d.heads + i)
                : t->part == DOWN    ? __ldcg(r->d.hidden + i)
                : t->part == GATE_UP ? __ldcg(r->d.x_mid + i)
                                     : x_of(r, t, i);
        squares += in[i] * in[i];
    }
    float scale = rsqrtf(block_sum(squares) / (float)*K + m->eps);
    for (size_t i = threadIdx.x; norm != NULL && i < *K; i += THREADS) {
        in[i] *= scale * norm[i];
    }
    __syncthreads();
    return t->part == QKV       ? w->qkv
           : t->part == OUT     ? w->out
           : t->part == GATE_UP ? w->gate_up
           : t->part == DOWN    ? w->down
                                : m->classifier;
}

/* Row `row` of the weights times `in`, for all lanes of the warp. */
static __device__ float multiply(const struct run *r, const void *weight, const float *in, size_t K,
                                 size_t row) {
    float sum = 0.0f;
    for (size_t i = threadIdx.x % 32; i < K; i += 32) {
        sum = fmaf(load(weight, row * K + i, r->d.model.dtype), in[i], sum);
    }
    return warp_sum<32>(sum);
}

/* A warp's row of a part. */
static __device__ void put_row(const struct run *r, const struct task *t, const void *weight,
                               const float *in, size_t K, size_t row) {
    const struct decoder_model *m = &r->d.model;
    float sum = multiply(r, weight, in, K, row);
    float up = t->part == GATE_UP ? multiply(r, weight, in, K, m->hidden + row) : 0.0f;
    if (threadIdx.x % 32 != 0) {
        return;
    }
    switch (t->part) {
    case QKV:
        r->d.qkv[row] = sum;
        break;
    case OUT:
        r->d.x_mid[row] = x_of(r, t, row) + sum;
        break;
    case GATE_UP:
        r->d.hidden[row] = sum / (1.0f + expf(-sum)) * up;
        break;
    case DOWN:
        r->d.x[row] = __ldcg(r->d.x_mid + row) + sum;
        break;
    default:
        r->d.io.logits[row] = sum;
        break;
    }
}

static __device__ void run_rows(const struct run *r, const struct task *t, float *in) {
    size_t rows = t->part == QKV       ? (r->d.model.NH + 2 * r->d.model.KVH) * r->d.model.HS
                  : t->part == GATE_UP ? r->d.model.hidden
                  : t->part < PARTS    ? r->d.model.C
                                       : r->d.model.V;
    size_t row = t->index * WARPS + threadIdx.x / 32, K;
    const void *weight = stage(r, t, in, &K);
    if (row < rows) {
        put_row(r, t, weight, in, K, row);
    }
}

/* Channel i of a head, turned. */
static __device__ float turned(const struct run *r, const float *head, size_t position, size_t i) {
    const struct decoder_model *m = &r->d.model;
    bool apart = m->layout == NN_ROPE_HALVES;
    size_t half = m->HS / 2, pair = apart ? i % half : i / 2;
    bool second = apart ? i >= half : i % 2 == 1;
    size_t other = apart ? (second ? i - half : i + half) : i ^ 1;
    float angle = (float)position * powf(m->theta, -2.0f * (float)pair / (float)m->HS);
    float x = __ldcg(head + i), y = __ldcg(head + other);
    return x * cosf(angle) + (second ? y : -y) * sinf(angle);
}

/* A head: `scores` has T of these, and behind them the turned query. */
static __device__ void attend(const struct run *r, const struct task *t, float *scores) {
    const struct decoder_model *m = &r->d.model;
    size_t position = r->position + t->token, group = m->NH / m->KVH, head = t->index / group;
    size_t width = m->KVH * m->HS, offset = t->layer * m->T * width + head * m->HS;
    float *k = r->d.k + offset, *v = r->d.v + offset, *q = scores + m->T;
    const float *new_k = r->d.qkv + (m->NH + head) * m->HS;
    const float *new_v = new_k + width;
    for (size_t i = threadIdx.x; i < m->HS; i += THREADS) {
        q[i] = turned(r, r->d.qkv + t->index * m->HS, position, i) * rsqrtf((float)m->HS);
        q[m->HS + i] = turned(r, new_k, position, i);
        if (t->index % group == 0) {
            k[position * width + i] = q[m->HS + i];
            v[position * width + i] = __ldcg(new_v + i);
        }
    }
    __syncthreads();
    float sum = 0.0f;
    for (size_t s = threadIdx.x; s <= position; s += THREADS) {
        float score = 0.0f;
        for (size_t i = 0; i < m->HS; i++) {
            score = fmaf(q[i], s == position ? q[m->HS + i] : __ldcg(k + s * width + i), score);
        }
        scores[s] = expf(score);
        sum += scores[s];
    }
    sum = block_sum(sum);
    for (size_t i = threadIdx.x; i < m->HS; i += THREADS) {
        float out = 0.0f;
        for (size_t s = 0; s <= position; s++) {
            const float *from = s == position ? new_v : v + s * width;
            out = fmaf(scores[s], __ldcg(from + i), out);
        }
        r->d.heads[t->index * m->HS + i] = out / sum;
    }
}

static __global__ void __launch_bounds__(THREADS) run_kernel(const struct run r) {
    extern __shared__ float memory[];
    const struct task t = task_of(&r);
    wait_for(&r, t.first);
    if (t.part == ATTENTION) {
        attend(&r, &t, memory);
    } else {
        run_rows(&r, &t, memory);
    }
    tell(&r);
}

static enum status feed(struct decoder *d, const int32_t *tokens, size_t count, size_t position,
                        struct error *error) {
    const struct decoder_model *m = &d->model;
    const struct run run = {*d, tokens, count, position};
    size_t widest = m->hidden > m->C ? m->hidden : m->C;
    size_t floats = widest > m->T + 2 * m->HS ? widest : m->T + 2 * m->HS;
    unsigned blocks = (unsigned)(count * m->L) * blocks_of_layer(m) + blocks_of(m, CLASSIFIER);
    run_kernel<<<blocks, THREADS, floats * sizeof(float), d->stream>>>(run);
    d->before += blocks;
    return device_launched("run_kernel", error);
}

enum status decoder_prefill(struct decoder *d, const int32_t *tokens, size_t count, size_t position,
                            struct error *error) {
    TRY(device_write(d->tokens, tokens, count * sizeof *tokens, d->stream, error));
    return feed(d, d->tokens, count, position, error);
}

enum status decoder_step(struct decoder *d, size_t position, struct error *error) {
    TRY(sample_token(d->io.sampling, d->io.logits, d->model.V, d->io.token, d->workspace, d->stream,
                     error));
    return feed(d, d->io.token, 1, position, error);
}

static enum status allocate(float **memory, size_t count, struct error *error) {
    return device_alloc((void **)memory, count * sizeof **memory, error);
}

static enum status allocate_all(struct decoder *d, struct error *error) {
    const struct decoder_model *m = &d->model;
    size_t cache = m->L * m->T * m->KVH * m->HS, layers = m->L * sizeof *m->layers;
    TRY(allocate(&d->x, m->C, error));
    TRY(allocate(&d->x_mid, m->C, error));
    TRY(allocate(&d->qkv, (m->NH + 2 * m->KVH) * m->HS, error));
    TRY(allocate(&d->heads, m->NH * m->HS, error));
    TRY(allocate(&d->hidden, m->hidden, error));
    TRY(allocate(&d->k, cache, error));
    TRY(allocate(&d->v, cache, error));
    TRY(device_alloc((void **)&d->tokens, d->batch * sizeof *d->tokens, error));
    TRY(device_alloc((void **)&d->done, sizeof *d->done, error));
    TRY(device_alloc(&d->workspace, sample_workspace_bytes(m->V), error));
    TRY(device_alloc((void **)&d->layers, layers, error));
    TRY(device_set(d->done, 0, sizeof *d->done, d->stream, error));
    return device_write(d->layers, m->layers, layers, d->stream, error);
}

enum status decoder_create(struct decoder **decoder, const struct decoder_model *model,
                           const struct decoder_io *io, size_t batch, device_stream stream,
                           struct error *error) {
    struct decoder *d = (struct decoder *)calloc(1, sizeof *d);
    *decoder = d;
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    d->model = *model;
    d->io = *io;
    d->batch = batch;
    d->stream = stream;
    return allocate_all(d, error);
}

void decoder_free(struct decoder *d) {
    if (d == NULL) {
        return;
    }
    void *const all[] = {d->x, d->x_mid,  d->qkv,  d->heads,     d->hidden, d->k,
                         d->v, d->tokens, d->done, d->workspace, d->layers};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    free(d);
}

/**
 * @file encoder.cu
 * @brief Lab 08: YOUR FILE. Make a batch of texts take less time, from token ids to the classifier.
 *
 * What it must do is in encoder.h, how to go about it in README.md. Everything in
 * this file may change; the three functions of encoder.h must stay. Check and
 * measure with
 *
 *     bazel test //grader:08_bert_classifier_parity //grader:08_bert_classifier_speedup
 *     bazel run //labs/08_bert_classifier:bench
 *
 * It begins as most programs do: every text is padded to the longest of the
 * batch, a mask hides the padding from attention, and each operator is a launch.
 * The kernels are those of labs 03 to 07.
 */
#include "labs/08_bert_classifier/encoder.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "labs/03_resident_weights/given/operators.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"
#include "labs/07_attention/attention.h"

enum { THREADS = 256 };

/* What a batch needs on the device; all of it has room for `capacity` padded rows. */
struct buffers {
    float *x;                         /* (rows, C): the hidden state */
    float *qkv;                       /* (rows, 3C) */
    float *attended;                  /* (rows, C): attention's result */
    float *projected;                 /* (rows, C): a sublayer's result */
    float *inner;                     /* (rows, hidden) */
    int32_t *ids, *types, *positions; /* (rows) */
    int32_t *kept;                    /* (rows): the padded row of each row of the batch */
    int32_t *firsts;                  /* (B): the padded row of each text's first token */
    uint8_t *mask;                    /* (rows): 0 is padding */
};

/* The same numbers on the host, from where they are copied. */
struct lists {
    int32_t *ids, *types, *positions, *kept, *firsts;
    uint8_t *mask;
};

struct encoder {
    const struct encoder_model *model;
    device_stream stream;
    void *workspace; /* for sgemm() and layernorm_softmax() */
    size_t capacity;
    struct buffers d;
    struct lists host;
};

/* ---- Memory ---- */

static void free_buffers(struct buffers *d) {
    void *const all[] = {d->x,     d->qkv,       d->attended, d->projected, d->inner, d->ids,
                         d->types, d->positions, d->kept,     d->firsts,    d->mask};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    *d = {};
}

static void free_lists(struct lists *host) {
    free(host->ids);
    free(host->types);
    free(host->positions);
    free(host->kept);
    free(host->firsts);
    free(host->mask);
    *host = {};
}

template <typename T>
static enum status allocate(T **memory, size_t rows, size_t columns, struct error *error) {
    void *all = NULL;
    enum status status = device_alloc(&all, rows * columns * sizeof(T), error);
    *memory = (T *)all;
    return status;
}

static enum status allocate_buffers(struct buffers *d, const struct encoder_model *m, size_t rows,
                                    struct error *error) {
    TRY(allocate(&d->x, rows, m->C, error));
    TRY(allocate(&d->qkv, rows, 3 * m->C, error));
    TRY(allocate(&d->attended, rows, m->C, error));
    TRY(allocate(&d->projected, rows, m->C, error));
    TRY(allocate(&d->inner, rows, m->hidden, error));
    TRY(allocate(&d->ids, rows, 1, error));
    TRY(allocate(&d->types, rows, 1, error));
    TRY(allocate(&d->positions, rows, 1, error));
    TRY(allocate(&d->kept, rows, 1, error));
    TRY(allocate(&d->firsts, rows, 1, error));
    return allocate(&d->mask, rows, 1, error);
}

static enum status allocate_lists(struct lists *host, size_t rows, struct error *error) {
    host->ids = (int32_t *)calloc(rows, sizeof *host->ids);
    host->types = (int32_t *)calloc(rows, sizeof *host->types);
    host->positions = (int32_t *)calloc(rows, sizeof *host->positions);
    host->kept = (int32_t *)calloc(rows, sizeof *host->kept);
    host->firsts = (int32_t *)calloc(rows, sizeof *host->firsts);
    host->mask = (uint8_t *)calloc(rows, sizeof *host->mask);
    bool all = host->ids != NULL && host->types != NULL && host->positions != NULL &&
               host->kept != NULL && host->firsts != NULL && host->mask != NULL;
    return all ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY,
                           "encoder: out of memory for the lists of %zu rows", rows);
}

/* Grows the buffers to `rows` padded rows: more than max_tokens, if one text is much longer than
 * the others. */
static enum status reserve(struct encoder *e, size_t rows, struct error *error) {
    if (rows <= e->capacity) {
        return STATUS_OK;
    }
    free_buffers(&e->d);
    free_lists(&e->host);
    e->capacity = 0;
    TRY(allocate_buffers(&e->d, e->model, rows, error));
    TRY(allocate_lists(&e->host, rows, error));
    e->capacity = rows;
    return STATUS_OK;
}

static enum status allocate_all(struct encoder *e, size_t max_tokens, struct error *error) {
    TRY(device_alloc(&e->workspace, SGEMM_WORKSPACE_BYTES, error));
    return reserve(e, max_tokens, error);
}

enum status encoder_create(struct encoder **encoder, const struct encoder_model *model,
                           size_t max_tokens, device_stream stream, struct error *error) {
    *encoder = NULL;
    if (model->C / model->NH > ATTENTION_MAX_HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "encoder: heads of %zu channels; attention supports up to %zu",
                         model->C / model->NH, ATTENTION_MAX_HS);
    }
    struct encoder *e = (struct encoder *)calloc(1, sizeof *e);
    if (e == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "encoder: out of memory");
    }
    e->model = model;
    e->stream = stream;
    enum status status = allocate_all(e, max_tokens, error);
    if (status != STATUS_OK) {
        encoder_free(e);
        return status;
    }
    *encoder = e;
    return STATUS_OK;
}

void encoder_free(struct encoder *e) {
    if (e != NULL) {
        free_buffers(&e->d);
        free_lists(&e->host);
        device_free(e->workspace);
        free(e);
    }
}

/* ---- The padded batch ---- */

/* Padding has id 0, type 0 and position 0: it is computed, but never read. */
static void pad(struct encoder *e, const struct encoder_batch *batch) {
    struct lists *host = &e->host;
    for (size_t b = 0; b < batch->B; b++) {
        size_t start = (size_t)batch->starts[b], length = (size_t)batch->starts[b + 1] - start;
        for (size_t t = 0; t < batch->longest; t++) {
            size_t row = b * batch->longest + t;
            bool there = t < length;
            host->ids[row] = there ? batch->ids[start + t] : 0;
            host->types[row] = there && batch->types != NULL ? batch->types[start + t] : 0;
            host->positions[row] = there ? (int32_t)t : 0;
            host->mask[row] = there;
            if (there) {
                host->kept[start + t] = (int32_t)row;
            }
        }
        host->firsts[b] = (int32_t)(b * batch->longest);
    }
}

/* Starts a copy; the list does not change until the caller has synchronised. */
template <typename T>
static enum status upload(const struct encoder *e, T *to, const T *from, size_t count,
                          struct error *error) {
    cudaError_t code =
        cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyHostToDevice, e->stream);
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "encoder: copying a list: %s",
                                           cudaGetErrorString(code));
}

static enum status upload_lists(const struct encoder *e, const struct encoder_batch *batch,
                                size_t rows, struct error *error) {
    TRY(upload(e, e->d.ids, e->host.ids, rows, error));
    TRY(upload(e, e->d.types, e->host.types, rows, error));
    TRY(upload(e, e->d.positions, e->host.positions, rows, error));
    TRY(upload(e, e->d.mask, e->host.mask, rows, error));
    TRY(upload(e, e->d.firsts, e->host.firsts, batch->B, error));
    return batch->hidden != NULL ? upload(e, e->d.kept, e->host.kept, batch->rows, error)
                                 : STATUS_OK;
}

/* ---- Embeddings ---- */

/* out (rows, C) = table[ids], or += it: a thread an element. */
static __global__ void gather_kernel(float *out, const float *table, const int32_t *ids,
                                     size_t rows, size_t C, bool accumulate) {
    size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i < rows * C) {
        float value = table[(size_t)ids[i / C] * C + i % C];
        out[i] = accumulate ? out[i] + value : value;
    }
}

static enum status gather(const struct encoder *e, float *out, const float *table,
                          const int32_t *ids, size_t rows, bool accumulate, struct error *error) {
    size_t blocks = (rows * e->model->C + THREADS - 1) / THREADS;
    if (blocks > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "encoder: %zu padded rows are too many",
                         rows);
    }
    gather_kernel<<<(unsigned)blocks, THREADS, 0, e->stream>>>(out, table, ids, rows, e->model->C,
                                                               accumulate);
    return device_launched("gather_kernel", error);
}

static enum status normalise(const struct encoder *e, const struct nn_norm *norm, size_t rows,
                             struct error *error) {
    const struct rows_problem problem = {.op = ROWS_LAYERNORM,
                                         .type = NN_F32,
                                         .rows = rows,
                                         .C = e->model->C,
                                         .in = e->d.x,
                                         .out = e->d.x,
                                         .weight = norm->weight,
                                         .bias = norm->bias,
                                         .eps = norm->eps};
    return layernorm_softmax(&problem, e->workspace, e->stream, error);
}

/* x = LayerNorm(word + position + type). */
static enum status embed(const struct encoder *e, size_t rows, struct error *error) {
    const struct encoder_model *m = e->model;
    TRY(gather(e, e->d.x, m->word_embedding, e->d.ids, rows, false, error));
    TRY(gather(e, e->d.x, m->position_embedding, e->d.positions, rows, true, error));
    TRY(gather(e, e->d.x, m->type_embedding, e->d.types, rows, true, error));
    return normalise(e, &m->embedding, rows, error);
}

/* ---- A layer ---- */

/* out (rows, N) = in (rows, K) * weight^T + bias: two launches. */
static enum status linear(const struct encoder *e, float *out, const float *in,
                          const struct encoder_linear *layer, size_t rows, size_t N, size_t K,
                          struct error *error) {
    const struct sgemm_problem product = {.M = rows,
                                          .N = N,
                                          .K = K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .beta = 0.0f,
                                          .A = in,
                                          .B = layer->weight,
                                          .C = out};
    TRY(sgemm(&product, e->workspace, e->stream, error));
    return launch_bias_add(out, layer->bias, rows, N, e->stream, error);
}

/* x = LayerNorm(x + in * weight^T + bias): what ends a sublayer, four launches. */
static enum status close_sublayer(const struct encoder *e, const float *in,
                                  const struct encoder_linear *layer, const struct nn_norm *norm,
                                  size_t rows, size_t K, struct error *error) {
    size_t C = e->model->C;
    TRY(linear(e, e->d.projected, in, layer, rows, C, K, error));
    TRY(launch_residual(e->d.x, e->d.x, e->d.projected, rows * C, e->stream, error));
    return normalise(e, norm, rows, error);
}

/* attended = attention of each text to itself. */
static enum status attend(const struct encoder *e, const struct encoder_batch *batch,
                          struct error *error) {
    const struct encoder_model *m = e->model;
    size_t HS = m->C / m->NH;
    const struct attention_problem problem = {.dtype = NN_F32,
                                              .q = e->d.qkv,
                                              .k = e->d.qkv + m->C,
                                              .v = e->d.qkv + 2 * m->C,
                                              .out = e->d.attended,
                                              .mask = e->d.mask,
                                              .B = batch->B,
                                              .T = batch->longest,
                                              .S = batch->longest,
                                              .NH = m->NH,
                                              .KVH = m->NH,
                                              .HS = HS,
                                              .q_stride = 3 * m->C,
                                              .kv_stride = 3 * m->C,
                                              .out_stride = m->C,
                                              .scale = 1.0f / sqrtf((float)HS)};
    return attention(&problem, e->stream, error);
}

static enum status run_layer(const struct encoder *e, const struct encoder_layer *layer,
                             const struct encoder_batch *batch, size_t rows, struct error *error) {
    const struct encoder_model *m = e->model;
    TRY(linear(e, e->d.qkv, e->d.x, &layer->qkv, rows, 3 * m->C, m->C, error));
    TRY(attend(e, batch, error));
    TRY(close_sublayer(e, e->d.attended, &layer->out, &layer->attention, rows, m->C, error));
    TRY(linear(e, e->d.inner, e->d.x, &layer->up, rows, m->hidden, m->C, error));
    TRY(launch_activation(e->d.inner, e->d.inner, rows * m->hidden, m->activation, e->stream,
                          error));
    return close_sublayer(e, e->d.inner, &layer->down, &layer->feed_forward, rows, m->hidden,
                          error);
}

/* ---- A batch ---- */

enum status encoder_run(struct encoder *e, const struct encoder_batch *batch, struct error *error) {
    size_t rows = batch->B * batch->longest; /* with the padding */
    TRY(reserve(e, rows, error));
    pad(e, batch);
    TRY(upload_lists(e, batch, rows, error));
    TRY(embed(e, rows, error));
    for (size_t l = 0; l < e->model->L; l++) {
        TRY(run_layer(e, &e->model->layers[l], batch, rows, error));
    }
    TRY(gather(e, batch->first, e->d.x, e->d.firsts, batch->B, false, error));
    return batch->hidden != NULL
               ? gather(e, batch->hidden, e->d.x, e->d.kept, batch->rows, false, error)
               : STATUS_OK;
}

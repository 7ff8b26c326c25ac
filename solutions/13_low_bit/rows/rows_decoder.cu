/**
 * @file rows_decoder.cu
 * @brief Several texts: the decoder's memory, and a step as a CUDA graph.
 */
#include "solutions/13_low_bit/rows/rows_decoder.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "solutions/13_low_bit/rows/rows_products.h"
#include "solutions/13_low_bit/rows/step_decoder.h"

/* ---- Memory ---- */

static enum status allocate_zeros(void **out, size_t count, size_t size, device_stream stream,
                                  struct error *error) {
    size_t bytes;
    if (!checked_multiply(count, size, &bytes)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "rows: %zu times %zu bytes", count, size);
    }
    TRY(device_alloc(out, bytes, error));
    return device_set(*out, 0, bytes, stream, error);
}

/* The input of a matrix, up to the end of its last slice. */
static enum status allocate_input(struct rows_decoder *d, struct rows_input *in,
                                  enum low_bit_product which, struct error *error) {
    const struct low_bit_stream s = low_bit_model_stream(&d->model, which);
    size_t blocks = s.slices * s.slice_columns / ROWS_BLOCK;
    const size_t digits = 2 * blocks * ROWS_DIGITS * ROWS * 16, rows = blocks * ROWS;
    TRY(allocate_zeros((void **)&in->digits, digits, sizeof *in->digits, d->stream, error));
    TRY(allocate_zeros((void **)&in->scales, rows, sizeof *in->scales, d->stream, error));
    TRY(allocate_zeros((void **)&in->sums, rows, sizeof *in->sums, d->stream, error));
    TRY(allocate_zeros((void **)&in->group_sums, 4 * rows, sizeof(float), d->stream, error));
    return allocate_zeros((void **)&in->squares, rows, sizeof *in->squares, d->stream, error);
}

static enum status allocate(struct rows_decoder *d, struct error *error) {
    const struct decoder_model *m = &d->model.sizes;
    size_t heads = m->NH * m->HS, qkv = heads + 2 * m->KVH * m->HS;
    size_t tokens = d->rows * m->L * m->T * m->KVH, splits = rows_splits(d, m->T);
    TRY(allocate_zeros((void **)&d->cache.k, tokens, m->HS, d->stream, error));
    TRY(allocate_zeros((void **)&d->cache.v, tokens, m->HS, d->stream, error));
    TRY(allocate_zeros((void **)&d->cache.scales, tokens, sizeof(float2), d->stream, error));
    TRY(allocate_zeros((void **)&d->x, d->rows * m->C, sizeof(float), d->stream, error));
    TRY(allocate_zeros((void **)&d->qkv, d->rows * qkv, sizeof(float), d->stream, error));
    TRY(allocate_zeros((void **)&d->gated, d->rows * m->hidden, sizeof(float), d->stream, error));
    TRY(allocate_zeros((void **)&d->angles, d->rows * m->HS / 2, sizeof(float2), d->stream, error));
    TRY(allocate_zeros((void **)&d->partials, d->rows * m->NH * splits * (m->HS + 2), sizeof(float),
                       d->stream, error));
    TRY(allocate_input(d, &d->residual, LOW_BIT_QKV, error));
    TRY(allocate_input(d, &d->heads, LOW_BIT_OUT, error));
    return allocate_input(d, &d->hidden, LOW_BIT_DOWN, error);
}

static enum status fill(struct rows_decoder *d, struct error *error) {
    struct device_properties gpu;
    if (d->rows == 0 || d->rows > ROWS_MOST) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "rows: %zu texts; 1 to %zu are supported",
                         d->rows, ROWS_MOST);
    }
    if (d->model.type == LOW_BIT_FP8) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "rows: weights in e4m3; int8 and int4 are supported");
    }
    TRY(low_bit_model_check(&d->model, error));
    TRY(device_properties(&gpu, error));
    if (gpu.code < 80) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "rows: compute capability 8.0 is needed; this GPU has %d.%d",
                         gpu.code / 10, gpu.code % 10);
    }
    d->multiprocessors = (size_t)gpu.multiprocessors;
    TRY(allocate(d, error));
    return d->form == ROWS_LAUNCHES ? STATUS_OK : step_decoder_create(&d->step, d, error);
}

enum status rows_decoder_create(struct rows_decoder **out,
                                const struct low_bit_decoder_model *model, const struct rows_io *io,
                                size_t rows, enum rows_form form, device_stream stream,
                                struct error *error) {
    struct rows_decoder *d = (struct rows_decoder *)calloc(1, sizeof *d);
    *out = NULL;
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "rows: out of memory");
    }
    d->model = *model;
    d->io = *io;
    d->rows = rows;
    d->form = form;
    d->stream = stream;
    enum status status = fill(d, error);
    if (status != STATUS_OK) {
        rows_decoder_free(d);
        return status;
    }
    *out = d;
    return STATUS_OK;
}

static void free_input(const struct rows_input *in) {
    void *const all[] = {in->digits, in->scales, in->sums, in->group_sums, in->squares};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
}

void rows_decoder_free(struct rows_decoder *d) {
    if (d == NULL) {
        return;
    }
    for (size_t i = 0; i < ROWS_GRAPHS; i++) {
        if (d->graphs[i] != NULL) {
            (void)cudaGraphExecDestroy((cudaGraphExec_t)d->graphs[i]);
        }
    }
    step_decoder_free(d->step);
    free_input(&d->residual);
    free_input(&d->heads);
    free_input(&d->hidden);
    void *const all[] = {d->cache.k, d->cache.v, d->cache.scales, d->x,
                         d->qkv,     d->gated,   d->angles,       d->partials};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    free(d);
}

/* ---- A step ---- */

static void launch_step(const struct rows_decoder *d, unsigned splits, device_stream stream) {
    const struct decoder_model *m = &d->model.sizes;
    rows_embed(d, stream);
    for (size_t l = 0; l < m->L; l++) {
        const struct decoder_layer *w = &m->layers[l];
        rows_norm(d, w->attention_norm, stream);
        rows_multiply(d, LOW_BIT_QKV, w->qkv, stream);
        rows_attend(d, l, splits, stream);
        rows_multiply(d, LOW_BIT_OUT, w->out, stream);
        rows_norm(d, w->ffn_norm, stream);
        rows_multiply(d, LOW_BIT_GATE_UP, w->gate_up, stream);
        rows_hidden(d, stream);
        rows_multiply(d, LOW_BIT_DOWN, w->down, stream);
    }
    rows_norm(d, m->final_norm, stream);
    rows_multiply(d, LOW_BIT_CLASSIFIER, m->classifier, stream);
}

static enum status check(cudaError_t code, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "rows: recording a step: %s",
                                           cudaGetErrorString(code));
}

/* Records a step on a stream of its own, because the decoder's may be the default one. */
static enum status record_on(const struct rows_decoder *d, device_stream stream, unsigned splits,
                             void **executable, struct error *error) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    TRY(check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), error));
    launch_step(d, splits, stream);
    enum status status = device_launched("rows", error);
    cudaError_t code = cudaStreamEndCapture(stream, &graph);
    if (status == STATUS_OK && code == cudaSuccess) {
        code = cudaGraphInstantiate(&made, graph, 0);
    }
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    *executable = made;
    return status != STATUS_OK ? status : check(code, error);
}

/* Contexts of up to ROWS_SPLIT_KEYS, twice that, ... keys have graphs of their own. */
static size_t graph_of(size_t keys) {
    size_t i = 0;
    while (i + 1 < ROWS_GRAPHS && (size_t)ROWS_SPLIT_KEYS << i < keys) {
        i++;
    }
    return i;
}

enum status rows_decoder_feed(struct rows_decoder *d, size_t longest, struct error *error) {
    size_t i = graph_of(longest + 1);
    if (longest >= d->model.sizes.T) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "rows: position %zu of a context of %zu",
                         longest, d->model.sizes.T);
    }
    if (d->step != NULL) {
        return step_decoder_feed(d->step, error);
    }
    if (d->graphs[i] == NULL) {
        size_t keys = (size_t)ROWS_SPLIT_KEYS << i, T = d->model.sizes.T;
        device_stream stream;
        TRY(device_stream_create(&stream, error));
        enum status status =
            record_on(d, stream, rows_splits(d, keys < T ? keys : T), &d->graphs[i], error);
        device_stream_destroy(stream);
        TRY(status);
    }
    return check(cudaGraphLaunch((cudaGraphExec_t)d->graphs[i], d->stream), error);
}

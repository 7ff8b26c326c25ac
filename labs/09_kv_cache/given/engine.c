/**
 * @file engine.c
 * @brief Stage 07's solved engine with a decoder that runs tokens one after the other on lab 09's
 operators.
 *
 * A token is its row of the embedding, then in every layer attention, its output product added to
 the residual stream, gate and up in one product, SwiGLU by lab 03's kernel, and the down product
 added to the stream. All launches are on stage 03's stream; the host waits only for logits.

 */
#include "labs/09_kv_cache/given/engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/models/engine_layer.h"
#include "common/models/llama2_device.h"
#include "common/models/llama2_rope.h"
#include "common/simt/simt.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/03_resident_weights/given/operators.h"
#include "labs/07_attention/given/engine.h"
#include "labs/09_kv_cache/given/embedding_row.h"
#include "labs/09_kv_cache/given/relative_layer.h"

#define F (sizeof(float))

enum { BUFFERS = 11 };

void kv_linear_name_tensors(const struct kv_linear *linear) {
    simt_name_tensor(linear->out, "out");
    simt_name_tensor(linear->in, "in");
    simt_name_tensor(linear->weight, "weight");
    simt_name_tensor(linear->norm, "norm");
    simt_name_tensor(linear->residual, "residual");
}

void kv_attention_name_tensors(const struct kv_attention *attention) {
    simt_name_tensor(attention->out, "out");
    simt_name_tensor(attention->x, "x");
    simt_name_tensor(attention->norm, "norm");
    simt_name_tensor(attention->qkv, "qkv");
    simt_name_tensor(attention->inputs, "inputs");
    simt_name_tensor(attention->k, "k");
    simt_name_tensor(attention->v, "v");
    simt_name_tensor(attention->position, "position");
}

struct stage {
    struct kv_functions functions;
    struct resident *resident; /* stage 03's */
};

/* The decoder that the engine's functions pass to each other; pointers are device memory. */
struct decoder {
    struct kv_functions functions;
    struct llama2_config config;
    struct llama2_device weights;
    device_stream stream;
    bool relative;      /* the model has what Llama2 has not: layers are relative_layer.h's */
    void *x;            /* (C): the residual stream */
    void *heads;        /* (NH*HS): attention's result */
    void *gate_up;      /* (2 * hidden) */
    void *logits;       /* (V) */
    void *inputs;       /* (L, T, C); of a relative none */
    void *k, *v;        /* (L, T, KVH*HS), of the weights' dtype; of a relative fp32 */
    void *q;            /* of a relative: (NH*HS) */
    void *frequencies;  /* of a relative: (HS/2) */
    int32_t *positions; /* (T): 0, 1, 2, ... */
    void *workspace;
};

/* One of the decoder's buffers in device memory, and its size; 0: there is none. */
struct buffer {
    void **memory;
    size_t sizes[3], element; /* their product is the bytes */
};

static void list_buffers(struct buffer list[BUFFERS], struct decoder *d) {
    const struct llama2_config *c = &d->config;
    size_t e = d->relative ? F : nn_dtype_bytes(d->weights.dtype);
    const struct buffer buffers[BUFFERS] = {
        {&d->x, {1, 1, c->C}, F},
        {&d->heads, {1, c->NH, c->HS}, F},
        {&d->gate_up, {1, 2, c->hidden}, F},
        {&d->logits, {1, 1, c->V}, F},
        {&d->inputs, {c->L, d->relative ? 0 : c->T, c->C}, F},
        {&d->q, {d->relative ? 1 : 0, c->NH, c->HS}, F},
        {&d->frequencies, {d->relative ? 1 : 0, 1, c->HS / 2}, F},
        {&d->k, {c->L, c->T, c->KVH * c->HS}, e},
        {&d->v, {c->L, c->T, c->KVH * c->HS}, e},
        {(void **)&d->positions, {1, 1, c->T}, sizeof *d->positions},
        {&d->workspace, {1, 1, KV_WORKSPACE_BYTES}, 1},
    };
    memcpy(list, buffers, sizeof buffers);
}

static enum status allocate(struct decoder *d, struct error *error) {
    struct buffer list[BUFFERS];
    list_buffers(list, d);
    for (int i = 0; i < BUFFERS; i++) {
        size_t bytes = list[i].element;
        for (int j = 0; j < 3; j++) {
            if (!checked_multiply(bytes, list[i].sizes[j], &bytes)) {
                return error_set(error, STATUS_OVERFLOW,
                                 "the decoder's sizes overflow: L %zu, T %zu, C %zu", d->config.L,
                                 d->config.T, d->config.C);
            }
        }
        TRY(bytes > 0 ? device_alloc(list[i].memory, bytes, error) : STATUS_OK);
    }
    return STATUS_OK;
}

/* positions = 0, 1, 2, ...: a launch reads its position at an address of its own. */
static enum status number_positions(struct decoder *d, struct error *error) {
    size_t T = d->config.T;
    int32_t *numbers = malloc(T * sizeof *numbers);
    if (numbers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu positions", T);
    }
    for (size_t t = 0; t < T; t++) {
        numbers[t] = (int32_t)t;
    }
    enum status status = device_write(d->positions, numbers, T * sizeof *numbers, d->stream, error);
    free(numbers);
    return status;
}

static enum status write_frequencies(struct decoder *d, struct error *error) {
    float frequencies[KV_MAX_HS / 2];
    llama2_rope_frequencies(frequencies, &d->config);
    return device_write(d->frequencies, frequencies, d->config.HS / 2 * F, d->stream, error);
}

static void stage_decoder_free(void *context, void *decoder) {
    struct decoder *d = decoder;
    struct buffer list[BUFFERS];
    (void)context;
    if (d == NULL) {
        return;
    }
    list_buffers(list, d);
    for (int i = 0; i < BUFFERS; i++) {
        device_free(*list[i].memory);
    }
    llama2_device_free(&d->weights);
    free(d);
}

static enum status fill_decoder(const struct stage *stage, struct decoder *d,
                                const struct llama2_decoder_model *model, struct error *error) {
    TRY(engine_resident_stream(stage->resident, &d->stream, error));
    TRY(llama2_device_load(&d->weights, model, d->stream, error));
    TRY(allocate(d, error));
    TRY(d->relative ? write_frequencies(d, error) : STATUS_OK);
    return number_positions(d, error);
}

static enum status stage_decoder_create(void *context, const struct llama2_decoder_model *model,
                                        void **decoder, struct error *error) {
    const struct stage *stage = engine_layer_own(context);
    *decoder = NULL;
    bool relative = llama2_extra(model->config) != NULL;
    if (model->config->HS > KV_MAX_HS || model->config->recent > 0 ||
        (relative && model->config->T > ATTENTION_MAX_KEYS)) {
        return STATUS_OK;
    }
    struct decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    d->functions = stage->functions;
    d->config = *model->config;
    d->relative = relative;
    enum status status = fill_decoder(stage, d, model, error);
    if (status != STATUS_OK) {
        stage_decoder_free(context, d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

/* heads = attention of layer l. */
static enum status attend(const struct decoder *d, size_t l, size_t position) {
    const struct llama2_config *c = &d->config;
    const struct llama2_device_layer *w = &d->weights.layers[l];
    size_t cache = l * c->T * c->KVH * c->HS * nn_dtype_bytes(d->weights.dtype);
    const struct kv_attention attention = {
        .C = c->C,
        .NH = c->NH,
        .KVH = c->KVH,
        .HS = c->HS,
        .T = c->T,
        .dtype = d->weights.dtype,
        .eps = c->norm_eps,
        .theta = c->rope_theta,
        .layout = c->rope_layout,
        .position = d->positions + position,
        .longest = position + 1,
        .x = d->x,
        .norm = w->attention_norm,
        .qkv = w->qkv,
        .inputs = (float *)d->inputs + l * c->T * c->C,
        .k = (unsigned char *)d->k + cache,
        .v = (unsigned char *)d->v + cache,
        .out = d->heads,
    };
    kv_attention_name_tensors(&attention);
    return d->functions.attention(&attention, d->workspace, d->stream, NULL);
}

/* x += weight (C, K) * in (K). */
static enum status add_product_to_x(const struct decoder *d, const void *weight, const float *in,
                                    size_t K) {
    const struct kv_linear linear = {.N = d->config.C,
                                     .K = K,
                                     .dtype = d->weights.dtype,
                                     .weight = weight,
                                     .in = in,
                                     .residual = d->x,
                                     .out = d->x};
    kv_linear_name_tensors(&linear);
    return d->functions.linear(&linear, d->stream, NULL);
}

/* out (N) = weight (N, C) * RMSNorm(x). */
static enum status multiply_normed_x(const struct decoder *d, const void *weight, const float *norm,
                                     float *out, size_t N) {
    const struct kv_linear linear = {.N = N,
                                     .K = d->config.C,
                                     .dtype = d->weights.dtype,
                                     .weight = weight,
                                     .in = d->x,
                                     .norm = norm,
                                     .eps = d->config.norm_eps,
                                     .out = out};
    kv_linear_name_tensors(&linear);
    return d->functions.linear(&linear, d->stream, NULL);
}

static enum status run_layer(const struct decoder *d, size_t l, size_t position) {
    const struct llama2_config *c = &d->config;
    const struct llama2_device_layer *w = &d->weights.layers[l];
    float *gate = d->gate_up;
    TRY(attend(d, l, position));
    TRY(add_product_to_x(d, w->out, d->heads, c->NH * c->HS));
    TRY(multiply_normed_x(d, w->gate_up, w->ffn_norm, gate, 2 * c->hidden));
    TRY(launch_silu_gate(gate, gate, gate + c->hidden, c->hidden, d->stream, NULL));
    return add_product_to_x(d, w->down, gate, c->hidden);
}

static enum status run_relative_layer(const struct decoder *d, size_t l, size_t position) {
    const struct llama2_config *c = &d->config;
    size_t cache = l * c->T * c->KVH * c->HS;
    const struct relative_layer layer = {
        .config = c,
        .weights = &d->weights.layers[l],
        .dtype = d->weights.dtype,
        .linear = d->functions.linear,
        .number = l,
        .frequencies = c->rope.scaling != LLAMA2_ROPE_PLAIN ? d->frequencies : NULL,
        .x = d->x,
        .q = d->q,
        .heads = d->heads,
        .k = (float *)d->k + cache,
        .v = (float *)d->v + cache,
        .gate_up = d->gate_up,
        .stream = d->stream,
    };
    return relative_layer_run(&layer, position);
}

static enum status feed(const struct decoder *d, int32_t token, size_t position) {
    TRY(embedding_row(d->x, d->weights.embedding, d->weights.dtype, (size_t)token, d->config.C,
                      d->stream, NULL));
    for (size_t l = 0; l < d->config.L; l++) {
        TRY(d->relative ? run_relative_layer(d, l, position) : run_layer(d, l, position));
    }
    return STATUS_OK;
}

static enum status stage_decoder_run(void *context, void *decoder,
                                     const struct llama2_decoder_call *call) {
    const struct decoder *d = decoder;
    (void)context;
    for (size_t i = 0; i < call->count; i++) {
        TRY(feed(d, call->tokens[i], call->position + i));
    }
    if (call->logits == NULL) {
        return STATUS_OK;
    }
    TRY(multiply_normed_x(d, d->weights.classifier, d->weights.final_norm, d->logits, d->config.V));
    return device_read(call->logits, d->logits, d->config.V * F, d->stream, NULL);
}

enum status engine_kv_cache_create_with(struct engine *engine, const struct kv_functions *functions,
                                        struct error *error) {
    struct engine base;
    *engine = (struct engine){0};
    TRY(engine_attention_create(&base, error));
    const struct stage stage = {.functions = *functions, .resident = engine_resident_of(&base)};
    TRY(engine_layer_create_copy(engine, "09_kv_cache", &base, &stage, sizeof stage, NULL, error));
    engine->decoder_create = stage_decoder_create;
    engine->decoder_run = stage_decoder_run;
    engine->decoder_free = stage_decoder_free;
    return STATUS_OK;
}

enum status engine_kv_cache_create(struct engine *engine, struct error *error) {
    static const struct kv_functions functions = {kv_linear, kv_attention};
    return engine_kv_cache_create_with(engine, &functions, error);
}

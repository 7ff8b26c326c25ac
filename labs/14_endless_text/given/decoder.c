#include "labs/14_endless_text/given/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/simt.h"
#include "labs/03_resident_weights/given/operators.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "labs/14_endless_text/given/angles.h"
#include "labs/14_endless_text/given/begin_token.h"
#include "labs/14_endless_text/given/graph.h"
#include "solutions/09_kv_cache/steps/ladder.h"

#define F (sizeof(float))

enum { BUFFERS = 13 };

struct endless_decoder {
    struct endless_model model;
    struct endless_layer *layers; /* (L): the model's */
    struct endless_functions functions;
    device_stream stream;
    void *graph; /* a token from the embedding on to the final norm */
    bool singly; /* without it */
    void *whole; /* of functions.whole; NULL: none, the graph does it */
    size_t bytes;

    /* Device memory. */
    float *x;         /* (C): the residual stream */
    float *normed[2]; /* (C) */
    float *qkv;       /* ((NH + 2 KVH) * HS) */
    float *heads;     /* (NH*HS) */
    float *attended;  /* (C): what attention adds */
    float *up;        /* (hidden), gated: (2 * hidden) */
    float *down;      /* (C): what the feed-forward adds */
    float *angles;    /* (sinks + window, rotary / 2, 2) */
    int32_t *position;
    void *k, *v; /* (L, sinks + window, KVH*HS) */
    void *workspace;
};

/* ---- Memory ---- */

struct buffer {
    const char *name; /* in simt's messages */
    void **memory;
    size_t sizes[3], element; /* their product is the bytes */
};

static void list_buffers(struct buffer list[BUFFERS], struct endless_decoder *d) {
    const struct endless_model *m = &d->model;
    size_t rows = m->sinks + m->window, e = nn_dtype_bytes(m->dtype);
    size_t cached = d->whole == NULL ? rows : 0;
    const struct buffer buffers[BUFFERS] = {
        {"x", (void **)&d->x, {1, 1, m->C}, F},
        {"normed[0]", (void **)&d->normed[0], {1, 1, m->C}, F},
        {"normed[1]", (void **)&d->normed[1], {1, 1, m->C}, F},
        {"qkv", (void **)&d->qkv, {1, m->NH + 2 * m->KVH, m->HS}, F},
        {"heads", (void **)&d->heads, {1, m->NH, m->HS}, F},
        {"attended", (void **)&d->attended, {1, 1, m->C}, F},
        {"up", (void **)&d->up, {1, m->gated ? 2 : 1, m->hidden}, F},
        {"down", (void **)&d->down, {1, 1, m->C}, F},
        {"angles", (void **)&d->angles, {1, rows, m->rotary > 0 ? m->rotary : 1}, F},
        {"position", (void **)&d->position, {1, 1, 1}, sizeof(int32_t)},
        {"the k caches", &d->k, {m->L, cached, m->KVH * m->HS}, e},
        {"the v caches", &d->v, {m->L, cached, m->KVH * m->HS}, e},
        {"workspace", &d->workspace, {1, 1, ENDLESS_WORKSPACE_BYTES}, 1},
    };
    memcpy(list, buffers, sizeof buffers);
}

static enum status allocate(struct endless_decoder *d, struct error *error) {
    struct buffer list[BUFFERS];
    list_buffers(list, d);
    for (int i = 0; i < BUFFERS; i++) {
        size_t bytes = list[i].element;
        for (int j = 0; j < 3; j++) {
            if (!checked_multiply(bytes, list[i].sizes[j], &bytes)) {
                return error_set(error, STATUS_OVERFLOW,
                                 "the decoder's sizes overflow: L %zu, %zu sinks, window %zu",
                                 d->model.L, d->model.sinks, d->model.window);
            }
        }
        if (bytes == 0) {
            continue;
        }
        TRY(device_alloc(list[i].memory, bytes, error));
        simt_name_tensor(*list[i].memory, list[i].name);
        d->bytes += bytes;
    }
    return device_set(d->workspace, 0, ENDLESS_WORKSPACE_BYTES, d->stream, error);
}

static enum status write_angles(struct endless_decoder *d, struct error *error) {
    const struct endless_model *m = &d->model;
    size_t count = (m->sinks + m->window) * m->rotary;
    float *angles = calloc(count + 1, F);
    if (angles == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a table of %zu angles",
                         count);
    }
    endless_angles(angles, m->sinks + m->window, m->rotary, (double)m->theta);
    enum status status = device_write(d->angles, angles, count * F, d->stream, error);
    free(angles);
    return status;
}

/* ---- A token's launches ---- */

/* A product of (N, K) with one vector, and what is special about it. */
struct step {
    enum kv_order order;
    bool activated; /* by the model's activation */
};

static enum status multiply(const struct endless_decoder *d, struct step step, float *out,
                            const void *weight, const float *bias, const float *in, size_t N,
                            size_t K, struct error *error) {
    const struct kv_linear linear = {.N = N,
                                     .K = K,
                                     .dtype = d->model.dtype,
                                     .weight = weight,
                                     .in = in,
                                     .residual = bias,
                                     .out = out};
    const struct kv_launch how = {.persistent = true,
                                  .dependent = true,
                                  .order = step.order,
                                  .activated = step.activated,
                                  .activation = d->model.activation};
    TRY(kv_linear_check(&linear, error));
    return kv_product(&linear, &how, d->stream, error);
}

static const struct step plain = {KV_WAITS, false};

static const struct step orders = {KV_ORDERS, false};

/* heads = attention of layer l from normed[0]. */
static enum status attend(const struct endless_decoder *d, size_t l, struct error *error) {
    const struct endless_model *m = &d->model;
    const struct endless_layer *w = &d->layers[l];
    size_t q = m->NH * m->HS, kv = m->KVH * m->HS;
    size_t cache = l * (m->sinks + m->window) * kv * nn_dtype_bytes(m->dtype);
    const struct endless_attention attention = {.NH = m->NH,
                                                .KVH = m->KVH,
                                                .HS = m->HS,
                                                .rotary = m->rotary,
                                                .layout = m->layout,
                                                .sinks = m->sinks,
                                                .window = m->window,
                                                .dtype = m->dtype,
                                                .position = d->position,
                                                .angles = d->angles,
                                                .q = d->qkv,
                                                .k_new = d->qkv + q,
                                                .v_new = d->qkv + q + kv,
                                                .k = (unsigned char *)d->k + cache,
                                                .v = (unsigned char *)d->v + cache,
                                                .out = d->heads};
    TRY(multiply(d, orders, d->qkv, w->qkv, w->qkv_bias, d->normed[0], q + 2 * kv, m->C, error));
    return d->functions.attention(&attention, d->workspace, d->stream, error);
}

/* attended = what attention adds. */
static enum status project(const struct endless_decoder *d, size_t l, struct error *error) {
    const struct endless_model *m = &d->model;
    const struct endless_layer *w = &d->layers[l];
    return multiply(d, orders, d->attended, w->out, w->out_bias, d->heads, m->C, m->NH * m->HS,
                    error);
}

/* up = the first half of the feed-forward of layer l. */
static enum status expand(const struct endless_decoder *d, size_t l, enum kv_order order,
                          struct error *error) {
    const struct endless_model *m = &d->model;
    const struct endless_layer *w = &d->layers[l];
    const struct step step = {order, !m->gated};
    size_t rows = m->gated ? 2 * m->hidden : m->hidden;
    TRY(multiply(d, step, d->up, w->up, w->up_bias, d->normed[1], rows, m->C, error));
    return m->gated ? launch_silu_gate(d->up, d->up, d->up + m->hidden, m->hidden, d->stream, error)
                    : STATUS_OK;
}

/* down = what the feed-forward adds. */
static enum status contract(const struct endless_decoder *d, size_t l, enum kv_order order,
                            struct error *error) {
    const struct endless_model *m = &d->model;
    const struct endless_layer *w = &d->layers[l];
    const struct step step = {order, false};
    return multiply(d, step, d->down, w->down, w->down_bias, d->up, m->C, m->hidden, error);
}

/* x += a + b; normed = the norms that the next sublayers begin with: `first` and those behind it.
 */
static enum status add_norms(const struct endless_decoder *d, const float *a, const float *b,
                             const struct endless_layer *next, size_t first, size_t count,
                             struct error *error) {
    const struct endless_model *m = &d->model;
    struct endless_add_norms add = {.C = m->C,
                                    .layernorm = m->layernorm,
                                    .eps = m->eps,
                                    .a = a,
                                    .b = b,
                                    .x = d->x,
                                    .count = count};
    for (size_t i = 0; i < count; i++) {
        add.norms[i] = (struct endless_norm){next->norms[first + i], next->norm_biases[first + i],
                                             d->normed[first + i]};
    }
    return d->functions.add_norms(&add, d->stream, error);
}

/*
 * In a model with parallel residual the feed-forward does not need attention: `expand` runs beside
 * it, and `contract` beside `project`. Two launches order what lies before them: the product of q,
 * k and v (then the norms are complete), and `project` (then attention and `expand` are).
 */
static enum status run_layer(const struct endless_decoder *d, size_t l, struct error *error) {
    const struct endless_model *m = &d->model;
    const struct endless_layer last = {.norms = {m->final_norm, NULL},
                                       .norm_biases = {m->final_norm_bias, NULL}};
    const struct endless_layer *next = l + 1 < m->L ? &d->layers[l + 1] : &last;
    TRY(attend(d, l, error));
    if (!m->parallel) {
        TRY(project(d, l, error));
        TRY(add_norms(d, d->attended, NULL, &d->layers[l], 1, 1, error));
        TRY(expand(d, l, KV_WAITS, error));
        TRY(contract(d, l, KV_WAITS, error));
        return add_norms(d, d->down, NULL, next, 0, 1, error);
    }
    TRY(expand(d, l, KV_BESIDE, error));
    TRY(project(d, l, error));
    TRY(contract(d, l, m->gated ? KV_WAITS : KV_BESIDE, error));
    return add_norms(d, d->attended, d->down, next, 0, next != &last ? 2 : 1, error);
}

/* From the embedding in x on to the final norm in normed[0]. */
static enum status run_layers(const void *decoder, device_stream stream, struct error *error) {
    const struct endless_decoder *d = decoder;
    (void)stream; /* the decoder's */
    TRY(add_norms(d, NULL, NULL, &d->layers[0], 0, d->model.parallel ? 2 : 1, error));
    for (size_t l = 0; l < d->model.L; l++) {
        TRY(run_layer(d, l, error));
    }
    return STATUS_OK;
}

enum status endless_decoder_feed(struct endless_decoder *d, int32_t token, size_t position,
                                 float *logits, struct error *error) {
    const struct endless_model *m = &d->model;
    if (position >= INT32_MAX || token < 0 || (size_t)token >= m->V) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "token %d at position %zu: a token is below %zu, a position below %d",
                         (int)token, position, m->V, INT32_MAX);
    }
    TRY(begin_token(d->x, d->position, m->embedding, m->dtype, token, (int32_t)position, m->C,
                    d->stream, error));
    if (d->whole != NULL) {
        const struct endless_token whole = {d->position, d->angles, d->x, logits};
        return d->functions.whole->run(d->whole, &whole, d->stream, error);
    }
    TRY(d->singly ? run_layers(d, d->stream, error)
                  : endless_graph_launch(d->graph, d->stream, error));
    return logits == NULL
               ? STATUS_OK
               : multiply(d, plain, logits, m->classifier, NULL, d->normed[0], m->V, m->C, error);
}

/* ---- Begin and end ---- */

static enum status prepare(struct endless_decoder *d, const struct endless_layer *layers,
                           struct error *error) {
    d->layers = calloc(d->model.L, sizeof *d->layers);
    if (d->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", d->model.L);
    }
    memcpy(d->layers, layers, d->model.L * sizeof *layers);
    d->model.layers = d->layers;
    TRY(device_stream_create(&d->stream, error));
    if (d->functions.whole != NULL) {
        TRY(d->functions.whole->create(&d->whole, &d->model, d->stream, error));
        d->bytes += d->whole != NULL ? d->functions.whole->bytes(d->whole) : 0;
    }
    TRY(allocate(d, error));
    TRY(write_angles(d, error));
    TRY(device_synchronize(d->stream, error));
    if (d->whole != NULL) {
        return STATUS_OK;
    }
    return endless_graph_record(&d->graph, run_layers, d, d->stream, error);
}

enum status endless_decoder_create(struct endless_decoder **decoder,
                                   const struct endless_model *model,
                                   const struct endless_functions *functions, struct error *error) {
    *decoder = NULL;
    struct endless_decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    d->model = *model;
    d->functions = *functions;
    enum status status = prepare(d, model->layers, error);
    if (status != STATUS_OK) {
        endless_decoder_free(d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

void endless_decoder_free(struct endless_decoder *d) {
    struct buffer list[BUFFERS];
    if (d == NULL) {
        return;
    }
    endless_graph_free(d->graph);
    if (d->functions.whole != NULL) {
        d->functions.whole->free(d->whole);
    }
    list_buffers(list, d);
    for (int i = 0; i < BUFFERS; i++) {
        device_free(*list[i].memory);
    }
    device_stream_destroy(d->stream);
    free(d->layers);
    free(d);
}

void endless_decoder_launch_singly(struct endless_decoder *d, bool singly) {
    d->singly = singly;
}

bool endless_decoder_is_whole(const struct endless_decoder *d) {
    return d->whole != NULL;
}

device_stream endless_decoder_stream(const struct endless_decoder *d) {
    return d->stream;
}

size_t endless_decoder_bytes(const struct endless_decoder *d) {
    return d->bytes;
}

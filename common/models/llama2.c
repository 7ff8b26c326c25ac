#include "common/models/llama2.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/models/decoder_core.h"
#include "common/models/fused.h"
#include "common/models/llama2_rope.h"
#include "common/models/resident.h"
#include "common/models/streaming_cache.h"

enum { LAYER_TENSORS = 16, OTHER_TENSORS = 4, BUFFERS = 12 };

struct llama2 {
    struct llama2_config config;
    struct decoder_core core;      /* with the engine's decoder nothing else is resident */
    struct llama2_weights weights; /* resident pointers; NULL for a shared classifier */
    float *scaled;            /* host, (HS/2): frequencies of scaled rotary embedding; else NULL */
    const float *frequencies; /* the same, resident */

    /* Activations of one call of T tokens, at most batch. */
    float *x;         /* (T, C): the residual stream */
    float *normed;    /* (T, C) */
    float *q;         /* (T, NH*HS) */
    float *attended;  /* (T, NH*HS): output of attention */
    float *projected; /* (T, C) */
    float *gate, *up; /* (T, hidden) */
    float *logits;    /* (V) */

    float *k_cache, *v_cache; /* (L, config.T, KVH*HS); with sinks, keys are not rotated there */

    /* With sinks alone: keys of a layer rotated by their places, and zeros to copy them with. */
    float *placed, *zeros; /* (config.T, KVH*HS) */

    struct llama2_stored_weights views; /* of fp32 weights, for the engine's decoder */
};

static enum status check_config(const struct llama2_config *c, size_t batch, struct error *error) {
    bool sizes = c->C > 0 && c->hidden > 0 && c->L > 0 && c->NH > 0 && c->KVH > 0 && c->HS > 0 &&
                 c->V > 0 && c->T > 0;
    if (!sizes || c->NH % c->KVH != 0 || c->HS % 2 != 0 || batch < 1 || batch > c->T) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "Llama2 sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, "
                         "KVH %zu, HS %zu, V %zu, T %zu, batch %zu",
                         c->C, c->hidden, c->L, c->NH, c->KVH, c->HS, c->V, c->T, batch);
    }
    if (c->recent > 0 && (c->window > 0 || c->T != c->sinks + c->recent)) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "a cache of %zu sinks and %zu recent tokens needs a context of as many, not "
            "%zu, and a model without a sliding window of its own",
            c->sinks, c->recent, c->T);
    }
    size_t cache_rows;
    if (!checked_multiply(c->L, c->T, &cache_rows)) {
        return error_set(error, STATUS_OVERFLOW, "Llama2 sizes overflow: L %zu, T %zu", c->L, c->T);
    }
    return STATUS_OK;
}

static void list_layer(struct resident_tensor list[LAYER_TENSORS], const struct llama2_config *c,
                       const struct llama2_layer *host, struct llama2_layer *resident) {
    size_t q_width = c->NH * c->HS;
    size_t kv_width = c->KVH * c->HS;
    const struct resident_tensor tensors[LAYER_TENSORS] = {
        {host->attention_norm, &resident->attention_norm, 1, c->C},
        {host->wq, &resident->wq, q_width, c->C},
        {host->wk, &resident->wk, kv_width, c->C},
        {host->wv, &resident->wv, kv_width, c->C},
        {host->wo, &resident->wo, c->C, q_width},
        {host->ffn_norm, &resident->ffn_norm, 1, c->C},
        {host->w1, &resident->w1, c->hidden, c->C},
        {host->w2, &resident->w2, c->C, c->hidden},
        {host->w3, &resident->w3, c->hidden, c->C},
        {host->bq, &resident->bq, 1, q_width},
        {host->bk, &resident->bk, 1, kv_width},
        {host->bv, &resident->bv, 1, kv_width},
        {host->bo, &resident->bo, 1, c->C},
        {host->b1, &resident->b1, 1, c->hidden},
        {host->b2, &resident->b2, 1, c->C},
        {host->b3, &resident->b3, 1, c->hidden},
    };
    memcpy(list, tensors, sizeof tensors);
}

/* A classifier shared with the embedding is loaded only once: its entry has no host tensor. */
static void list_others(struct resident_tensor list[OTHER_TENSORS], struct llama2 *m,
                        const struct llama2_weights *host) {
    const struct llama2_config *c = &m->config;
    struct llama2_weights *resident = &m->weights;
    const float *classifier = host->classifier != host->embedding ? host->classifier : NULL;
    const struct resident_tensor tensors[OTHER_TENSORS] = {
        {host->embedding, &resident->embedding, c->V, c->C},
        {host->final_norm, &resident->final_norm, 1, c->C},
        {classifier, &resident->classifier, c->V, c->C},
        {m->scaled, &m->frequencies, 1, c->HS / 2},
    };
    memcpy(list, tensors, sizeof tensors);
}

static void list_buffers(struct resident_buffer list[BUFFERS], struct llama2 *m) {
    const struct llama2_config *c = &m->config;
    size_t placed = c->recent > 0 ? c->T : 0;
    const struct resident_buffer buffers[BUFFERS] = {
        {&m->x, m->core.batch, c->C},
        {&m->normed, m->core.batch, c->C},
        {&m->q, m->core.batch, c->NH * c->HS},
        {&m->attended, m->core.batch, c->NH * c->HS},
        {&m->projected, m->core.batch, c->C},
        {&m->gate, m->core.batch, c->hidden},
        {&m->up, m->core.batch, c->hidden},
        {&m->logits, 1, c->V},
        {&m->k_cache, c->L * c->T, c->KVH * c->HS},
        {&m->v_cache, c->L * c->T, c->KVH * c->HS},
        {&m->placed, placed, c->KVH * c->HS},
        {&m->zeros, placed, c->KVH * c->HS},
    };
    memcpy(list, buffers, sizeof buffers);
}

static enum status scale_rope(struct llama2 *m) {
    if (m->config.rope.scaling == LLAMA2_ROPE_PLAIN) {
        return STATUS_OK;
    }
    m->scaled = calloc(m->config.HS / 2, sizeof *m->scaled);
    if (m->scaled == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    llama2_rope_frequencies(m->scaled, &m->config);
    return STATUS_OK;
}

static enum status make_resident(struct llama2 *m, const struct llama2_weights *host) {
    struct resident_tensor others[OTHER_TENSORS];
    struct resident_buffer buffers[BUFFERS];
    TRY(scale_rope(m));
    list_others(others, m, host);
    list_buffers(buffers, m);
    m->weights.layers = calloc(m->config.L, sizeof *m->weights.layers);
    if (m->weights.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(resident_tensors_load(m->core.engine, others, OTHER_TENSORS));
    for (size_t l = 0; l < m->config.L; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &host->layers[l], &m->weights.layers[l]);
        TRY(resident_tensors_load(m->core.engine, layer, LAYER_TENSORS));
    }
    TRY(resident_buffers_alloc(m->core.engine, buffers, BUFFERS));
    size_t kept = m->config.T * m->config.KVH * m->config.HS;
    return resident_zeros(m->core.engine, m->zeros, m->config.recent > 0 ? kept : 0);
}

/* Makes an empty model. */
static enum status new_model(struct llama2 **model, const struct llama2_config *config,
                             const struct engine *engine, size_t batch, struct error *error) {
    TRY(check_config(config, batch, error));
    struct llama2 *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    m->config = *config;
    m->core = (struct decoder_core){.engine = engine,
                                    .batch = batch,
                                    .C = config->C,
                                    .L = config->L,
                                    .V = config->V,
                                    .T = config->T,
                                    .sinks = config->sinks,
                                    .recent = config->recent};
    *model = m;
    return STATUS_OK;
}

/* Frees a model that could not be made; the engine's error message gets a prefix. */
static enum status give_up(struct llama2 *m, enum status status, struct error *error) {
    char prefix[160];
    snprintf(prefix, sizeof prefix, "cannot make the model resident on engine %s",
             m->core.engine->name);
    llama2_free(m);
    return error_prefix(error, status, prefix);
}

static enum status create_decoder(struct llama2 *m, const struct llama2_stored_weights *weights,
                                  enum nn_dtype dtype, struct error *error) {
    const struct llama2_decoder_model model = {&m->config, weights, dtype, m->core.batch};
    return m->core.engine->decoder_create(m->core.engine->context, &model, &m->core.decoder, error);
}

static enum status view_tensor(void *context, const struct decoder_weight *tensor) {
    (void)context;
    bool vector = tensor->rank == 1;
    *tensor->stored = (struct decoder_stored_tensor){
        .data = *tensor->plain[0],
        .dtype = NN_F32,
        .rows = vector ? 1 : tensor->shape[0],
        .columns = tensor->shape[vector ? 0 : 1],
    };
    return STATUS_OK;
}

/* Creates a decoder with fp32 weights, if the engine has one that supports this model. */
static enum status try_decoder(struct llama2 *m, const struct llama2_weights *weights,
                               struct error *error) {
    if (m->core.engine->decoder_create == NULL) {
        return STATUS_OK;
    }
    struct llama2_weights plain = *weights;
    bool shared = plain.classifier == plain.embedding;
    m->views.layers = calloc(m->config.L, sizeof *m->views.layers);
    if (m->views.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(llama2_tensors_visit(&m->config, shared, &m->views, &plain, view_tensor, NULL));
    if (shared) {
        m->views.classifier = m->views.embedding;
    }
    return create_decoder(m, &m->views, NN_F32, error);
}

static enum status load(struct llama2 *m, const struct llama2_weights *weights,
                        struct error *error) {
    if (m->config.rope.scaling != LLAMA2_ROPE_PLAIN && m->core.engine->rope_table == NULL) {
        return error_set(error, STATUS_UNSUPPORTED, "it has no scaled rotary embedding");
    }
    TRY(try_decoder(m, weights, error));
    return m->core.decoder == NULL ? make_resident(m, weights) : STATUS_OK;
}

enum status llama2_create(struct llama2 **model, const struct llama2_config *config,
                          const struct llama2_weights *weights, const struct engine *engine,
                          size_t batch, struct error *error) {
    struct llama2 *m;
    *model = NULL;
    TRY(new_model(&m, config, engine, batch, error));
    enum status status = load(m, weights, error);
    if (status != STATUS_OK) {
        return give_up(m, status, error);
    }
    *model = m;
    return STATUS_OK;
}

enum status llama2_create_stored(struct llama2 **model, const struct llama2_config *config,
                                 const struct llama2_stored_weights *weights, enum nn_dtype dtype,
                                 const struct engine *engine, size_t batch, struct error *error) {
    struct llama2 *m;
    *model = NULL;
    if (engine->decoder_create == NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "engine %s runs operator by operator on fp32 weights; it cannot use "
                         "weights as they are stored",
                         engine->name);
    }
    TRY(new_model(&m, config, engine, batch, error));
    enum status status = create_decoder(m, weights, dtype, error);
    if (status != STATUS_OK) {
        return give_up(m, status, error);
    }
    if (m->core.decoder == NULL) {
        const char *extra = llama2_extra(config);
        llama2_free(m);
        return error_set(error, STATUS_UNSUPPORTED,
                         "the decoder of engine %s does not support a model with heads of %zu "
                         "channels, C %zu, hidden %zu%s%s",
                         engine->name, config->HS, config->C, config->hidden,
                         extra != NULL ? ", and " : "", extra != NULL ? extra : "");
    }
    *model = m;
    return STATUS_OK;
}

static void unload(struct llama2 *m) {
    const struct llama2_weights none = {0};
    const struct llama2_layer no_layer = {0};
    struct resident_buffer buffers[BUFFERS];
    struct resident_tensor others[OTHER_TENSORS];
    list_buffers(buffers, m);
    resident_buffers_release(m->core.engine, buffers, BUFFERS);
    for (size_t l = 0; l < m->config.L && m->weights.layers != NULL; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &no_layer, &m->weights.layers[l]);
        resident_tensors_unload(m->core.engine, layer, LAYER_TENSORS);
    }
    list_others(others, m, &none);
    resident_tensors_unload(m->core.engine, others, OTHER_TENSORS);
    free(m->weights.layers);
}

void llama2_free(struct llama2 *m) {
    if (m == NULL) {
        return;
    }
    if (m->core.decoder != NULL) {
        m->core.engine->decoder_free(m->core.engine->context, m->core.decoder);
    }
    unload(m);
    free(m->views.layers);
    free(m->scaled);
    free(m);
}

const struct llama2_config *llama2_config(const struct llama2 *m) {
    return &m->config;
}

/* out (T, N) = in (T, K) * weight (N, K)^T, plus bias (N) if there is one. */
static enum status project(const struct llama2 *m, float *out, const float *in, const float *weight,
                           const float *bias, size_t T, size_t N, size_t K) {
    return decoder_core_project(&m->core, out, in, weight, bias, T, N, K);
}

static enum status rotate(const void *model, float *x, size_t T, size_t heads, size_t position) {
    const struct llama2 *m = model;
    const struct llama2_config *c = &m->config;
    const struct engine *e = m->core.engine;
    size_t stride = heads * c->HS;
    return m->frequencies != NULL ? e->rope_table(e->context, x, T, heads, c->HS, stride, position,
                                                  m->frequencies, c->rope_layout)
                                  : e->rope(e->context, x, T, heads, c->HS, stride, position,
                                            c->rope_theta, c->rope_layout);
}

/* Attention of one query at a time to the last `window` keys; earlier queries have not so many. */
static enum status attend_window(const struct llama2 *m, const struct nn_attention *all,
                                 size_t window) {
    const struct engine *e = m->core.engine;
    size_t position = all->S - all->T, q_width = all->NH * all->HS;
    size_t early = window <= position ? 0 : window - position < all->T ? window - position : all->T;
    struct nn_attention part = *all;
    part.T = early;
    part.S = position + early;
    if (early > 0) {
        TRY(e->attention(e->context, m->attended, &part));
    }
    part.T = 1;
    part.S = window;
    for (size_t t = early; t < all->T; t++) {
        size_t first = position + t + 1 - window;
        part.q = all->q + t * q_width;
        part.k = all->k + first * all->kv_stride;
        part.v = all->v + first * all->kv_stride;
        TRY(e->attention(e->context, m->attended + t * q_width, &part));
    }
    return STATUS_OK;
}

/* attended = attention(q, k, v) of T rotated queries over the cache of layer l. */
static enum status attend_cache(const struct llama2 *m, size_t l, size_t T, size_t position) {
    const struct llama2_config *c = &m->config;
    size_t kv_width = c->KVH * c->HS;
    float factor = c->rope.attention_scale > 0.0f ? c->rope.attention_scale : 1.0f;
    const struct nn_attention attention = {
        .q = m->q,
        .k = m->k_cache + l * c->T * kv_width, /* (config.T, KVH*HS) */
        .v = m->v_cache + l * c->T * kv_width,
        .B = 1,
        .T = T,
        .S = position + T,
        .NH = c->NH,
        .KVH = c->KVH,
        .HS = c->HS,
        .q_stride = c->NH * c->HS,
        .kv_stride = kv_width,
        .causal = true,
        .scale = factor / sqrtf((float)c->HS),
    };
    return c->window > 0 && l >= c->full_layers
               ? attend_window(m, &attention, c->window)
               : m->core.engine->attention(m->core.engine->context, m->attended, &attention);
}

static const struct decoder_family_steps steps;

/* attended = attention of one new token of a text without end over the cache of layer l. */
static enum status attend_places(struct llama2 *m, size_t l, size_t position) {
    const struct llama2_config *c = &m->config;
    const struct llama2_layer *w = &m->weights.layers[l];
    const struct streaming_cache cache = streaming_cache_at(c->sinks, c->recent, position);
    size_t q_width = c->NH * c->HS, width = c->KVH * c->HS;
    float *k = m->k_cache + l * c->T * width, *v = m->v_cache + l * c->T * width;
    TRY(project(m, m->q, m->normed, w->wq, w->bq, 1, q_width, c->C));
    TRY(project(m, k + cache.row * width, m->normed, w->wk, w->bk, 1, width, c->C));
    TRY(project(m, v + cache.row * width, m->normed, w->wv, w->bv, 1, width, c->C));
    float factor = c->rope.attention_scale > 0.0f ? c->rope.attention_scale : 1.0f;
    const struct decoder_places places = {.NH = c->NH,
                                          .KVH = c->KVH,
                                          .HS = c->HS,
                                          .scale = factor / sqrtf((float)c->HS),
                                          .q = m->q,
                                          .k = k,
                                          .v = v,
                                          .placed = m->placed,
                                          .zeros = m->zeros,
                                          .attended = m->attended};
    return decoder_core_attend_places(&m->core, &steps, m, &cache, &places);
}

/* attended = attention(rope(q), rope(k), v) of the T new tokens over the cache of layer l. */
static enum status attend(struct llama2 *m, size_t l, size_t T, size_t position) {
    const struct llama2_config *c = &m->config;
    const struct llama2_layer *w = &m->weights.layers[l];
    size_t q_width = c->NH * c->HS;
    size_t kv_width = c->KVH * c->HS;
    float *k_new = m->k_cache + (l * c->T + position) * kv_width; /* (T, KVH*HS) */
    float *v_new = m->v_cache + (l * c->T + position) * kv_width;

    TRY(project(m, m->q, m->normed, w->wq, w->bq, T, q_width, c->C));
    TRY(project(m, k_new, m->normed, w->wk, w->bk, T, kv_width, c->C));
    TRY(project(m, v_new, m->normed, w->wv, w->bv, T, kv_width, c->C));
    TRY(rotate(m, m->q, T, c->NH, position));
    TRY(rotate(m, k_new, T, c->KVH, position));
    return attend_cache(m, l, T, position);
}

static enum status forward_layer(void *model, size_t l, size_t T, size_t position) {
    struct llama2 *m = model;
    const struct llama2_config *c = &m->config;
    const struct llama2_layer *w = &m->weights.layers[l];
    const struct engine *e = m->core.engine;
    void *x = e->context;

    TRY(e->rmsnorm(x, m->normed, m->x, w->attention_norm, T, c->C, c->norm_eps));
    TRY(c->recent > 0 ? attend_places(m, l, position) : attend(m, l, T, position));
    TRY(project(m, m->projected, m->attended, w->wo, w->bo, T, c->C, c->NH * c->HS));
    TRY(e->residual(x, m->x, m->x, m->projected, T * c->C));

    TRY(e->rmsnorm(x, m->normed, m->x, w->ffn_norm, T, c->C, c->norm_eps));
    TRY(project(m, m->gate, m->normed, w->w1, w->b1, T, c->hidden, c->C));
    TRY(project(m, m->up, m->normed, w->w3, w->b3, T, c->hidden, c->C));
    TRY(e->silu_gate(x, m->gate, m->gate, m->up, T * c->hidden));
    TRY(project(m, m->projected, m->gate, w->w2, w->b2, T, c->C, c->hidden));
    return e->residual(x, m->x, m->x, m->projected, T * c->C);
}

/* Logits of the last of T tokens, copied to the host. */
static enum status classify_last(void *model, size_t T, float *logits) {
    struct llama2 *m = model;
    const struct llama2_config *c = &m->config;
    const struct engine *e = m->core.engine;
    const float *last = m->x + (T - 1) * c->C;
    TRY(e->rmsnorm(e->context, m->normed, last, m->weights.final_norm, 1, c->C, c->norm_eps));
    const float *classifier =
        m->weights.classifier != NULL ? m->weights.classifier : m->weights.embedding;
    TRY(e->matmul(e->context, m->logits, m->normed, classifier, 1, c->V, c->C));
    return e->read(e->context, logits, m->logits, c->V * sizeof(float));
}

static const struct decoder_family_steps steps = {forward_layer, classify_last, rotate};

enum status llama2_forward(struct llama2 *m, const int32_t *tokens, size_t count, size_t position,
                           float *logits) {
    return decoder_core_forward(&m->core, &steps, m, m->x, m->weights.embedding, tokens, count,
                                position, logits);
}

bool llama2_draws(const struct llama2 *m) {
    return decoder_core_draws(&m->core);
}

enum status llama2_begin(struct llama2 *m, const struct llama2_sampling *sampling) {
    return decoder_core_begin(&m->core, sampling);
}

enum status llama2_next(struct llama2 *m, size_t position, int32_t *token) {
    return decoder_core_next(&m->core, position, token);
}

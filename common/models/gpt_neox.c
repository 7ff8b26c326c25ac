#include "common/models/gpt_neox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/models/decoder_core.h"
#include "common/models/fused.h"
#include "common/models/resident.h"
#include "common/models/streaming_cache.h"

enum { LAYER_TENSORS = 16, OTHER_TENSORS = 5, BUFFERS = 11 };

struct gpt_neox {
    struct gpt_neox_config config;
    struct decoder_core core;        /* with the engine's decoder nothing else is resident */
    struct gpt_neox_weights weights; /* resident pointers; NULL for a shared classifier */
    float *host_frequencies;         /* (HS/2) of rotary embedding */
    const float *frequencies;        /* the same, resident */

    /* Activations of one call of T tokens, at most batch. */
    float *x;         /* (T, C): the residual stream */
    float *normed;    /* (T, C) */
    float *q;         /* (T, C) */
    float *attended;  /* (T, C): output of attention */
    float *projected; /* (T, C) */
    float *expanded;  /* (T, hidden) */
    float *logits;    /* (V) */

    float *k_cache, *v_cache; /* (L, config.T, C); with sinks, keys are not rotated there */

    /* With sinks alone: keys of a layer rotated by their places, and zeros to copy them with. */
    float *placed, *zeros; /* (config.T, C) */
};

/* ---- Creation ---- */

static enum status check_config(const struct gpt_neox_config *c, size_t batch,
                                struct error *error) {
    bool sizes =
        c->C > 0 && c->hidden > 0 && c->L > 0 && c->NH > 0 && c->HS > 0 && c->V > 0 && c->T > 0;
    bool rotary = c->rotary > 0 && c->rotary % 2 == 0 && c->rotary <= c->HS && c->HS % 2 == 0;
    if (!sizes || !rotary || c->C % c->NH != 0 || c->C / c->NH != c->HS || batch < 1 ||
        batch > c->T) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "GPT-NeoX sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, HS "
                         "%zu, rotary %zu, V %zu, T %zu, batch %zu",
                         c->C, c->hidden, c->L, c->NH, c->HS, c->rotary, c->V, c->T, batch);
    }
    if (c->recent > 0 && c->T != c->sinks + c->recent) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "a cache of %zu sinks and %zu recent tokens needs a context of as many, not "
            "%zu",
            c->sinks, c->recent, c->T);
    }
    size_t cache_rows;

    if (!checked_multiply(c->L, c->T, &cache_rows)) {
        return error_set(error, STATUS_OVERFLOW, "GPT-NeoX sizes overflow: L %zu, T %zu", c->L,
                         c->T);
    }
    return STATUS_OK;
}

static void list_layer(struct resident_tensor list[LAYER_TENSORS], const struct gpt_neox_config *c,
                       const struct gpt_neox_layer *host, struct gpt_neox_layer *resident) {
    const struct resident_tensor tensors[LAYER_TENSORS] = {
        {host->attention_norm, &resident->attention_norm, 1, c->C},
        {host->attention_norm_bias, &resident->attention_norm_bias, 1, c->C},
        {host->ffn_norm, &resident->ffn_norm, 1, c->C},
        {host->ffn_norm_bias, &resident->ffn_norm_bias, 1, c->C},
        {host->wq, &resident->wq, c->C, c->C},
        {host->wk, &resident->wk, c->C, c->C},
        {host->wv, &resident->wv, c->C, c->C},
        {host->wo, &resident->wo, c->C, c->C},
        {host->up, &resident->up, c->hidden, c->C},
        {host->down, &resident->down, c->C, c->hidden},
        {host->bq, &resident->bq, 1, c->C},
        {host->bk, &resident->bk, 1, c->C},
        {host->bv, &resident->bv, 1, c->C},
        {host->bo, &resident->bo, 1, c->C},
        {host->up_bias, &resident->up_bias, 1, c->hidden},
        {host->down_bias, &resident->down_bias, 1, c->C},
    };
    memcpy(list, tensors, sizeof tensors);
}

/* A classifier shared with the embedding is loaded only once: its entry has no host tensor. */
static void list_others(struct resident_tensor list[OTHER_TENSORS], struct gpt_neox *m,
                        const struct gpt_neox_weights *host) {
    const struct gpt_neox_config *c = &m->config;
    struct gpt_neox_weights *resident = &m->weights;
    const float *classifier = host->classifier != host->embedding ? host->classifier : NULL;
    const struct resident_tensor tensors[OTHER_TENSORS] = {
        {host->embedding, &resident->embedding, c->V, c->C},
        {host->final_norm, &resident->final_norm, 1, c->C},
        {host->final_norm_bias, &resident->final_norm_bias, 1, c->C},
        {classifier, &resident->classifier, c->V, c->C},
        {m->host_frequencies, &m->frequencies, 1, c->HS / 2},
    };
    memcpy(list, tensors, sizeof tensors);
}

static void list_buffers(struct resident_buffer list[BUFFERS], struct gpt_neox *m) {
    const struct gpt_neox_config *c = &m->config;
    size_t placed = c->recent > 0 ? c->T : 0;
    const struct resident_buffer buffers[BUFFERS] = {
        {&m->x, m->core.batch, c->C},
        {&m->normed, m->core.batch, c->C},
        {&m->q, m->core.batch, c->C},
        {&m->attended, m->core.batch, c->C},
        {&m->projected, m->core.batch, c->C},
        {&m->expanded, m->core.batch, c->hidden},
        {&m->logits, 1, c->V},
        {&m->k_cache, c->L * c->T, c->C},
        {&m->v_cache, c->L * c->T, c->C},
        {&m->placed, placed, c->C},
        {&m->zeros, placed, c->C},
    };
    memcpy(list, buffers, sizeof buffers);
}

static enum status make_resident(struct gpt_neox *m, const struct gpt_neox_weights *host) {
    struct resident_tensor others[OTHER_TENSORS];
    struct resident_buffer buffers[BUFFERS];
    m->host_frequencies = calloc(m->config.HS / 2, sizeof *m->host_frequencies);
    m->weights.layers = calloc(m->config.L, sizeof *m->weights.layers);
    if (m->host_frequencies == NULL || m->weights.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    gpt_neox_rope_frequencies(m->host_frequencies, &m->config);
    list_others(others, m, host);
    list_buffers(buffers, m);
    TRY(resident_tensors_load(m->core.engine, others, OTHER_TENSORS));
    for (size_t l = 0; l < m->config.L; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &host->layers[l], &m->weights.layers[l]);
        TRY(resident_tensors_load(m->core.engine, layer, LAYER_TENSORS));
    }
    TRY(resident_buffers_alloc(m->core.engine, buffers, BUFFERS));
    return resident_zeros(m->core.engine, m->zeros,
                          m->config.recent > 0 ? m->config.T * m->config.C : 0);
}

/* Makes an empty model. */
static enum status new_model(struct gpt_neox **model, const struct gpt_neox_config *config,
                             const struct engine *engine, size_t batch, struct error *error) {
    TRY(check_config(config, batch, error));
    struct gpt_neox *m = calloc(1, sizeof *m);
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
static enum status give_up(struct gpt_neox *m, enum status status, struct error *error) {
    char prefix[160];
    snprintf(prefix, sizeof prefix, "cannot make the model resident on engine %s",
             m->core.engine->name);
    gpt_neox_free(m);
    return error_prefix(error, status, prefix);
}

enum status gpt_neox_create(struct gpt_neox **model, const struct gpt_neox_config *config,
                            const struct gpt_neox_weights *weights, const struct engine *engine,
                            size_t batch, struct error *error) {
    struct gpt_neox *m;
    *model = NULL;
    TRY(new_model(&m, config, engine, batch, error));
    enum status status = engine->rope_table != NULL
                             ? make_resident(m, weights)
                             : error_set(error, STATUS_UNSUPPORTED,
                                         "it has no rotary embedding with a table of "
                                         "frequencies");
    if (status != STATUS_OK) {
        return give_up(m, status, error);
    }
    *model = m;
    return STATUS_OK;
}

enum status gpt_neox_create_stored(struct gpt_neox **model, const struct gpt_neox_config *config,
                                   const struct gpt_neox_stored_weights *weights,
                                   enum nn_dtype dtype, const struct engine *engine, size_t batch,
                                   struct error *error) {
    struct gpt_neox *m;
    *model = NULL;
    TRY(new_model(&m, config, engine, batch, error));
    const struct gpt_neox_decoder_model stored = {&m->config, weights, dtype, batch};
    enum status status =
        engine->gpt_neox_decoder_create != NULL
            ? engine->gpt_neox_decoder_create(engine->context, &stored, &m->core.decoder, error)
            : STATUS_OK;
    if (status != STATUS_OK) {
        return give_up(m, status, error);
    }
    if (m->core.decoder == NULL) {
        gpt_neox_free(m);
        return error_set(error, STATUS_UNSUPPORTED,
                         "engine %s has no decoder for this GPT-NeoX; it runs operator by operator "
                         "on fp32 weights",
                         engine->name);
    }
    *model = m;
    return STATUS_OK;
}

static void unload(struct gpt_neox *m) {
    const struct gpt_neox_weights none = {0};
    const struct gpt_neox_layer no_layer = {0};
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
}

void gpt_neox_free(struct gpt_neox *m) {
    if (m == NULL) {
        return;
    }
    if (m->core.decoder != NULL) {
        m->core.engine->decoder_free(m->core.engine->context, m->core.decoder);
    }
    unload(m);
    free(m->weights.layers);
    free(m->host_frequencies);
    free(m);
}

const struct gpt_neox_config *gpt_neox_config(const struct gpt_neox *m) {
    return &m->config;
}

/* ---- Forward ---- */

/* out (T, N) = in (T, K) * weight (N, K)^T, plus bias (N) if there is one. */
static enum status project(const struct gpt_neox *m, float *out, const float *in,
                           const float *weight, const float *bias, size_t T, size_t N, size_t K) {
    return decoder_core_project(&m->core, out, in, weight, bias, T, N, K);
}

static enum status rotate(const void *model, float *x, size_t T, size_t heads, size_t position) {
    const struct gpt_neox *m = model;
    const struct gpt_neox_config *c = &m->config;
    return m->core.engine->rope_table(m->core.engine->context, x, T, heads, c->HS, heads * c->HS,
                                      position, m->frequencies, NN_ROPE_HALVES);
}

/* projected = attention of the T new tokens, whose norm is in `normed`, over the layer's cache. */
static enum status attend(struct gpt_neox *m, size_t l, size_t T, size_t position) {
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_layer *w = &m->weights.layers[l];
    float *k = m->k_cache + l * c->T * c->C, *v = m->v_cache + l * c->T * c->C; /* (config.T, C) */
    float *k_new = k + position * c->C, *v_new = v + position * c->C;           /* (T, C) */
    const struct nn_attention attention = {
        .q = m->q,
        .k = k,
        .v = v,
        .B = 1,
        .T = T,
        .S = position + T,
        .NH = c->NH,
        .KVH = c->NH,
        .HS = c->HS,
        .q_stride = c->C,
        .kv_stride = c->C,
        .causal = true,
        .scale = 1.0f / sqrtf((float)c->HS),
    };
    TRY(project(m, m->q, m->normed, w->wq, w->bq, T, c->C, c->C));
    TRY(project(m, k_new, m->normed, w->wk, w->bk, T, c->C, c->C));
    TRY(project(m, v_new, m->normed, w->wv, w->bv, T, c->C, c->C));
    TRY(rotate(m, m->q, T, c->NH, position));
    TRY(rotate(m, k_new, T, c->NH, position));
    TRY(m->core.engine->attention(m->core.engine->context, m->attended, &attention));
    return project(m, m->projected, m->attended, w->wo, w->bo, T, c->C, c->C);
}

static const struct decoder_family_steps steps;

/* The same for one token of a text without end. */
static enum status attend_places(struct gpt_neox *m, size_t l, size_t position) {
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_layer *w = &m->weights.layers[l];
    const struct streaming_cache cache = streaming_cache_at(c->sinks, c->recent, position);
    float *k = m->k_cache + l * c->T * c->C, *v = m->v_cache + l * c->T * c->C;
    TRY(project(m, m->q, m->normed, w->wq, w->bq, 1, c->C, c->C));
    TRY(project(m, k + cache.row * c->C, m->normed, w->wk, w->bk, 1, c->C, c->C));
    TRY(project(m, v + cache.row * c->C, m->normed, w->wv, w->bv, 1, c->C, c->C));
    const struct decoder_places places = {.NH = c->NH,
                                          .KVH = c->NH,
                                          .HS = c->HS,
                                          .scale = 1.0f / sqrtf((float)c->HS),
                                          .q = m->q,
                                          .k = k,
                                          .v = v,
                                          .placed = m->placed,
                                          .zeros = m->zeros,
                                          .attended = m->attended};
    TRY(decoder_core_attend_places(&m->core, &steps, m, &cache, &places));
    return project(m, m->projected, m->attended, w->wo, w->bo, 1, c->C, c->C);
}

/* projected = mlp(normed). */
static enum status feed_forward(struct gpt_neox *m, size_t l, size_t T) {
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_layer *w = &m->weights.layers[l];
    TRY(engine_linear_activation(m->core.engine, m->expanded, m->normed, w->up, w->up_bias, T,
                                 c->hidden, c->C, c->activation));
    return engine_linear(m->core.engine, m->projected, m->expanded, w->down, w->down_bias, T, c->C,
                         c->hidden);
}

/* In parallel, both sublayers read x as it was: the second norm is taken before the first sum. */
static enum status forward_layer(void *model, size_t l, size_t T, size_t position) {
    struct gpt_neox *m = model;
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_layer *w = &m->weights.layers[l];
    const struct engine *e = m->core.engine;
    void *context = e->context;
    size_t count = T * c->C;
    TRY(e->layernorm(context, m->normed, m->x, w->attention_norm, w->attention_norm_bias, T, c->C,
                     c->norm_eps));
    TRY(c->recent > 0 ? attend_places(m, l, position) : attend(m, l, T, position));

    if (c->parallel) {
        TRY(e->layernorm(context, m->normed, m->x, w->ffn_norm, w->ffn_norm_bias, T, c->C,
                         c->norm_eps));
    }
    TRY(e->residual(context, m->x, m->x, m->projected, count));
    if (!c->parallel) {
        TRY(e->layernorm(context, m->normed, m->x, w->ffn_norm, w->ffn_norm_bias, T, c->C,
                         c->norm_eps));
    }
    TRY(feed_forward(m, l, T));
    return e->residual(context, m->x, m->x, m->projected, count);
}

/* Logits of the last of T tokens, copied to the host. */
static enum status classify_last(void *model, size_t T, float *logits) {
    struct gpt_neox *m = model;
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_weights *w = &m->weights;
    const struct engine *e = m->core.engine;
    const float *last = m->x + (T - 1) * c->C;
    const float *classifier = w->classifier != NULL ? w->classifier : w->embedding;
    TRY(e->layernorm(e->context, m->normed, last, w->final_norm, w->final_norm_bias, 1, c->C,
                     c->norm_eps));
    TRY(e->matmul(e->context, m->logits, m->normed, classifier, 1, c->V, c->C));
    return e->read(e->context, logits, m->logits, c->V * sizeof(float));
}

static const struct decoder_family_steps steps = {forward_layer, classify_last, rotate};

enum status gpt_neox_forward(struct gpt_neox *m, const int32_t *tokens, size_t count,
                             size_t position, float *logits) {
    return decoder_core_forward(&m->core, &steps, m, m->x, m->weights.embedding, tokens, count,
                                position, logits);
}

bool gpt_neox_draws(const struct gpt_neox *m) {
    return decoder_core_draws(&m->core);
}

enum status gpt_neox_begin(struct gpt_neox *m, const struct llama2_sampling *sampling) {
    return decoder_core_begin(&m->core, sampling);
}

enum status gpt_neox_next(struct gpt_neox *m, size_t position, int32_t *token) {
    return decoder_core_next(&m->core, position, token);
}

#include "common/models/gpt_neox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/models/fused.h"
#include "common/models/resident.h"

enum { LAYER_TENSORS = 16, OTHER_TENSORS = 5, BUFFERS = 9 };

struct gpt_neox {
    struct gpt_neox_config config;
    const struct engine *engine;
    size_t batch;
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

    float *k_cache, *v_cache; /* (L, config.T, C) */

    void *decoder; /* the engine's, if it runs the whole decoder; then nothing else is resident */
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
    const struct resident_buffer buffers[BUFFERS] = {
        {&m->x, m->batch, c->C},
        {&m->normed, m->batch, c->C},
        {&m->q, m->batch, c->C},
        {&m->attended, m->batch, c->C},
        {&m->projected, m->batch, c->C},
        {&m->expanded, m->batch, c->hidden},
        {&m->logits, 1, c->V},
        {&m->k_cache, c->L * c->T, c->C},
        {&m->v_cache, c->L * c->T, c->C},
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
    TRY(resident_tensors_load(m->engine, others, OTHER_TENSORS));
    for (size_t l = 0; l < m->config.L; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &host->layers[l], &m->weights.layers[l]);
        TRY(resident_tensors_load(m->engine, layer, LAYER_TENSORS));
    }
    return resident_buffers_alloc(m->engine, buffers, BUFFERS);
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
    m->engine = engine;
    m->batch = batch;
    *model = m;
    return STATUS_OK;
}

/* Frees a model that could not be made; the engine's error message gets a prefix. */
static enum status give_up(struct gpt_neox *m, enum status status, struct error *error) {
    char prefix[160];
    snprintf(prefix, sizeof prefix, "cannot make the model resident on engine %s", m->engine->name);
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
            ? engine->gpt_neox_decoder_create(engine->context, &stored, &m->decoder, error)
            : STATUS_OK;
    if (status != STATUS_OK) {
        return give_up(m, status, error);
    }
    if (m->decoder == NULL) {
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
    resident_buffers_release(m->engine, buffers, BUFFERS);
    for (size_t l = 0; l < m->config.L && m->weights.layers != NULL; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &no_layer, &m->weights.layers[l]);
        resident_tensors_unload(m->engine, layer, LAYER_TENSORS);
    }
    list_others(others, m, &none);
    resident_tensors_unload(m->engine, others, OTHER_TENSORS);
}

void gpt_neox_free(struct gpt_neox *m) {
    if (m == NULL) {
        return;
    }
    if (m->decoder != NULL) {
        m->engine->decoder_free(m->engine->context, m->decoder);
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
    const struct engine *e = m->engine;
    return bias != NULL ? engine_linear(e, out, in, weight, bias, T, N, K)
                        : e->matmul(e->context, out, in, weight, T, N, K);
}

static enum status rotate(const struct gpt_neox *m, float *x, size_t T, size_t position) {
    const struct gpt_neox_config *c = &m->config;
    return m->engine->rope_table(m->engine->context, x, T, c->NH, c->HS, c->C, position,
                                 m->frequencies, NN_ROPE_HALVES);
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
    TRY(rotate(m, m->q, T, position));
    TRY(rotate(m, k_new, T, position));
    TRY(m->engine->attention(m->engine->context, m->attended, &attention));
    return project(m, m->projected, m->attended, w->wo, w->bo, T, c->C, c->C);
}

/* projected = mlp(normed). */
static enum status feed_forward(struct gpt_neox *m, size_t l, size_t T) {
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_layer *w = &m->weights.layers[l];
    TRY(engine_linear_activation(m->engine, m->expanded, m->normed, w->up, w->up_bias, T, c->hidden,
                                 c->C, c->activation));
    return engine_linear(m->engine, m->projected, m->expanded, w->down, w->down_bias, T, c->C,
                         c->hidden);
}

/* In parallel, both sublayers read x as it was: the second norm is taken before the first sum. */
static enum status forward_layer(struct gpt_neox *m, size_t l, size_t T, size_t position) {
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_layer *w = &m->weights.layers[l];
    const struct engine *e = m->engine;
    void *context = e->context;
    size_t count = T * c->C;
    TRY(e->layernorm(context, m->normed, m->x, w->attention_norm, w->attention_norm_bias, T, c->C,
                     c->norm_eps));
    TRY(attend(m, l, T, position));
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
static enum status classify_last(struct gpt_neox *m, size_t T, float *logits) {
    const struct gpt_neox_config *c = &m->config;
    const struct gpt_neox_weights *w = &m->weights;
    const struct engine *e = m->engine;
    const float *last = m->x + (T - 1) * c->C;
    const float *classifier = w->classifier != NULL ? w->classifier : w->embedding;
    TRY(e->layernorm(e->context, m->normed, last, w->final_norm, w->final_norm_bias, 1, c->C,
                     c->norm_eps));
    TRY(e->matmul(e->context, m->logits, m->normed, classifier, 1, c->V, c->C));
    return e->read(e->context, logits, m->logits, c->V * sizeof(float));
}

static enum status check_call(const struct gpt_neox *m, const int32_t *tokens, size_t count,
                              size_t position) {
    const struct gpt_neox_config *c = &m->config;
    if (count == 0 || count > m->batch) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (position > c->T || count > c->T - position) {
        return STATUS_TOO_LONG;
    }
    for (size_t t = 0; t < count; t++) {
        if (tokens[t] < 0 || (size_t)tokens[t] >= c->V) {
            return STATUS_INVALID_ARGUMENT;
        }
    }
    return STATUS_OK;
}

enum status gpt_neox_forward(struct gpt_neox *m, const int32_t *tokens, size_t count,
                             size_t position, float *logits) {
    const struct gpt_neox_config *c = &m->config;
    const struct engine *e = m->engine;
    TRY(check_call(m, tokens, count, position));
    if (m->decoder != NULL) {
        const struct llama2_decoder_call call = {tokens, count, position, logits};
        return e->decoder_run(e->context, m->decoder, &call);
    }
    TRY(e->embedding(e->context, m->x, m->weights.embedding, tokens, count, c->C, false));
    for (size_t l = 0; l < c->L; l++) {
        TRY(forward_layer(m, l, count, position));
    }
    return logits != NULL ? classify_last(m, count, logits) : STATUS_OK;
}

bool gpt_neox_draws(const struct gpt_neox *m) {
    return m->decoder != NULL && m->engine->decoder_begin != NULL;
}

enum status gpt_neox_begin(struct gpt_neox *m, const struct llama2_sampling *sampling) {
    const struct engine *e = m->engine;
    return gpt_neox_draws(m) ? e->decoder_begin(e->context, m->decoder, sampling)
                             : STATUS_UNSUPPORTED;
}

enum status gpt_neox_next(struct gpt_neox *m, size_t position, int32_t *token) {
    const struct engine *e = m->engine;
    if (!gpt_neox_draws(m)) {
        return STATUS_UNSUPPORTED;
    }
    if (position == 0) { /* there are no logits to draw from */
        return STATUS_INVALID_ARGUMENT;
    }
    return position < m->config.T ? e->decoder_next(e->context, m->decoder, position, token)
                                  : STATUS_TOO_LONG;
}

#include "common/model/llama2.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/checked.h"

/* Resident weights, the same shapes as struct llama2_weights. */
struct llama2 {
    struct llama2_config config;
    const struct engine *engine;
    size_t batch;
    struct llama2_weights weights; /* resident pointers */

    /* Activations of one call: T stands for its tokens, at most batch. */
    float *x;         /* (T, C): the residual stream */
    float *normed;    /* (T, C) */
    float *q;         /* (T, NH*HS) */
    float *mixed;     /* (T, NH*HS): attention's result */
    float *projected; /* (T, C) */
    float *gate, *up; /* (T, hidden) */
    float *logits;    /* (V) */

    float *k_cache, *v_cache; /* (L, config.T, KVH*HS) */
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
    return STATUS_OK;
}

/* One buffer of activations: a x b floats. */
struct buffer {
    float **memory;
    size_t a, b;
};

static enum status alloc_activations(struct llama2 *m) {
    const struct llama2_config *c = &m->config;
    size_t cache_rows;
    if (!checked_multiply(c->L, c->T, &cache_rows)) {
        return STATUS_OVERFLOW;
    }
    const struct buffer buffers[] = {
        {&m->x, m->batch, c->C},
        {&m->normed, m->batch, c->C},
        {&m->q, m->batch, c->NH * c->HS},
        {&m->mixed, m->batch, c->NH * c->HS},
        {&m->projected, m->batch, c->C},
        {&m->gate, m->batch, c->hidden},
        {&m->up, m->batch, c->hidden},
        {&m->logits, 1, c->V},
        {&m->k_cache, cache_rows, c->KVH * c->HS},
        {&m->v_cache, cache_rows, c->KVH * c->HS},
    };
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        size_t bytes;
        if (!checked_multiply(buffers[i].a, buffers[i].b, &bytes) ||
            !checked_multiply(bytes, sizeof(float), &bytes)) {
            return STATUS_OVERFLOW;
        }
        void *memory = NULL;
        enum status status = m->engine->alloc(m->engine->context, bytes, &memory);
        if (status != STATUS_OK) {
            return status;
        }
        *buffers[i].memory = memory;
    }
    return STATUS_OK;
}

static enum status make_resident(struct llama2 *m, const float *host, size_t rows, size_t columns,
                                 const float **resident) {
    const void *memory = NULL;
    enum status status =
        m->engine->weights(m->engine->context, host, rows * columns * sizeof(float), &memory);
    *resident = memory;
    return status;
}

/* A tensor of the checkpoint, where its resident pointer goes, and its shape. */
struct tensor {
    const float *host;
    const float **resident;
    size_t rows, columns;
};

static enum status load_layer(struct llama2 *m, const struct llama2_layer *host,
                              struct llama2_layer *resident) {
    const struct llama2_config *c = &m->config;
    size_t q_width = c->NH * c->HS;
    size_t kv_width = c->KVH * c->HS;
    const struct tensor tensors[] = {
        {host->attention_norm, &resident->attention_norm, 1, c->C},
        {host->wq, &resident->wq, q_width, c->C},
        {host->wk, &resident->wk, kv_width, c->C},
        {host->wv, &resident->wv, kv_width, c->C},
        {host->wo, &resident->wo, c->C, q_width},
        {host->ffn_norm, &resident->ffn_norm, 1, c->C},
        {host->w1, &resident->w1, c->hidden, c->C},
        {host->w2, &resident->w2, c->C, c->hidden},
        {host->w3, &resident->w3, c->hidden, c->C},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        enum status status = make_resident(m, tensors[i].host, tensors[i].rows, tensors[i].columns,
                                           tensors[i].resident);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status load_weights(struct llama2 *m, const struct llama2_weights *host) {
    const struct llama2_config *c = &m->config;
    m->weights.layers = calloc(c->L, sizeof *m->weights.layers);
    if (m->weights.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    enum status status = make_resident(m, host->embedding, c->V, c->C, &m->weights.embedding);
    if (status == STATUS_OK) {
        status = make_resident(m, host->final_norm, 1, c->C, &m->weights.final_norm);
    }
    if (status == STATUS_OK && host->classifier == host->embedding) {
        m->weights.classifier = m->weights.embedding;
    } else if (status == STATUS_OK) {
        status = make_resident(m, host->classifier, c->V, c->C, &m->weights.classifier);
    }
    for (size_t l = 0; l < c->L && status == STATUS_OK; l++) {
        status = load_layer(m, &host->layers[l], &m->weights.layers[l]);
    }
    return status;
}

enum status llama2_create(struct llama2 **model, const struct llama2_config *config,
                          const struct llama2_weights *weights, const struct engine *engine,
                          size_t batch, struct error *error) {
    *model = NULL;
    enum status status = check_config(config, batch, error);
    if (status != STATUS_OK) {
        return status;
    }
    struct llama2 *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    m->config = *config;
    m->engine = engine;
    m->batch = batch;
    status = load_weights(m, weights);
    if (status == STATUS_OK) {
        status = alloc_activations(m);
    }
    if (status != STATUS_OK) {
        llama2_free(m);
        return error_set(error, status, "cannot make the model resident on engine %s: %s",
                         engine->name, status_message(status));
    }
    *model = m;
    return STATUS_OK;
}

static void release_layer(const struct engine *e, const struct llama2_layer *layer) {
    const float *const tensors[] = {
        layer->attention_norm, layer->wq, layer->wk, layer->wv, layer->wo,
        layer->ffn_norm,       layer->w1, layer->w2, layer->w3};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        e->release_weights(e->context, tensors[i]);
    }
}

void llama2_free(struct llama2 *m) {
    if (m == NULL) {
        return;
    }
    const struct engine *e = m->engine;
    float *const buffers[] = {m->x,    m->normed, m->q,      m->mixed,   m->projected,
                              m->gate, m->up,     m->logits, m->k_cache, m->v_cache};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        e->release(e->context, buffers[i]);
    }
    if (m->weights.classifier != m->weights.embedding) {
        e->release_weights(e->context, m->weights.classifier);
    }
    e->release_weights(e->context, m->weights.embedding);
    e->release_weights(e->context, m->weights.final_norm);
    for (size_t l = 0; l < m->config.L && m->weights.layers != NULL; l++) {
        release_layer(e, &m->weights.layers[l]);
    }
    free(m->weights.layers);
    free(m);
}

const struct llama2_config *llama2_config(const struct llama2 *m) {
    return &m->config;
}

/* Stops a sequence of operators at the first failure. */
#define TRY(call)                     \
    do {                              \
        enum status status_ = (call); \
        if (status_ != STATUS_OK) {   \
            return status_;           \
        }                             \
    } while (0)

/* mixed = attention(rope(q), rope(k), v) of the T new tokens over the cache of layer l. */
static enum status attend(struct llama2 *m, size_t l, size_t T, size_t position) {
    const struct llama2_config *c = &m->config;
    const struct llama2_layer *w = &m->weights.layers[l];
    const struct engine *e = m->engine;
    void *x = e->context;
    size_t q_width = c->NH * c->HS;
    size_t kv_width = c->KVH * c->HS;
    float *k = m->k_cache + l * c->T * kv_width; /* (config.T, KVH*HS) */
    float *v = m->v_cache + l * c->T * kv_width;
    float *k_new = k + position * kv_width; /* (T, KVH*HS) */
    float *v_new = v + position * kv_width;

    TRY(e->matmul(x, m->q, m->normed, w->wq, T, q_width, c->C));
    TRY(e->matmul(x, k_new, m->normed, w->wk, T, kv_width, c->C));
    TRY(e->matmul(x, v_new, m->normed, w->wv, T, kv_width, c->C));
    TRY(e->rope(x, m->q, T, c->NH, c->HS, q_width, position, c->rope_theta, c->rope_layout));
    TRY(e->rope(x, k_new, T, c->KVH, c->HS, kv_width, position, c->rope_theta, c->rope_layout));
    const struct nn_attention attention = {
        .q = m->q,
        .k = k,
        .v = v,
        .B = 1,
        .T = T,
        .S = position + T,
        .NH = c->NH,
        .KVH = c->KVH,
        .HS = c->HS,
        .q_stride = q_width,
        .kv_stride = kv_width,
        .causal = true,
        .scale = 1.0f / sqrtf((float)c->HS),
    };
    return e->attention(x, m->mixed, &attention);
}

static enum status forward_layer(struct llama2 *m, size_t l, size_t T, size_t position) {
    const struct llama2_config *c = &m->config;
    const struct llama2_layer *w = &m->weights.layers[l];
    const struct engine *e = m->engine;
    void *x = e->context;

    TRY(e->rmsnorm(x, m->normed, m->x, w->attention_norm, T, c->C, c->norm_eps));
    TRY(attend(m, l, T, position));
    TRY(e->matmul(x, m->projected, m->mixed, w->wo, T, c->C, c->NH * c->HS));
    TRY(e->residual(x, m->x, m->x, m->projected, T * c->C));

    TRY(e->rmsnorm(x, m->normed, m->x, w->ffn_norm, T, c->C, c->norm_eps));
    TRY(e->matmul(x, m->gate, m->normed, w->w1, T, c->hidden, c->C));
    TRY(e->matmul(x, m->up, m->normed, w->w3, T, c->hidden, c->C));
    TRY(e->silu_gate(x, m->gate, m->gate, m->up, T * c->hidden));
    TRY(e->matmul(x, m->projected, m->gate, w->w2, T, c->C, c->hidden));
    return e->residual(x, m->x, m->x, m->projected, T * c->C);
}

/* Logits of the last of T tokens, copied to the host. */
static enum status classify_last(struct llama2 *m, size_t T, float *logits) {
    const struct llama2_config *c = &m->config;
    const struct engine *e = m->engine;
    const float *last = m->x + (T - 1) * c->C;
    TRY(e->rmsnorm(e->context, m->normed, last, m->weights.final_norm, 1, c->C, c->norm_eps));
    TRY(e->matmul(e->context, m->logits, m->normed, m->weights.classifier, 1, c->V, c->C));
    return e->read(e->context, logits, m->logits, c->V * sizeof(float));
}

enum status llama2_forward(struct llama2 *m, const int32_t *tokens, size_t count, size_t position,
                           float *logits) {
    const struct llama2_config *c = &m->config;
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
    const struct engine *e = m->engine;
    TRY(e->embedding(e->context, m->x, m->weights.embedding, tokens, count, c->C, false));
    for (size_t l = 0; l < c->L; l++) {
        TRY(forward_layer(m, l, count, position));
    }
    return logits != NULL ? classify_last(m, count, logits) : STATUS_OK;
}
